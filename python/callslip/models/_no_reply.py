"""Responses of a server that are no reply: those of a wrong address, a proxy or a login page."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Mapping
from json import JSONDecodeError
from urllib.parse import urlsplit

from callslip._base.backoff import safe_field
from callslip.errors import ModelError
from callslip.models._finish_reasons import quote_text

__all__ = [
    "awaited_response",
    "check_body",
    "check_chunks_came",
    "check_response",
    "empty_reply",
    "kept_body",
    "reply_in",
]


def empty_reply() -> ModelError:
    """Return the exception for an empty reply, a transient failure."""
    error = ModelError(
        "expected a reply from the model: got an empty one; ask it again, or look at what its "
        "server says of the request"
    )
    error._is_transient = True
    return error


def kept_body(source: object) -> object | None:
    """Return the response of a client's stream whose body is JSON or a page, and no stream.

    Its `read` or `aread` keeps the body, in which the client then looks for chunks.

    Args:
        source: The stream of the client.
    """
    response = safe_field(source, "response")
    kind = _kind_of(response)
    is_body = kind == "text/html" or kind.endswith(("/json", "+json"))
    return response if is_body else None


def reply_in(source: object) -> object | None:
    """Return the JSON object in the place of a stream of which no chunk has come.

    Args:
        source: The stream of the client.
    """
    text = safe_field(kept_body(source), "text")
    try:
        body = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _kind_of(response: object) -> str:
    headers = safe_field(response, "headers")
    told = headers.get("content-type") if isinstance(headers, Mapping) else None
    return str(told or "").partition(";")[0].strip().lower()


def check_chunks_came(source: object) -> None:
    """Check the end of a stream of which no chunk has come.

    A client finds no chunks in a page or in the JSON of an error, and ends its stream without a
    word. A stream that is not that of a client over HTTP is left alone.

    Args:
        source: The stream of the client.

    Raises:
        ModelError: It is a client's.
    """
    response = safe_field(source, "response")
    headers = safe_field(response, "headers")
    if not isinstance(headers, Mapping):
        return
    kind = _kind_of(response)
    if kind in ("", "text/event-stream") or headers.get("content-length") == "0":
        raise empty_reply()
    body = safe_field(kept_body(source), "text")
    begins = f"; the body begins: {quote_text(body)}" if isinstance(body, str) and body else ""
    raise ModelError(
        f"expected a stream of chunks from the model's server{_place(response)}: got {kind} "
        "without any; pass the right address to the client (base_url), or pass stream=False to "
        f"as_model to see what the server says{begins}"
    )


def _place(response: object) -> str:
    """Return the address that was asked, without what may hold a secret."""
    try:
        url = urlsplit(str(safe_field(response, "url")))
        port = "" if url.port is None else f":{url.port}"
    except ValueError:
        return ""
    return f" at {url.scheme}://{url.hostname}{port}{url.path}" if url.hostname else ""


def check_response(response: object) -> object:
    """Return what a client's method has returned.

    A text is what the client could not read, and other values that are no object are JSON that
    holds no reply.

    Raises:
        ModelError: It is one of these.
    """
    if isinstance(response, str) and not response.strip():
        raise _empty_body("")
    if isinstance(response, str):
        raise ModelError(
            "expected JSON from the model's server: got a page or another text; pass the right "
            f"address to the client (base_url); the text begins: {quote_text(response)}"
        )
    if response is None or isinstance(response, (bool, int, float, list)):
        raise ModelError(
            "expected a JSON object from the model's server: got "
            f"{quote_text(json.dumps(response, default=repr))}; pass the right address to the "
            "client (base_url)"
        )
    return response


async def awaited_response(pending: Awaitable[object], *, is_checked: bool) -> object:
    """Await what an async client's method has returned.

    Args:
        pending: What it has returned.
        is_checked: Whether to check the response as `check_response` does.

    Raises:
        ModelError: As `check_response`; or the body of the response is not JSON.
    """
    try:
        response = await pending
    except ValueError as error:
        check_body(error)
        raise
    return check_response(response) if is_checked else response


def check_body(error: ValueError) -> None:
    """Check whether an exception of a client comes from a body that is not JSON.

    Args:
        error: The exception.

    Raises:
        ModelError: It does.
    """
    if not isinstance(error, (JSONDecodeError, UnicodeDecodeError)):
        return
    response = _response_in(error)
    if response is None:
        return
    headers = safe_field(response, "headers")
    kind = headers.get("content-type") if isinstance(headers, Mapping) else None
    told = f"{_place(response)}: got the status {safe_field(response, 'status_code')}"
    body = (
        error.doc if isinstance(error, JSONDecodeError) else error.object.decode(errors="replace")
    )
    if not body.strip():
        raise _empty_body(f"{told} with an empty body") from error
    raise ModelError(
        f"expected JSON from the model's server{told} with a body that is not JSON "
        f"({quote_text(kind) if kind else 'without a content type'}); pass the right address to "
        "the client (base_url), or look into the log of the server; the body begins: "
        f"{quote_text(body)}"
    ) from error


def _empty_body(told: str) -> ModelError:
    """Return the exception for a response without a body, a transient failure."""
    error = ModelError(
        f"expected JSON from the model's server{told or ': got an empty body'}; ask it again, pass "
        "the right address to the client (base_url), or look into the log of the server"
    )
    error._is_transient = True
    return error


def _response_in(error: BaseException) -> object | None:
    """Return the response that a client was reading as it raised an exception."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in tuple(frame.f_locals.values()):
            # The fields of other objects may do anything.
            if "Response" in type(value).__name__ and isinstance(
                safe_field(value, "status_code"), int
            ):
                found = value
    return found
