"""The standard error of an MCP server: written to the log, and quoted in errors."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import deque
from collections.abc import Iterable
from typing import TextIO

from callslip._base.log import GuardedLogger
from callslip._base.redaction import Secrets

__all__ = ["ServerStderr", "mcp_logger"]

_LONGEST_LINE = 4096
_LONGEST_READ = 1 << 16
_LONGEST_SECRET = 1 << 15
_LAST_LINES = 5
_QUOTED = 300


def mcp_logger() -> GuardedLogger:
    """Return the logger of MCP servers.

    Without a handler of the program, logging would write to its standard error: our records and
    those of the SDK, which logs each unreadable line with a traceback.
    """
    for name in ("callslip", "mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return GuardedLogger("callslip.mcp")


class ServerStderr:
    """A server's standard error: each line becomes a log record, and errors quote the last ones.

    Args:
        name: The name of the server.
        secrets: The secrets to redact.
    """

    def __init__(self, name: str, secrets: Secrets) -> None:
        self._name = name
        self._secrets = secrets
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        reading, writing = os.pipe()
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self.pipe: TextIO = os.fdopen(writing, "w")
        # In a thread, because handlers of the log may block.
        self._thread = threading.Thread(target=self._read, name="callslip-mcp-log", daemon=True)

    def start(self) -> None:
        """Start reading, once the server has inherited the pipe or failed to start."""
        self.pipe.close()
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether everything has been read."""
        return not self._thread.is_alive()

    def quote(self) -> str:
        """Return the last lines, for an error; an empty text if there are none."""
        text = " | ".join(self._last)
        return f"…{text[-_QUOTED:]}" if len(text) > _QUOTED else text

    def _read(self) -> None:
        logger = mcp_logger()
        rest = b""
        with self._reading:
            while chunk := self._reading.read(65536):
                *lines, rest = re.split(rb"\r\n|\n|\r", rest + chunk)
                if len(rest) > _LONGEST_READ:
                    begin, rest = self._split_long_line(rest)
                    lines.append(begin)
                self._log_lines(logger, lines)
        self._log_lines(logger, [rest])

    def _split_long_line(self, line: bytes) -> tuple[bytes, bytes]:
        """Split a line that is too long to wait for its end, but not within a secret.

        A complete secret is redacted first. One that may be incomplete stays in the second part.
        """
        text = self._secrets.redact(line.decode("utf-8", "surrogateescape"))
        clean = text.encode("utf-8", "surrogateescape")
        return clean[:-_LONGEST_SECRET], clean[-_LONGEST_SECRET:]

    def _log_lines(self, logger: GuardedLogger, lines: Iterable[bytes]) -> None:
        for line in lines:
            # Redact before truncating: half of a secret would not be found.
            text = self._secrets.redact(line.decode("utf-8", "replace").rstrip())
            if len(text) > _LONGEST_LINE:
                text = f"{text[:_LONGEST_LINE]}…"
            if text:
                self._last.append(text)
                logger.info("%s: %s", self._name, text)
