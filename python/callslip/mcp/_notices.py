"""What an MCP server tells its client unasked, and what the client tells about itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from callslip._base import _lazy
from callslip._base.json import to_json
from callslip._base.redaction import Secrets
from callslip.errors import UsageError
from callslip.mcp._stderr import mcp_logger

if TYPE_CHECKING:
    from mcp_types import ListRootsResult, LoggingMessageNotificationParams

__all__ = ["LogLevel", "check_log_level", "log_callback", "root_uris", "roots_callback"]

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""A level of the log messages of MCP servers."""

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}
_LONGEST_MESSAGE = 4096


def check_log_level(level: object) -> None:
    """Check the level of a server's log messages.

    Raises:
        UsageError: It is not a level.
    """
    levels = get_args(LogLevel)
    if level is not None and level not in levels:
        raise UsageError(f"expected log_level as one of {', '.join(levels)}: got {level!r}")


def log_callback(name: str, secrets: Secrets) -> Callable[..., Awaitable[None]]:
    """Return the callback that logs the messages of a server."""

    async def log(params: LoggingMessageNotificationParams) -> None:
        logger, level = mcp_logger(), _LEVELS[params.level]
        if not logger.is_enabled_for(level):
            return
        text = params.data if isinstance(params.data, str) else to_json(params.data)
        part = f" [{params.logger}]" if params.logger else ""
        # Redact before truncating: half of a secret would not be found.
        text = " ".join(secrets.redact(f"{name}{part}: {text}").split())
        logger.log(
            level, "%s", f"{text[:_LONGEST_MESSAGE]}…" if len(text) > _LONGEST_MESSAGE else text
        )

    return log


def root_uris(roots: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the addresses of folders and files: `file://…`.

    Raises:
        UsageError: It is not a list of paths.
    """
    if (
        isinstance(roots, str)
        or not isinstance(roots, Collection)
        or not all(isinstance(one, str | os.PathLike) for one in roots)
    ):
        raise UsageError(f"expected roots as a list of paths: got {roots!r}")
    return [
        one
        if isinstance(one, str) and one.startswith("file://")
        else Path(one).expanduser().absolute().as_uri()
        for one in roots
    ]


def roots_callback(uris: Sequence[str]) -> Callable[..., Awaitable[Any]]:
    """Return the callback for a server that asks for the roots."""

    async def answer(_: object) -> ListRootsResult:
        return _lazy.mcp_types.ListRootsResult.model_validate(
            {"roots": [{"uri": uri} for uri in uris]}
        )

    return answer
