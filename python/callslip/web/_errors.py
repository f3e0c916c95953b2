"""Errors of this package as answers of HTTP."""

from __future__ import annotations

from typing import Any

from callslip._base.log import GuardedLogger
from callslip.errors import (
    Busy,
    DrivenElsewhere,
    KeyTaken,
    ModelError,
    Outdated,
    RunFailed,
    StoreError,
    UnknownRun,
    UnknownTicket,
    UsageError,
)

__all__ = ["TooLarge", "error_body", "status_of"]

_log = GuardedLogger("callslip.web")


class TooLarge(UsageError):  # noqa: N818  # like `callslip.errors`
    """The body of a request has more bytes than may be in memory."""


# The first that fits counts.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownRun, 404),
    (UnknownTicket, 404),
    (Outdated, 409),
    (KeyTaken, 409),
    (DrivenElsewhere, 409),
    (TooLarge, 413),
    (UsageError, 422),
    (StoreError, 503),
    (ModelError, 502),
)

_HIDDEN = {
    500: "this failed: the log of the server says why",
    502: "the model failed: the log of the server says why",
    503: "the store is not available: the log of the server says why",
}


def status_of(error: Exception) -> int:
    """Return the status with which an error is answered.

    404 for a run or a ticket that is not there; 409 for a decision that comes too late, a key that
    is taken, and a run that another process has; 413 and 422 for wrong input; 502 for a model that
    failed, 503 for a store that can't be used or a queue that is full; 500 for anything else.
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_body(error: Exception) -> dict[str, Any]:
    """Return the JSON object with which an error is answered.

    `error` is the message with its hint. `problems` has each problem of edited arguments, as a pair
    of a JSON pointer and a message. `run` is the id of a run that failed. If the client can't
    correct the error, `error` is a general message, because the real one may name files, servers
    and addresses: the logger `callslip.web` has the exception.
    """
    status = status_of(error)
    if isinstance(error, Busy) or status not in _HIDDEN:
        problems = [list(one) for one in getattr(error, "problems", ())]
        return {"error": str(error), **({"problems": problems} if problems else {})}
    _log.warning("a request failed", exc_info=error)
    run = error.run if isinstance(error, RunFailed) else None
    return {"error": _HIDDEN[status], **({} if run is None else {"run": run.id})}
