"""Options of a document, and the operations that they choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from callslip._base.options import check_flag, check_text, check_whole, checked_texts
from callslip._core import Document
from callslip.errors import ToolError, UsageError
from callslip.tools import NeedsApproval
from callslip.tools._approval import check_needs_approval

if TYPE_CHECKING:
    from callslip.openapi import Handler

__all__ = [
    "approvals",
    "check_options",
    "chosen",
    "find_operation",
    "match_handlers",
    "selected",
]


def check_options(client: object, server: object, auth: object, retries: object) -> None:
    """Check what requests are sent with, also where every operation has a handler.

    Raises:
        UsageError: One of them has a wrong type.
    """
    if client is not None and not callable(getattr(client, "request", None)):
        raise UsageError(
            "expected client to have request(method, url, headers=…, content=…): got "
            f"{type(client).__name__}: pass one as httpx.AsyncClient()"
        )
    if server is not None and not isinstance(server, str):
        raise UsageError(
            f"expected server to be a URL: got {server!r}: pass one such as "
            "'https://api.example.com'"
        )
    if auth is not None and not isinstance(auth, Mapping):
        # Not the value: it may be the secret itself.
        kind = type(auth).__name__
        raise UsageError(
            f"expected auth as a dict of secrets by security scheme: got {kind}; pass "
            "{'name of the scheme': secret}, or headers={…} without a scheme"
        )
    check_whole("retries", retries)


def match_handlers(document: Document, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return the handlers by `METHOD /path`."""
    if not isinstance(handlers, Mapping):
        kind = type(handlers).__name__
        raise UsageError(
            f"expected handlers as a dict of functions by operation: got {kind}: pass one such as "
            "{'GET /pets': list_pets}"
        )
    found: dict[str, Handler] = {}
    for key, handler in handlers.items():
        check_text("the operation of a handler", key)
        name = find_operation(document, key)
        if name in found:
            raise UsageError(f"the operation '{name}' has two handlers")
        found[name] = handler
    return found


def chosen(
    document: Document,
    include: Sequence[str],
    tags: Sequence[str] = (),
    read_only: bool = False,  # noqa: FBT001, FBT002  # private
) -> list[str]:
    """Return the operations that fit options.

    Raises:
        UsageError: A pattern or a tag fits none, or no operation fits all of them.
    """
    check_flag("read_only", read_only)
    patterns, wanted = checked_texts("include", include), checked_texts("tags", tags)
    try:
        return document.select(patterns, wanted, read_only)
    except ToolError as error:
        raise UsageError(str(error)) from None


def selected(
    document: Document,
    names: Sequence[str],
    option: str,
    value: bool | Sequence[str],  # noqa: FBT001  # not one, but a choice
) -> set[str]:
    """Return the operations that an option selects."""
    if isinstance(value, bool):
        return set(names) if value else set()
    patterns = checked_texts(option, value)
    return set(chosen(document, patterns)) if patterns else set()


def approvals(
    document: Document, names: Sequence[str], value: NeedsApproval | Sequence[str]
) -> dict[str, NeedsApproval]:
    """Return the option of each operation whose calls may need approval."""
    if callable(value):
        check_needs_approval(value)
        return dict.fromkeys(names, value)
    return dict.fromkeys(selected(document, names, "needs_approval", value), True)


def find_operation(document: Document, key: str) -> str:
    names = document.named(key)
    if not names:
        near = document.nearest(key)
        advice = f": did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
        raise UsageError(f"the document has no operation '{key}'{advice}")
    if len(names) > 1:
        raise UsageError(
            f"the document has several operations '{key}': pass one of {', '.join(names)}"
        )
    return names[0]
