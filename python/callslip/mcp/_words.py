"""What a server writes, and what is said of it: for the log and for errors, without secrets."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TextIO
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from callslip._redaction import Secrets

__all__ = [
    "ServerErrors",
    "hidden_in",
    "hidden_in_schema",
    "log",
    "secrets_of",
    "shown_url",
]

_SHORTEST_SECRET = 8
_PLAIN_HEADERS = {"accept", "accept-encoding", "connection", "content-type", "user-agent"}
_LONGEST_LINE = 4096
_LONGEST_READ = 1 << 16
_LONGEST_SECRET = 1 << 15
_LAST_LINES = 5
_QUOTED = 300


def log() -> logging.Logger:
    """Return the logger of this module's users.

    Without a handler of the program's own, nothing is to appear on its standard error: neither of
    ours nor of the SDK's, which logs every line that it can't read with a traceback.
    """
    for name in ("callslip", "mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return logging.getLogger("callslip.mcp")


def secrets_of(
    *,
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    url: str = "",
) -> Secrets:
    """Return what was given to one server alone.

    Args:
        headers: Sent with each request.
        env: The server's own environment variables.
        url: Its user info and the values of its query are secret.
    """
    found = set()
    for header, value in (headers or {}).items():
        if header.lower() not in _PLAIN_HEADERS:
            # `Bearer …`: a server may well tell of the second part alone.
            found |= {value, value.rpartition(" ")[2]}
    found |= {
        value
        for name, value in (env or {}).items()
        if not (_is_path(value) or _is_word(name, value))
    }
    parts = urlsplit(url)
    found |= {value for _, value in parse_qsl(parts.query)}
    found |= {parts.username or "", parts.password or "", unquote(parts.password or "")}
    # Short ones are flags and numbers, and would tear holes into any text.
    return Secrets(found, shortest=_SHORTEST_SECRET)


def hidden_in(value: Any, secrets: Secrets) -> Any:
    """Return a JSON value without the secrets in its texts."""
    if isinstance(value, str):
        return secrets.hidden(value)
    if isinstance(value, list):
        return [hidden_in(one, secrets) for one in value]
    if isinstance(value, dict):
        return {secrets.hidden(name): hidden_in(one, secrets) for name, one in value.items()}
    return value


def hidden_in_schema(schema: Any, secrets: Secrets) -> Any:
    """Return a JSON Schema without the secrets in what it says to a reader.

    Names and the values that are allowed stay: the server knows them in no other form.
    """
    if isinstance(schema, list):
        return [hidden_in_schema(one, secrets) for one in schema]
    if not isinstance(schema, dict):
        return schema
    clean: dict[str, Any] = {}
    for name, one in schema.items():
        if name in {"description", "title", "$comment"} and isinstance(one, str):
            clean[name] = secrets.hidden(one)
        elif name in {"properties", "$defs", "definitions"} and isinstance(one, dict):
            clean[name] = {inner: hidden_in_schema(part, secrets) for inner, part in one.items()}
        elif name not in {"default", "examples"} or hidden_in(one, secrets) == one:
            clean[name] = hidden_in_schema(one, secrets)
    return clean


def _is_word(name: str, value: str) -> bool:
    """Whether it is a setting such as `production`, which results may well hold too."""
    told = re.search("key|token|secret|pass|credential|auth", name, re.IGNORECASE)
    return told is None and re.fullmatch("[a-z][a-z_.-]*", value) is not None


def _is_path(value: str) -> bool:
    return all(os.path.exists(part) for part in value.split(os.pathsep) if part)  # noqa: PTH110


def shown_url(url: str) -> str:
    """Return an address without user info and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


class ServerErrors:
    """A server's standard error: a line a record of the log, and the last lines for errors.

    Args:
        name: The server's.
        secrets: What is hidden.
    """

    def __init__(self, name: str, secrets: Secrets) -> None:
        self._name = name
        self._secrets = secrets
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        reading, writing = os.pipe()
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self.pipe: TextIO = os.fdopen(writing, "w")
        # Whatever handles the log may take its time, which is not that of the event loop.
        self._thread = threading.Thread(target=self._read, name="callslip-mcp-log", daemon=True)

    def begin(self) -> None:
        """Say that the server has the pipe, or will never have it."""
        self.pipe.close()
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether all of it was read."""
        return not self._thread.is_alive()

    def quoted(self) -> str:
        """Return the last lines, for an error; nothing where there are none."""
        text = " | ".join(self._last)
        return f"…{text[-_QUOTED:]}" if len(text) > _QUOTED else text

    def _read(self) -> None:
        logger = log()
        rest = b""
        with self._reading:
            while chunk := self._reading.read(65536):
                *lines, rest = re.split(rb"\r\n|\n|\r", rest + chunk)
                if len(rest) > _LONGEST_READ:
                    begin, rest = self._cut(rest)
                    lines.append(begin)
                self._tell(logger, lines)
        self._tell(logger, [rest])

    def _cut(self, line: bytes) -> tuple[bytes, bytes]:
        """Cut a line that is too long to wait for its end, and no secret with it.

        One that is whole is hidden before; one that may go on stands in the second part.
        """
        text = self._secrets.hidden(line.decode("utf-8", "surrogateescape"))
        clean = text.encode("utf-8", "surrogateescape")
        return clean[:-_LONGEST_SECRET], clean[-_LONGEST_SECRET:]

    def _tell(self, logger: logging.Logger, lines: Iterable[bytes]) -> None:
        for line in lines:
            # Hidden before it is cut: half a secret is not found.
            text = self._secrets.hidden(line.decode("utf-8", "replace").rstrip())
            if len(text) > _LONGEST_LINE:
                text = f"{text[:_LONGEST_LINE]}…"
            if text:
                self._last.append(text)
                logger.info("%s: %s", self._name, text)
