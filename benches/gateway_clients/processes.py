"""A process for each client, in the environment of its framework."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any

from comparison.processes import QUIET

__all__ = ["Client", "Done"]

_START = 180.0
"""Seconds for the imports of a framework."""

Done = dict[str, Any]
"""The calls that were made, with the answer or the error: `made`, `answer`, `error`, `seconds`."""


class Client:
    """A client at one address. Its process is started when there is a task for it.

    Args:
        name: The module in `clients`.
        python: The interpreter of its environment.
        url: The base URL of the model.
        key: Its key.
        log: The file for the stderr of the process.
    """

    def __init__(self, name: str, python: Path, url: str, key: str, log: Path) -> None:
        self._command = [str(python), "-m", "gateway_clients.client", name, url, key]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()

    def work(self, task: dict[str, Any], limit: float) -> Done:
        """Give the client a task. The process is killed after `limit` seconds."""
        done: Done = {"made": [], "answer": "", "error": ""}
        process = self._process or self._start()
        assert process.stdin is not None
        began = time.monotonic()
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        while True:
            row = self._next(limit - (time.monotonic() - began))
            if row is None:
                self.close()
                row = {"error": f"not done after {limit:g} s"}
            if "call" not in row:
                return done | row | {"seconds": round(time.monotonic() - began, 1)}
            done["made"].append(row["call"])

    def close(self) -> None:
        """Stop the process; the next task starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        lines: queue.Queue[bytes] = queue.Queue()
        with self._log.open("ab") as errors:
            process = subprocess.Popen(
                self._command,
                env=os.environ | QUIET,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert process.stdout is not None
        self._reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
        self._reader.start()
        self._process, self._lines = process, lines
        if self._next(_START) is None:
            raise RuntimeError(f"expected {self._command} to start: got its errors in {self._log}")
        return process

    def _next(self, seconds: float) -> dict[str, Any] | None:
        """Return the next row; `None` if there is none in time or the process has ended."""
        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except queue.Empty:
            return None
        return dict(json.loads(line)) if line else None


def _read(out: IO[bytes], lines: queue.Queue[bytes]) -> None:
    with out:
        for line in out:
            lines.put(line)
    lines.put(b"")
