"""Responses of a server that are no reply: those of a wrong address, a proxy or a login page."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from urllib.parse import urlsplit

from callslip._backoff import safe_field
from callslip.errors import ModelError
from callslip.models._finish_reasons import quote_text

__all__ = ["awaited_response", "check_chunks_came", "check_response", "empty_reply"]


def empty_reply() -> ModelError:
    """Return the exception of a reply without text, which may pass by itself."""
    error = ModelError(
        "expected a reply from the model: got an empty one; ask it again, or look at what its "
        "server says of the request"
    )
    error._is_transient = True
    return error


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
    kind = str(headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind in ("", "text/event-stream") or headers.get("content-length") == "0":
        raise empty_reply()
    raise ModelError(
        f"expected a stream of chunks from the model's server{_place(response)}: got {kind} "
        "without any; pass the right address to the client (base_url), or pass stream=False to "
        "as_model to see what the server says"
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
    """Return what a client's method has returned. A text is what the client could not read.

    Raises:
        ModelError: It is a text.
    """
    if isinstance(response, str):
        raise ModelError(
            "expected JSON from the model's server: got a page or another text; pass the right "
            f"address to the client (base_url); the text begins: {quote_text(response)}"
        )
    return response


async def awaited_response(pending: Awaitable[object]) -> object:
    """Await what an async client's method has returned, and check it.

    Raises:
        ModelError: As `check_response`.
    """
    return check_response(await pending)
