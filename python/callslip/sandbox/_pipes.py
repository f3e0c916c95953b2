"""The pipes of an external runner, none of which blocks its reader or writer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

__all__ = ["CHUNK", "ErrorOutput", "LineReader", "MessageWriter", "WakePipe", "read_available"]

CHUNK = 1 << 16
"""The most bytes that are read or written at once."""

_KEPT = 2000
"""Bytes of the error output that are kept."""


class WakePipe:
    """Wakes a thread that waits for it, with `select` for instance."""

    def __init__(self) -> None:
        self._readable, self._writable = os.pipe()
        for end in (self._readable, self._writable):
            os.set_blocking(end, False)

    def fileno(self) -> int:
        return self._readable

    def wake(self) -> None:
        """Wake the thread. After `close`, this does nothing."""
        with suppress(OSError):
            os.write(self._writable, b"!")

    def drain(self) -> None:
        """Wait for the next `wake` from now on."""
        with suppress(BlockingIOError):
            while os.read(self._readable, 512):
                pass

    def close(self) -> None:
        """Close both ends."""
        os.close(self._readable)
        os.close(self._writable)
        self._writable = -1


class MessageWriter:
    """Messages for the standard input of the process, sent as far as it reads them."""

    def __init__(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self.pipe = pipe
        self._unsent = bytearray()

    @property
    def has_unsent(self) -> bool:
        """Whether there is something to write."""
        return bool(self._unsent)

    def add(self, message: dict[str, Any]) -> None:
        """Send a message with the next calls of `write`."""
        # Without raw surrogates, which UTF-8 does not have.
        self._unsent += json.dumps(message).encode() + b"\n"

    def write(self) -> None:
        """Write what the pipe has room for."""
        try:
            sent = os.write(self.pipe.fileno(), self._unsent[:CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            # Its last words may still be on their way.
            self._unsent.clear()
            return
        del self._unsent[:sent]


class LineReader:
    """The standard output of the process, in lines."""

    def __init__(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self.pipe = pipe
        self._line = bytearray()
        self._searched = 0

    @property
    def unfinished(self) -> int:
        """The number of bytes of the line that is not complete yet."""
        return len(self._line)

    def read(self) -> bytes | None:
        """Read a piece; `None` if there is none yet, and `b""` at the end."""
        piece = read_available(self.pipe)
        self._line += piece or b""
        return piece

    def lines(self) -> Iterator[bytes]:
        """Take the complete lines, one by one."""
        while (at := self._line.find(b"\n", self._searched)) >= 0:
            line = bytes(self._line[:at])
            del self._line[: at + 1]
            self._searched = 0
            yield line
        self._searched = len(self._line)


class ErrorOutput:
    """The last part of the standard error of the process."""

    def __init__(self, pipe: IO[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self.pipe = pipe
        self._kept = b""

    def read(self) -> bytes | None:
        """Read a piece; `None` if there is none yet, and `b""` at the end."""
        piece = read_available(self.pipe)
        self._kept = (self._kept + (piece or b""))[-_KEPT:]
        return piece

    def quote(self) -> str:
        """Return the last words as the end of a message; nothing if there are none."""
        words = " ".join(self._kept.decode("utf-8", "replace").split())
        return f": it wrote {words[-500:]!r}" if words else ""


def read_available(pipe: IO[bytes]) -> bytes | None:
    """Return the available bytes; `None` if there are none yet, and `b""` at the end."""
    try:
        return os.read(pipe.fileno(), CHUNK)
    except BlockingIOError:
        return None
