"""Processes that begin in milliseconds: forks of one that has imported all and opened nothing.

`python -m fleets.nursery` is that process. It takes orders as lines of JSON, and ends with whoever
gives them; its children end with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

SUPPORT = Path(__file__).parents[1]


class Nursery:
    """Starts processes and waits for their ends."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "fleets.nursery"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def start(self, life: str, log: Path, *arguments: object) -> int:
        """Start a process, and return its id.

        Args:
            life: What it does: the name of a function of `fleets.lives`.
            log: A file for all that it writes.
            arguments: For that function.
        """
        return self._ask({"start": life, "log": str(log), "arguments": arguments})

    def ended(self, pid: int) -> int | None:
        """Return the exit code of a process, negative for a signal; `None` while it lives."""
        return self._ask({"ended": pid})

    async def end(self, pid: int, seconds: float = 30.0) -> int:
        """Wait for the end of a process, and return its exit code."""
        until = time.monotonic() + seconds
        while (code := self.ended(pid)) is None:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                raise TimeoutError(f"process {pid} has not ended within {seconds} seconds")
            await asyncio.sleep(0.005)
        return code

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._parent.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    from fleets import lives

    alive: set[int] = set()
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                _live(getattr(lives, order["start"]), order["log"], order["arguments"])
            alive.add(pid)
            answer = pid
        else:
            done, status = os.waitpid(order["ended"], os.WNOHANG)
            alive.discard(done)
            answer = os.waitstatus_to_exitcode(status) if done else None
        print(json.dumps(answer), flush=True)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _live(life: Any, log: str, arguments: list[Any]) -> None:
    """Live in this process, which has just been forked, and end it."""
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, of in enumerate((nothing, written, written)):
            os.dup2(of, number)
        logging.basicConfig(level=logging.WARNING)
        asyncio.run(life(*arguments))
        code = 0
    except BaseException:
        # Whatever it is, the process must not go on as its parent.
        logging.getLogger("nursery").exception("a process has failed")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
