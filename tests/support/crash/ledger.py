"""What really happened, counted outside the process and its store.

A file that only grows: a line before each model call and tool call, one when its effect is made,
one after it. The process is killed, the machine is not: what was written is there without a sync.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Ledger:
    """Appends lines. One write a line, so that a killed process leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, at: str, kind: str, **more: Any) -> None:
        line = {"at": at, "kind": kind, "pid": os.getpid(), **more}
        os.write(self.file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self.file)


def read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def points(job: str, step: int) -> int:
    """What a step is worth: any tool that does it gives this."""
    return zlib.crc32(f"{job}/{step}".encode()) % 1000
