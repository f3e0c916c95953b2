"""Fetching of documents by their URL."""

from __future__ import annotations

from callslip import _lazy
from callslip._options import check_text
from callslip.errors import ToolError, UsageError

__all__ = ["fetch"]

_SECONDS = 30.0
_LARGEST = 64 << 20


def fetch(url: str) -> tuple[bytes, str]:
    """Return the content, and its URL after redirects.

    Raises:
        UsageError: The URL is invalid.
        ToolError: The document cannot be fetched.
    """
    check_text("url", url)
    try:
        parts = _lazy.urllib_parse.urlsplit(url)
        _ = parts.port  # raises for one that is not a number
    except ValueError as error:
        raise UsageError(f"from_url expects the URL of a document: {error}") from None
    if "@" in parts.netloc:
        raise UsageError(
            "expected a URL without user and password: fetch the document yourself and use "
            "from_dict"
        )
    # A query may contain a key.
    shown = parts._replace(query="", fragment="").geturl()
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"a document is fetched over http or https: got '{shown}'; for a file use from_file"
        )
    if not url.isascii():
        raise UsageError(
            "a URL has ASCII characters only: percent-encode the others, and write a host with "
            f"them as 'xn--…': got '{shown}'"
        )
    request = _lazy.urllib_request.Request(
        url, headers={"Accept": "application/json, application/yaml, */*;q=0.1"}
    )
    try:
        with _lazy.urllib_request.urlopen(request, timeout=_SECONDS) as response:  # checked above
            content: bytes = response.read(_LARGEST + 1)
            found_at: str = response.url
    except (OSError, _lazy.http_client.HTTPException, ValueError) as error:
        raise ToolError(f"the document at {shown} can't be fetched: {error}") from None
    if len(content) > _LARGEST:
        raise ToolError(
            f"the document at {shown} has more than {_LARGEST >> 20} MiB: pass a copy of it to "
            "OpenAPI.from_file"
        )
    return content, found_at
