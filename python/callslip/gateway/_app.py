"""The application: its addresses, and their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from callslip._base.log import GuardedLogger
from callslip.gateway import _messages, _openai
from callslip.gateway._asked import Exchange
from callslip.gateway._chat import ChatExchange
from callslip.gateway._fields import mapping
from callslip.gateway._known_tools import parsed
from callslip.gateway._messages import MessagesExchange
from callslip.gateway._refused import Refused, refused_of
from callslip.gateway._responses import ResponsesExchange
from callslip.gateway._sending import Answer, ErrorBody, json_response
from callslip.gateway._served import Served
from callslip.gateway._watched import watched
from callslip.runs._observers import current_observers
from callslip.web import Guard
from callslip.web._bodies import read_parsed

__all__ = ["Gateway"]

_log = GuardedLogger("callslip.gateway")

_MOST_BYTES = 32 * 2**20
_MOST_HELD = 16 * _MOST_BYTES
"""Bytes of the bodies of all requests that are being read or wait for their answer."""


class _Face(NamedTuple):
    """An interface for clients.

    Attributes:
        path: The address of its requests.
        counting: The address that counts the tokens of a request.
        exchange: Reads a request.
        used: The fields that are read.
        error_body: Writes an error.
    """

    path: str
    counting: str
    exchange: Callable[[Mapping[str, Any]], Exchange]
    used: frozenset[str]
    error_body: ErrorBody


_FACES = (
    _Face(
        "/v1/chat/completions",
        "/v1/chat/completions/input_tokens",
        ChatExchange,
        ChatExchange.USED,
        _openai.error_body,
    ),
    _Face(
        "/v1/messages",
        "/v1/messages/count_tokens",
        MessagesExchange,
        MessagesExchange.USED,
        _messages.error_body,
    ),
    _Face(
        "/v1/responses",
        "/v1/responses/input_tokens",
        ResponsesExchange,
        ResponsesExchange.USED,
        _openai.error_body,
    ),
)


class Gateway:
    """An ASGI application with the interfaces of OpenAI and Anthropic. Made by `gateway`.

    Args:
        served: The models by name.
        hosts: The names under which it is served.
        token: The key of clients; `None` if they need none.

    Attributes:
        names: The names of the models.
    """

    def __init__(
        self, served: Mapping[str, Served], hosts: Collection[str], token: str | None
    ) -> None:
        self.names: list[str] = list(served)
        self._served = served
        self._since = int(time.time())
        self._ignored: set[str] = set()
        self._held = 0
        routes = [
            Route("/health", self._health, methods=["GET"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name:path}", self._model, methods=["GET"]),
        ]
        for face in _FACES:
            routes += [
                Route(face.path, self._answering(face), methods=["POST"]),
                Route(face.counting, self._counting(face), methods=["POST"]),
            ]
        inner = Starlette(routes=routes, exception_handlers={404: _unknown, 405: _unknown})
        self._app: ASGIApp = Guard(inner, hosts=hosts, token=token, public=["/health"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless too many bytes wait already."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = _size(scope)
        if self._held + size > _MOST_HELD:
            response = _answer(_openai.error_body, _TOO_MUCH)
            await response(scope, receive, send)
            return
        self._held += size
        try:
            scope = {**scope, "headers": _with_bearer(scope["headers"])}
            await self._app(scope, receive, send)
        finally:
            self._held -= size

    def described(self) -> list[str]:
        """Return a line for each model: its name, and the form of its grammar."""
        rows = ((name, served.call.grammar_form) for name, served in self._served.items())
        return [f"{name} (grammar: {form or 'none'})" for name, form in rows]

    def _answering(self, face: _Face) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response | Answer:
            try:
                exchange, served = await self._read(face, request)
            except Exception as error:  # noqa: BLE001  # written as the face writes errors
                return _refuse(face, error)
            pieces = served.answer(exchange.asked)
            if current_observers():
                trace = request.headers.get("traceparent")
                pieces = watched(pieces, exchange.asked, served.name, trace)
            return Answer(exchange, pieces, face.error_body)

        return answer

    def _counting(self, face: _Face) -> Callable[[Request], Any]:
        async def count(request: Request) -> Response:
            try:
                exchange, served = await self._read(face, request)
                tokens = await run_in_threadpool(served.count, exchange.asked)
            except Exception as error:  # noqa: BLE001  # written as the face writes errors
                return _refuse(face, error)
            return json_response({"object": "response.input_tokens", "input_tokens": tokens})

        return count

    async def _read(self, face: _Face, request: Request) -> tuple[Exchange, Served]:
        body = mapping(await read_parsed(request, _MOST_BYTES, parsed), "the body")
        exchange = face.exchange(body)
        ignored = body.keys() - face.used - self._ignored
        if ignored:
            self._ignored |= ignored
            _log.info("ignored in requests from now on: %s", ", ".join(sorted(ignored)))
        return exchange, self._find(exchange.asked.model)

    def _find(self, name: str) -> Served:
        found = self._served.get(name)
        if found is not None:
            return found
        if len(self._served) == 1:
            # Many clients send the name of the service's own model.
            return next(iter(self._served.values()))
        names = ", ".join(self.names)
        raise Refused(
            404, f"expected a model: got {name!r}; use one of {names}", "model_not_found", "model"
        )

    async def _models(self, _: Request) -> Response:
        rows = [self._row(name, served) for name, served in self._served.items()]
        return json_response({"object": "list", "data": rows, "has_more": False})

    async def _model(self, request: Request) -> Response:
        try:
            served = self._find(request.path_params["name"])
        except Refused as refused:
            return _answer(_openai.error_body, refused)
        return json_response(self._row(served.name, served))

    def _row(self, name: str, served: Served) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "type": "model",
            "created": self._since,
            "owned_by": "callslip",
            "display_name": name,
            "max_model_len": served.call.context,
        }

    async def _health(self, _: Request) -> Response:
        return json_response({"status": "ok"})


_TOO_MUCH = Refused(
    429, "the requests that wait are too large together: try again later", "queue_full", None, "1"
)


def _size(scope: Scope) -> int:
    """Return the bytes that the body of a request may take in memory."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        # More is refused before it is read.
        return min(int(length), _MOST_BYTES)
    return _MOST_BYTES if b"transfer-encoding" in headers else 0


def _with_bearer(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers in which the key is a bearer's; Anthropic's clients send another header."""
    names = {name for name, _ in headers}
    if b"authorization" in names or b"x-api-key" not in names:
        return headers
    keys = [value for name, value in headers if name == b"x-api-key"]
    return [*headers, *((b"authorization", b"Bearer " + key) for key in keys)]


def _refuse(face: _Face, error: Exception) -> Response:
    refused = refused_of(error)
    _log.info("%d %s", refused.status, refused.code)
    return _answer(face.error_body, refused)


def _answer(error_body: ErrorBody, refused: Refused) -> Response:
    return json_response(error_body(refused), refused.status, refused.headers)


async def _unknown(request: Request, _: Exception) -> Response:
    paths = ", ".join(face.path for face in _FACES)
    message = (
        f"expected POST {paths} or GET /v1/models: got {request.method} {request.url.path}; pass "
        "one of them"
    )
    return _answer(_openai.error_body, Refused(404, message, "not_found"))
