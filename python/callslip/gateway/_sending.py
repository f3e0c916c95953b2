"""Answers on their way to a client, which may read slowly or leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip.gateway._asked import Answered, Exchange, Piece
from callslip.gateway._refused import Refused, refused_of
from callslip.web._messages import KEEP_ALIVE
from callslip.web._responses import STREAM_HEADERS

__all__ = ["Answer", "Pieces", "json_response"]

_log = GuardedLogger("callslip.gateway")

_SILENCE = 10.0
"""Seconds after which a comment tells clients that the model still reads or writes."""
_PATIENCE = 60.0
"""Seconds that a client may take to accept the next bytes."""

Pieces = AsyncGenerator[Piece | Answered]
ErrorBody = Callable[[Refused], dict[str, Any]]


class Answer:
    """The answer of a model, sent as it is written or as a whole.

    The model doesn't wait for a slow client, and stops when the client leaves.

    Args:
        exchange: The request, and the writer of its answer.
        pieces: The answer.
        error_body: Writes an error as the body of an answer.
    """

    def __init__(self, exchange: Exchange, pieces: Pieces, error_body: ErrorBody) -> None:
        self._exchange = exchange
        self._pieces = pieces
        self._error_body = error_body
        self._began = time.monotonic()
        self._ready: asyncio.Queue[Piece | Answered | Refused] = asyncio.Queue()
        kinds = ", ".join(exchange.asked.left_out).encode("ascii", "replace").decode()
        self._headers = {"x-callslip-left-out": kinds} if kinds else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, until the client leaves."""
        work = asyncio.create_task(self._collect())
        left = asyncio.create_task(_left(receive))
        sending = self._stream if self._exchange.asked.is_streamed else self._whole
        task = asyncio.create_task(sending(scope, receive, send))
        try:
            await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            else:
                _log.info("the client left after %.1f s", time.monotonic() - self._began)
        finally:
            tasks = {work, left, task}
            for one in tasks:
                one.cancel()
            await asyncio.wait(tasks)

    async def _collect(self) -> None:
        try:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    self._ready.put_nowait(piece)
        except Exception as error:  # noqa: BLE001  # the model may raise anything
            self._ready.put_nowait(refused_of(error))

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        while isinstance(end := await self._ready.get(), Piece):
            pass
        self._report(end)
        if isinstance(end, Refused):
            response = json_response(self._error_body(end), end.status, end.headers)
        else:
            headers = _headers_of(end) | self._headers
            response = json_response(self._exchange.whole(end), headers=headers)
        async with asyncio.timeout(_PATIENCE):
            await response(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await self._next()
        if isinstance(first, Refused):
            # The status was not sent yet, so it can show the error.
            self._report(first)
            response = json_response(self._error_body(first), first.status, first.headers)
            await response(scope, receive, send)
            return
        kind = {"content-type": "text/event-stream; charset=utf-8"}
        headers = kind | STREAM_HEADERS | self._headers
        if isinstance(first, Answered):
            headers |= _headers_of(first)
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": pairs})
        await _write(send, self._exchange.begin())
        item: Piece | Answered | Refused | None = first
        while True:
            if item is None:
                await _write(send, KEEP_ALIVE)
            elif isinstance(item, Piece):
                await _write(send, self._exchange.piece(item))
            else:
                break
            item = await self._next()
        self._report(item)
        exchange = self._exchange
        last = exchange.fail(item) if isinstance(item, Refused) else exchange.end(item)
        await _write(send, last, is_last=True)

    async def _next(self) -> Piece | Answered | Refused | None:
        """Return the next item; `None` after a while of silence."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._ready.get(), _SILENCE)
        return None

    def _report(self, end: Answered | Refused) -> None:
        seconds = time.monotonic() - self._began
        if isinstance(end, Refused):
            _log.info("%d %s · %.1f s", end.status, end.code, seconds)
            return
        said = ", ".join(call.tool for call in end.calls) or "answer"
        if end.is_cut:
            said += " (cut at max_tokens)"
        _log.info(
            "%s · %d+%d tokens, %d cached · attempts: %d · %.1f s%s",
            said,
            end.count("input_tokens"),
            end.count("output_tokens"),
            end.count("cached_tokens"),
            end.attempts,
            seconds,
            f" · {end.changes}" if any(end.changes) else "",
        )


def _headers_of(end: Answered) -> dict[str, str]:
    headers = {"x-callslip-attempts": str(end.attempts)}
    if any(end.changes):
        # Pointers have the keys of arguments, which may be any text.
        text = str(end.changes).encode("ascii", "backslashreplace").decode()
        headers["x-callslip-repairs"] = " ".join(text.split())
    return headers


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer of JSON."""
    always = {"cache-control": "no-store", **(headers or {})}
    return Response(to_json(value).encode(), status, always, "application/json")


async def _write(send: Send, data: bytes, *, is_last: bool = False) -> None:
    if not data and not is_last:
        return
    # A client that doesn't read would keep its connection until the server stops.
    async with asyncio.timeout(_PATIENCE):
        await send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
