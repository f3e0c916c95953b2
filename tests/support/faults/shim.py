"""The Python side of `faults.c`: it is compiled here, and runs work in processes that it may end.

A process with the shim inside starts once and imports what is slow to import. Each piece of work
runs in a fork of it, with its own fault: hundreds of faults take seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memory_folder import in_memory

HERE = Path(__file__).parent
CALLS = ("read", "write", "sync", "truncate", "unlink")
CHANGES = CALLS[1:]
"""What a fault at `any` counts: a read changes nothing."""


def build(folder: Path) -> Path:
    """Compile the shim."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise RuntimeError("the faults below SQLite need a C compiler: install cc, or say CC=...")
    library = folder / "faults.so"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    source = str(HERE / "faults.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", *warnings, "-o", str(library), source, "-lpthread"],
        check=True,
    )
    return library


@contextlib.contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Make a folder whose syncs cost nothing, where there is one: the shim is the disk here."""
    with tempfile.TemporaryDirectory(prefix="callslip-faults-", dir=in_memory()) as folder:
        yield Path(folder)


@dataclass(frozen=True)
class Fault:
    """What happens at the k-th call of a kind; `faults.c` says what there is."""

    what: str = "none"
    call: str = "any"
    k: int = 1
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.what}:{self.call}:{self.k}"


NONE = Fault()


@dataclass(frozen=True)
class Ended:
    """How a piece of work ended.

    Attributes:
        said: What it said, in order: all of it was true when it was said.
        returned: What it returned, if it came so far.
        error: The names of its exception's classes, and its text.
        signal: What killed it.
        calls: How many calls of each kind reached the files; only where nothing killed it.
        hung: It did not end in time, and was killed for that.
    """

    said: list[Any]
    returned: Any = None
    error: tuple[list[str], str] | None = None
    signal: int | None = None
    calls: dict[str, int] = field(default_factory=dict)
    hung: bool = False

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL and not self.hung

    @property
    def changes(self) -> int:
        """How many calls a fault at `any` can choose from."""
        return sum(self.calls[call] for call in CHANGES)


class Nursery:
    """A process with the shim inside, that forks a child for each piece of work."""

    def __init__(self, folder: Path, imports: Sequence[str] = ()) -> None:
        self.errors = folder / "stderr.txt"
        environment = {key: value for key, value in os.environ.items() if "FAULT" not in key}
        environment["LD_PRELOAD"] = str(build(folder))
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "nursery.py"), *imports],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )

    def run(
        self, work: str, path: Path, fault: Fault = NONE, *, seconds: float = 20, **options: Any
    ) -> Ended:
        """Run `work` ("module:function") on a file, with a fault below it."""
        request = {
            "work": work,
            "path": os.path.realpath(path),
            "fault": str(fault),
            "seed": fault.seed,
            "seconds": seconds,
            "options": options,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the nursery died:\n{self.errors.read_text()}")
        reply = json.loads(line)
        said = [value for kind, value in reply["said"] if kind == "said"]
        last = {kind: value for kind, value in reply["said"] if kind != "said"}
        error = last.get("error")
        return Ended(
            said=said,
            returned=last.get("returned"),
            error=(error[0], error[1]) if error else None,
            signal=reply["signal"],
            calls=dict(zip(CALLS, last.get("calls", ()), strict=False)),
            hung=reply["hung"],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # It ends with its input; `communicate` closes what there is to close.
        self.process.communicate(timeout=200)
