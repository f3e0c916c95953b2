"""How runs end: the exceptions of those that end without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip.errors import (
    ContextFull,
    LimitExceeded,
    ModelError,
    ModelRefused,
    ProtocolError,
    RunCancelled,
)
from callslip.limits import limit_message, limit_name
from callslip.models._failures import is_context_full, is_refusal
from callslip.models._finish_reasons import quote_text

if TYPE_CHECKING:
    from callslip._core import Ending
    from callslip.runs._run import Run

__all__ = ["raise_failure"]


def raise_failure(run: Run, ending: Ending, raised: BaseException | None) -> None:
    """Raise the exception of a run that is over, if it has no answer.

    Args:
        run: The run.
        ending: Its end. The run may be continued while this is read.
        raised: The exception of its model client, or the error of the program for which it was
            cancelled, if there was one.

    Raises:
        ProtocolError: The model broke the protocol too often in a row.
        LimitExceeded: A limit was reached, and there is no answer.
        ContextFull: The messages are longer than the model can read.
        ModelRefused: The model, or its provider's filter, refused to answer.
        ModelError: The model client failed.
        RunCancelled: The run was cancelled.
    """
    if (error := ending.error) is None:
        return
    match ending.reason:
        case "limit":
            raise LimitExceeded(limit_message(error), run, limit_name(ending.limit or ""))
        case "violations":
            raise ProtocolError(f"{error}; the model's words: {_last_words(run)}", run)
        case "cancelled" if raised is not None:
            raise raised
        case "cancelled":
            raise RunCancelled(error, run)
    if is_context_full(raised, error):
        raise ContextFull(
            f"the model's context is full in turn {run.turns}: {error}; {_to_make_room(run)}",
            run,
        ) from raised
    is_refused = is_refusal(raised, error)
    if isinstance(raised, ModelError) and raised.run is None and not is_refused:
        raised.run = run
        raise raised
    if isinstance(raised, ModelRefused) and raised.run is None:
        raised.run = run
        raise raised
    if is_refused:
        raise ModelRefused(f"the model refused to answer: {error}", run) from raised
    raise ModelError(f"the model failed in turn {run.turns}: {error}", run) from raised


def _to_make_room(run: Run) -> str:
    if run._store is None:
        return "the run so far is the error's .run; pass history=KeepLast(…) to the agent"
    return f"pass history=KeepLast(…) to the agent and call resume({run.id!r}) to continue the run"


def _last_words(run: Run) -> str:
    replies = (one["content"] for one in reversed(run.messages) if one["role"] == "assistant")
    return quote_text(next(replies, "")) or "none"
