"""Options of an MCP server."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypedDict

from callslip._base.options import check_flag, check_seconds, check_text, check_whole
from callslip.errors import UsageError
from callslip.mcp._callbacks import Elicitation
from callslip.mcp._notices import LogLevel, check_log_level
from callslip.tools import NeedsApproval
from callslip.tools._approval import check_needs_approval

__all__ = ["ServerOptions", "check_options"]


class ServerOptions(TypedDict, total=False):
    """Options of a server with any transport.

    Attributes:
        prefix: A text before the names of the server's tools. Default: none.
        include: Names of the tools to offer, without prefix; `read_*` matches all that begin so.
            Default: all tools.
        exclude: Names of tools not to offer, as in `include`. Default: none.
        needs_approval: Whether calls wait until a person approves them; or the names of the tools
            whose calls wait, or a function that decides for each call, as for `tool`. Default:
            `False`.
        repeatable: Whether the same call may be made any number of times, as for polling; or the
            names of the tools whose calls may be repeated: their failed calls are tried again, and
            they are repeated after a crash. Default: `False`.
        untrusted: Whether results come from others, so that their tickets say so, or the names of
            the tools whose results do; see `Ticket.untrusted`. Default: `True`.
        retries: How often a call is retried after a transient failure if it is safe to repeat,
            according to the hints of the tool or `repeatable`. Default: 2.
        resources: Whether the model may read the server's resources, with the tools
            `list_resources` and `read_resource`. They have the prefix too, and are left out if the
            server has no resources. Default: `False`.
        timeout: Seconds until a call fails; `None` for no limit. Default: 60. The clock stops while
            a model or a person answers a request of the server.
        connect_timeout: Seconds for connecting. Default: 30.
        sampling: A model that the server may ask for replies: any model that an agent accepts.
            Default: the server cannot ask.
        elicitation: A function of an `Elicitation`, called when the server asks a person: in a
            thread, or on the private event loop if it is async. It returns the answer as a mapping
            that fits the schema, `True` once the person has opened the address, or `None` to
            decline. Anything else is an error and does not count as consent. Default: the server
            cannot ask.
        roots: Folders and files that the server may ask for, to work in them: paths or `file://`
            addresses. This does not restrict the server. Default: the server cannot ask.
        log_level: The least level of the log messages that the server sends: `"debug"`, `"info"`,
            `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"` or `"emergency"`. They are
            logged by `callslip.mcp`. Default: no level is requested. Servers of the 2026 revision
            then send none.
    """

    prefix: str
    include: Sequence[str] | None
    exclude: Sequence[str]
    needs_approval: NeedsApproval | Collection[str]
    repeatable: bool | Collection[str]
    untrusted: bool | Collection[str]
    retries: int
    resources: bool
    timeout: float | None
    connect_timeout: float
    sampling: object
    elicitation: Callable[[Elicitation], Any] | None
    roots: Sequence[str | os.PathLike[str]] | None
    log_level: LogLevel | None


def check_options(options: ServerOptions) -> None:
    """Check options, all of which are set.

    Raises:
        UsageError: One of them has a wrong value.
    """
    check_text("prefix", options["prefix"])
    for option, seconds in (
        ("timeout", options["timeout"]),
        ("connect_timeout", options["connect_timeout"]),
    ):
        check_seconds(option, seconds, zero=False, none="no limit")
    if options["include"] is not None:
        _check_names("include", options["include"])
    _check_names("exclude", options["exclude"])
    asks, repeats = options["needs_approval"], options["repeatable"]
    if callable(asks):
        check_needs_approval(asks)
    elif not isinstance(asks, bool):
        _check_names("needs_approval", asks)
    if not isinstance(repeats, bool):
        _check_names("repeatable", repeats)
    if not isinstance(options["untrusted"], bool):
        _check_names("untrusted", options["untrusted"])
    check_whole("retries", options["retries"])
    check_flag("resources", options["resources"])
    check_log_level(options["log_level"])


def _check_names(option: str, names: object) -> None:
    if isinstance(names, str):
        raise UsageError(f"expected {option} as a list of names: got {names!r}: pass [{names!r}]")
    if not isinstance(names, Collection) or not all(isinstance(one, str) for one in names):
        raise UsageError(f"expected {option} as a list of names: got {names!r}")
