"""What has really happened in a sequence: calls that began, and what was asked for and answered.

Lines are kept in memory, or in a file that several processes write. What was written is there when
its process is killed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Ledger:
    """Appends lines, in the order of the clock that all processes of a machine share.

    Args:
        path: The file; `None` for memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lines: list[Line] = []
        self._lock = threading.Lock()
        self._number = 0
        self._file = None if path is None else os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)

    def write(self, kind: str, **more: Any) -> Line:
        """Write a line down, and return it."""
        with self._lock:
            self._number += 1
            line = {"kind": kind, "at": time.monotonic_ns(), "id": [os.getpid(), self._number]}
            line |= more
            if self._file is None:
                self._lines.append(line)
            else:
                os.write(self._file, json.dumps(line).encode() + b"\n")
        return line

    def read(self) -> list[Line]:
        """Return all lines of all processes."""
        if self._file is None:
            return list(self._lines)
        length = os.fstat(self._file).st_size
        lines = os.pread(self._file, length, 0).decode().splitlines()
        return sorted(map(json.loads, lines), key=lambda line: line["at"])

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
