"""Answers for Starlette, FastAPI and other frameworks on Starlette."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from callslip._base.json import to_json
from callslip._base.options import check_type, shown
from callslip.errors import CallslipError, UsageError
from callslip.runs import Run
from callslip.runs._watch import has_ended
from callslip.web._errors import error_body, status_of
from callslip.web._messages import SILENCE
from callslip.web._stream import event_stream

__all__ = ["STREAM_HEADERS", "event_response", "exception_handlers"]

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""So that no cache keeps a stream, and nginx passes on each message."""


def event_response(
    request: Request, run: Run, *, children: bool = False, silence: float = SILENCE
) -> Response:
    """Return a run as server-sent events; see `event_stream`.

    It begins behind the event in the header `Last-Event-ID`, which a browser sends when it connects
    again, or else behind the one in the query `after`. A client that has all events of a run that
    is over gets 204, after which a browser does not connect again. For a database this call may
    wait: call it in a `def` route, or in a thread.

    Args:
        request: The request.
        run: The run, from `store.run(…)`.
        children: As for `Run.watch`.
        silence: As for `event_stream`.

    Raises:
        UsageError: The client names an event that the log does not have.
    """
    check_type("run", run, Run, "store.run(run_id)")
    after = _after(request)
    stream = event_stream(run, after=after, children=children, silence=silence)
    if after is not None and after == run.seq and _is_over(run):
        return Response(status_code=204)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=STREAM_HEADERS)
    return StreamingResponse(stream, media_type="text/event-stream", headers=STREAM_HEADERS)


def _after(request: Request) -> int | None:
    # A browser connects again with the address of its first request.
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if not given:
        return None
    if not given.isascii() or not given.isdecimal() or len(given) > 18:
        raise UsageError(
            f"expected the id of an event as Last-Event-ID: got {shown(given)}; leave it out"
        )
    return int(given)


def _is_over(run: Run) -> bool:
    if run._store is None:
        return run._driver is None and run.finished
    return has_ended(run, run._store)


def exception_handlers() -> dict[Any, Any]:
    """Return handlers for `FastAPI(exception_handlers=…)` or `Starlette(exception_handlers=…)`.

    Errors of this package are answered with a JSON object: `error` is the message with its hint,
    `problems` has each problem of edited arguments. 404: there is no such run or ticket. 409:
    somebody has decided already, the run is over, a key is taken, or another process has the run.
    413 and 422: wrong input. 502: the model failed. 503: the store can't be used, or a queue is
    full. For 502, 503 and any other exception, the answer has a general message, and the logger
    `callslip.web` the exception.
    """
    return {CallslipError: _answer, Exception: _answer}


async def _answer(request: Request, error: Exception) -> Response:
    del request
    body = to_json(error_body(error))
    headers = {"Cache-Control": "no-store"}
    return Response(body, status_of(error), headers, "application/json")
