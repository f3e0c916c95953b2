"""Running Python that a model has written: in a box on this machine, or by a runner elsewhere.

    runner = PythonRunner(deps=["numpy"])
    print(runner.run("print(6 * 7)").stdout)

    agent = Agent(model, protocol="react", python=runner)

A script is a new process each time. Its limits are `ScriptLimits`; what comes of it is a
`ScriptResult`, also where it fails or is stopped. Exceptions say that it was not run at all.
"""

from __future__ import annotations

from callslip.sandbox._command import CommandRunner
from callslip.sandbox._events import InputRequest, ScriptEvent
from callslip.sandbox._limits import ScriptLimits
from callslip.sandbox._result import Artifact, Isolation, ScriptResult
from callslip.sandbox._runner import PythonRunner, ScriptSession
from callslip.sandbox._stream import CodeRunner, Place, ScriptStream

__all__ = [
    "Artifact",
    "CodeRunner",
    "CommandRunner",
    "InputRequest",
    "Isolation",
    "Place",
    "PythonRunner",
    "ScriptEvent",
    "ScriptLimits",
    "ScriptResult",
    "ScriptSession",
    "ScriptStream",
]
