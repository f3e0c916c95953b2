"""Fetching of documents by their URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip._base import _lazy
from callslip._base.options import check_text
from callslip.errors import ToolError, UsageError
from callslip.openapi._server import is_link_local

if TYPE_CHECKING:
    from urllib.request import OpenerDirector, Request

__all__ = ["fetch"]

_SECONDS = 30.0
_LARGEST = 64 << 20


def _opener() -> OpenerDirector:
    """Return what follows redirects, but not to where others can read or another network begins."""

    class Redirects(_lazy.urllib_request.HTTPRedirectHandler):
        def redirect_request(  # noqa: PLR0917  # the library calls it so
            self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
        ) -> Request | None:
            target = _lazy.urllib_parse.urlsplit(newurl)
            is_downgrade = req.full_url.lower().startswith("https:") and target.scheme != "https"
            if is_downgrade or is_link_local(target.hostname or ""):
                raise ValueError(f"it redirects to {target.scheme}://{target.hostname}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return _lazy.urllib_request.build_opener(Redirects)


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
        with _opener().open(request, timeout=_SECONDS) as response:  # checked above
            content: bytes = response.read(_LARGEST + 1)
            found_at: str = response.url
    except (OSError, _lazy.http_client.HTTPException, ValueError) as error:
        raise ToolError(
            f"the document at {shown} can't be fetched: {error}; check the address, and that its "
            "server runs, or use from_file"
        ) from None
    if len(content) > _LARGEST:
        raise ToolError(
            f"the document at {shown} has more than {_LARGEST >> 20} MiB: pass a copy of it to "
            "OpenAPI.from_file"
        )
    return content, found_at
