"""The bodies of requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from callslip._base import _lazy
from callslip._base.options import check_whole
from callslip.errors import UsageError
from callslip.web._errors import TooLarge

__all__ = ["loads", "read_body", "read_json", "read_parsed"]

_LARGE = 100_000
"""Bytes that take longer to parse than the event loop should wait."""


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request.

    Args:
        request: The request.
        most: The largest number of bytes.

    Raises:
        TooLarge: It has more bytes.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"expected a body of at most {most:,} bytes: got more; pass less")
    return bytes(body)


async def read_json(request: Request, *, most: int = 1_000_000) -> Any:
    """Return the JSON value that a request has as its body.

    Args:
        request: The request.
        most: The largest number of bytes. Default: 1,000,000.

    Raises:
        UsageError: The body is not JSON in UTF-8, or has more bytes, or is nested too deeply.
    """
    check_whole("most", most)
    return await read_parsed(request, most, loads)


async def read_parsed(request: Request, most: int, parse: Callable[[str], Any]) -> Any:
    """Return the value that a function makes of the JSON of a request's body.

    Args:
        request: The request.
        most: The largest number of bytes.
        parse: The function.

    Raises:
        UsageError: As for `read_json`.
    """
    body = await read_body(request, most)
    if len(body) < _LARGE:
        return _parsed(body, parse)
    return await _lazy.asyncio.to_thread(_parsed, body, parse)


def loads(text: str) -> Any:
    """Return a value of JSON, which has no `NaN` and no infinities.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    return _decoder.decode(text)


def _parsed(body: bytes, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(body.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected JSON in UTF-8 as the body: got other text: {error}") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)
