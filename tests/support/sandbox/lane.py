"""A process that runs hostile scripts one after the other and looks around after each.

    python -m sandbox.lane PROFILE

A line of the input is a case; a line of the output says what is wrong with it. One process a
lane: what is left of a script is then left of this one. Processes that lose their parent come
to the lane's own parent, which waits for them as an init would.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sandbox.cases import Case
from sandbox.checks import Outcome, problems
from sandbox.scene import Scene, gone, processes_below

PR_SET_CHILD_SUBREAPER = 36
LONGEST = 15.0
"""Seconds that a script may take which doesn't say otherwise."""
AT_ALL = 120.0
"""Seconds for one that is to end otherwise, on a machine with other work to do."""
UNTOLD: dict[str, Any] = {
    "exit_code": None, "signal": None, "stdout": "", "stderr": "", "stdout_truncated": False,
    "stderr_truncated": False, "hints": [], "artifacts": [], "layers": [],
}  # fmt: skip
GRACE = 20.0
"""Seconds in which what is killed must be gone after the result."""


class Lane:
    """Runs cases in one profile, within one scene."""

    def __init__(self, profile: str, scene: Scene, folder: Path) -> None:
        self.profile = profile
        self.scene = scene
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(self.temporary)
        self.events: list[str] = []
        self.finished: dict[str, Any] = {}

    def run(self, case: Case) -> tuple[list[str], dict[str, Any]]:
        """What is wrong, and what came of it."""
        self.events.clear()
        self.finished = {}
        began = time.monotonic()
        result = self._result(case)
        seconds = time.monotonic() - began
        outcome = Outcome(
            result,
            seconds,
            self.artifacts,
            contacts=self.scene.contacts(),
            processes=gone(os.getppid(), self._known(), GRACE),
            disturbed=self.scene.disturbed(),
            files=sorted(entry.name for entry in self.temporary.iterdir()),
            events=list(self.events),
        )
        check = {
            **case.check,
            "absent": [self.scene.fill(place) for place in case.check.get("absent", ())],
        }
        found = problems(Case(case.id, case.code, check), outcome)
        return found, {**result, "seconds": seconds}

    def _known(self) -> set[int]:
        return {os.getpid(), self.scene.victim.pid}

    def tidy(self) -> None:
        """Take away what is left, so that the next case isn't blamed for it."""
        for pid in processes_below(os.getppid()).keys() - self._known():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for folder in (self.artifacts, self.temporary):
            if any(folder.iterdir()):
                subprocess.run(["chmod", "-R", "u+rwx", folder], check=False)
                subprocess.run(["rm", "-rf", folder], check=True)
                folder.mkdir()

    def _result(self, case: Case) -> dict[str, Any]:
        from callslip import PythonRunner, ScriptLimits
        from callslip.errors import ScriptRefused

        options = case.options
        may_time_out = "timeout" in case.check.get("status", ["timeout"])
        longest = LONGEST if may_time_out else AT_ALL
        limits: dict[str, Any] = {"wall_seconds": longest, **options.get("limits", {})}
        if "wall_ms" in options and may_time_out:
            limits["wall_seconds"] = options["wall_ms"] / 1000
        if "cpu_s" in options:
            limits["cpu_seconds"] = options["cpu_s"]
        asking = case.kind == "interactive"
        with PythonRunner(
            profile=self.profile,
            limits=ScriptLimits(**limits),
            deps=lambda _: False,
            ask=_answerer(case) if asking else None,
            artifacts=self.artifacts,
            on_event=self._heard,
        ) as runner:
            code = self.scene.fill(case.code)
            try:
                if asking or "cancel_ms" in options:
                    result = asyncio.run(self._arun(runner, code, asking, options))
                else:
                    result = runner.run(code)
            except ScriptRefused as refused:
                return {"refused": refused.code, "message": str(refused)}
        if result is None:
            return {**UNTOLD, "status": "cancelled", **self.finished}
        return told(result)

    def _heard(self, event: Any) -> None:
        self.events.append(event.kind)
        if event.kind == "finished":
            self.finished = dict(event.data)

    async def _arun(self, runner: Any, code: str, asking: bool, options: dict[str, Any]) -> Any:
        task = asyncio.create_task(runner.arun(code, interactive=asking))
        if "cancel_ms" in options:
            await asyncio.sleep(options["cancel_ms"] / 1000)
            task.cancel()
        with suppress(asyncio.CancelledError):
            return await task
        # A caller that cancels gets its own cancellation; the events tell how the script ended.
        return None


def _answerer(case: Case) -> Any:
    answers = iter(case.options["answers"]) if "answers" in case.options else None

    async def answer(request: Any) -> str | None:
        if case.options.get("silent"):
            await asyncio.Event().wait()
        return "yes" if answers is None else next(answers, None)

    return answer


def told(result: Any) -> dict[str, Any]:
    """The fields of a result, as they stand in the wire form."""
    names = (
        "status", "exit_code", "signal", "stdout", "stderr",
        "stdout_truncated", "stderr_truncated", "hints",
    )  # fmt: skip
    fields = {name: getattr(result, name) for name in names}
    fields["artifacts"] = [
        {name: getattr(one, name) for name in ("path", "size", "sha256")} | {"file": str(one.file)}
        for one in result.artifacts
    ]
    fields["layers"] = list(result.isolation.layers)
    return fields


def serve(profile: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="callslip-lane-"))
    with Scene() as scene:
        lane = Lane(profile, scene, folder)
        for line in sys.stdin:
            given = json.loads(line)
            case = Case(**given)
            try:
                found, result = lane.run(case)
            except Exception as error:
                found, result = [f"{type(error).__name__}: {error}"], {}
            lane.tidy()
            told = {"id": case.id, "wrong": found, **result}
            print(json.dumps(told), flush=True)
    shutil.rmtree(folder)


def main() -> int:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    lane = os.fork()
    if lane == 0:
        serve(sys.argv[1])
        return 0
    while True:
        pid, status = os.wait()
        if pid == lane:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
