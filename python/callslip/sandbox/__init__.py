"""Runners for Python code that a model has written: in a sandbox on this machine, or elsewhere.

    runner = PythonRunner(deps=["numpy"])
    print(runner.run("print(6 * 7)").stdout)

    agent = Agent(model, protocol="react", python=runner)

Each script is a new process, with `ScriptLimits`. The result is a `ScriptResult`, also if a script
fails or is stopped. An exception means that the script was not run at all.
"""

from __future__ import annotations

from callslip.sandbox._command import CommandRunner
from callslip.sandbox._events import InputRequest, ScriptEvent
from callslip.sandbox._limits import ScriptLimits
from callslip.sandbox._monty import MontyRunner
from callslip.sandbox._result import Artifact, Isolation, ScriptResult
from callslip.sandbox._runner import PythonRunner
from callslip.sandbox._session import ScriptSession
from callslip.sandbox._stream import CodeRunner, Place, ScriptStream

__all__ = [
    "Artifact",
    "CodeRunner",
    "CommandRunner",
    "InputRequest",
    "Isolation",
    "MontyRunner",
    "Place",
    "PythonRunner",
    "ScriptEvent",
    "ScriptLimits",
    "ScriptResult",
    "ScriptSession",
    "ScriptStream",
]
