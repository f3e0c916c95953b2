"""Hostile scripts: what each does, with what limits it is run, and what must hold of it."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent.parent
OWN = SUPPORT.parent / "data" / "hostile_scripts.jsonl"
ATTEMPTS = SUPPORT.parent / "data" / "hostile_attempts.jsonl"
"""Attempts that end at once: each works if it raises nothing."""

TOGETHER = """
import ctypes, os, signal
def sc(*words):
    result = ctypes.CDLL(None, use_errno=True).syscall(*words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
for name, code in ATTEMPTS:
    if os.fork() == 0:
        os.makedirs(name)
        os.chdir(name)
        signal.alarm(20)
        try:
            exec(code, {"ctypes": ctypes, "os": os, "sc": sc})
        except BaseException as error:
            print("BLOCKED", name, repr(error)[:60], flush=True)
            os._exit(0)
        print("ESCAPED", name, flush=True)
        os._exit(1)
    if os.wait()[1] not in (0, 256):
        print("ESCAPED", name, "ended otherwise", flush=True)
print("DONE")
"""
"""A script that makes attempts, each in a process of its own."""

SCRIPTS = 2
"""Scripts that make the attempts: two lanes are then at work."""

BOXED = ("isolated", "restricted")


@dataclass(frozen=True)
class Case:
    """One script.

    `options`: `wall_ms`, `cpu_s`, `cancel_ms`; `limits` (fields of `ScriptLimits`); `answers`
    (texts that prompts are answered with, `null` for the end of input; without it an
    interactive script is answered for ever, or never with `"silent": true`); `boxed` (never run
    without a box: it would harm the machine); `machine` (whose system calls it makes).
    """

    id: str
    code: str
    check: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    expect: str = ""

    @property
    def kind(self) -> str:
        return self.check.get("kind", "script")

    def runs_in(self, profile: str) -> bool:
        """Whether the case says something of this profile on this machine."""
        # Numbers of system calls are those of one machine.
        machine = self.options.get("machine", "x86_64" if "syscall(" in self.code else None)
        if machine not in (None, platform.machine()):
            return False
        if profile not in BOXED:
            return not self.options.get("boxed") and self.kind == "script"
        return profile == "isolated" or self.check.get("tier") != "ns"


def load(file: Path = OWN) -> list[Case]:
    """The cases of a file, the slow ones first."""
    cases: dict[str, Case] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        case = read(json.loads(line))
        assert case.id not in cases, f"{file}: {case.id} is there twice"
        cases[case.id] = case
    if file == OWN:
        cases |= {case.id: case for case in _together()}
    return sorted(cases.values(), key=lambda case: -_seconds(case))


def _together() -> list[Case]:
    """The attempts, as many in a script as its output holds."""
    attempts = attempts_of()
    size = -(-len(attempts) // SCRIPTS)
    cases = []
    for number in range(SCRIPTS):
        some = [(one["id"], one["code"]) for one in attempts[number * size : (number + 1) * size]]
        check = {"status": ["ok"], "no": "ESCAPED", "has": "DONE", "exit": 0}
        code = f"ATTEMPTS = {some!r}\n{TOGETHER}"
        options = {"boxed": True, "machine": "x86_64"}
        cases.append(Case(f"attempts-{number}", code, check, options, "all are refused"))
    return cases


def attempts_of() -> list[dict[str, str]]:
    """The attempts that end at once."""
    return [json.loads(line) for line in ATTEMPTS.read_text(encoding="utf-8").splitlines()]


def read(given: dict[str, Any]) -> Case:
    options = dict(given.get("opts", {}))
    check = dict(given["check"])
    if check.get("kind") == "interactive" and "status" not in check:
        status = "idle_timeout" if "idle_timeout" in given["expect"] else "prompt_limit"
        check["status"] = [status]
        options.setdefault("silent", status == "idle_timeout")
        options.setdefault("limits", {"idle_seconds": 1.0, "prompts": 20})
    return Case(given["id"], given["code"], check, options, given["expect"])


def _seconds(case: Case) -> float:
    return float(case.options.get("wall_ms", 0)) + 1000 * float(case.options.get("cpu_s", 0))
