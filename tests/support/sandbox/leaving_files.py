"""`python -m sandbox.leaving_files STORE FILES`: a process that runs scripts which leave files.

Without `--fleet` it begins a run. With `--hang TURN` it never gets the reply of that turn: it
prints `hangs`, and waits to be killed. With `--slow` no files are written before there is a file
`FILES.go_on`; meanwhile there is a file `FILES.begun`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

from callslip import Agent, File, PythonRunner, TicketStore, tool
from callslip.fleet import Fleet
from callslip.sandbox._file_stores import FolderStore
from scripted import act, finish, turn_of

NAME = "execute_python_code"
LEASE = 3.0

WRITE = (
    "import os, time\nos.makedirs('out')\nopen('stamp', 'w').write(str(time.time_ns()))\n"
    "open('out/table.csv', 'w').write('1,2')\n"
    "open('notes', 'w').write('written by the first script')"
)
READ = (
    "import os\nprint(open('notes').read(), *(sorted(os.listdir(one)) for one in ('out', 'in')), "
    "end='')"
)
TOLD = "written by the first script ['table.csv'] ['a-2.csv', 'a.csv']"
TASK = ["Write and read.", File(b"1", name="a.csv"), File(b"2", name="b/../a.csv")]


@tool(needs_approval=True, effect="idempotent")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def agent(runner: PythonRunner, *, hang: int | None = None, **options: Any) -> Agent:
    """An agent: a script writes files, a call awaits approval, and a script reads the files."""
    replies = [act(NAME, code=WRITE), act("pay", amount=1), act(NAME, code=READ), finish()]

    def model(messages: list[dict[str, Any]]) -> str:
        turn = turn_of(messages)
        if turn == hang:
            print("hangs", flush=True)
            time.sleep(600)
        return replies[turn]

    return Agent(
        model,
        tools=[pay],
        name="writer",
        protocol="react",
        python=runner,
        delegate=False,
        **options,
    )


def start(store: str, files: Path, *options: str) -> subprocess.Popen[str]:
    """Start this program."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox.leaving_files", store, str(files), *options],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    )


class SlowFolder(FolderStore):
    """A folder that is written to when the test says so."""

    def put(self, key: str, content: BinaryIO) -> None:
        path = str(self._folder)
        Path(path + ".begun").touch()
        while not Path(path + ".go_on").exists():
            time.sleep(0.01)
        super().put(key, content)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("files")
    parser.add_argument("--hang", type=int)
    parser.add_argument("--fleet", action="store_true")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    runner = PythonRunner(files=options.files, deps=[])
    if options.slow:
        runner._files = SlowFolder(Path(options.files))
    with TicketStore(options.store) as store:
        if options.fleet:
            fleet = Fleet(store, [agent(runner, hang=options.hang)], lease=LEASE)
            print("ready", flush=True)
            asyncio.run(fleet.work(grace=5))
        else:
            agent(runner, hang=options.hang, store=store).run_sync(TASK)


if __name__ == "__main__":
    main()
