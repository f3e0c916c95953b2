"""Loggers that never raise, even if a handler or filter of the program does."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from callslip._base import _lazy

__all__ = ["GuardedLogger"]

_INFO, _WARNING, _ERROR = 20, 30, 40


class GuardedLogger:
    """Writes records to the logger of a name. Exceptions of a handler are shown on standard error.

    Like `logging` itself, it hides them if `logging.raiseExceptions` is false.

    Args:
        name: The name of the logger.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def info(self, text: str, *args: object) -> None:
        """Write a record of the level INFO."""
        self._write(_INFO, text, args)

    def warning(self, text: str, *args: object, exc_info: Any = None) -> None:
        """Write a record of the level WARNING."""
        self._write(_WARNING, text, args, exc_info)

    def error(self, text: str, *args: object, exc_info: Any = None) -> None:
        """Write a record of the level ERROR."""
        self._write(_ERROR, text, args, exc_info)

    def exception(self, text: str, *args: object) -> None:
        """Write a record of the level ERROR, with the exception that is being handled."""
        self._write(_ERROR, text, args, exc_info=True)

    def is_enabled_for(self, level: int) -> bool:
        """Whether a record of this level would be written."""
        return _lazy.logging.getLogger(self.name).isEnabledFor(level)

    def log(
        self, level: int, text: str, *args: object, extra: Mapping[str, object] | None = None
    ) -> None:
        """Write a record of a level, with other attributes."""
        self._write(level, text, args, extra=extra)

    def _write(
        self,
        level: int,
        text: str,
        args: tuple[object, ...],
        exc_info: Any = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        logger = _lazy.logging.getLogger(self.name)
        try:
            # The record names the place from which the logger was called.
            logger.log(level, text, *args, exc_info=exc_info, extra=extra, stacklevel=3)
        except Exception:  # noqa: BLE001  # it is shown
            if _lazy.logging.raiseExceptions:
                # Standard error can be closed or missing.
                with suppress(Exception):
                    print("--- Logging error ---", file=sys.stderr)  # noqa: T201
                    traceback.print_exc(file=sys.stderr)
