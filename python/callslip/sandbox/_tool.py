"""The tool by which a model runs scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from callslip._json import to_json
from callslip.errors import RunCancelled, ScriptRefused
from callslip.sandbox._display import show_artifact
from callslip.sandbox._policy import describe
from callslip.sandbox._result import MODEL_BYTES
from callslip.tools import Context, Outcome, Tool

if TYPE_CHECKING:
    from callslip._runtime.session import Call
    from callslip.sandbox._events import ScriptEvent
    from callslip.sandbox._result import ScriptResult
    from callslip.sandbox._runner import PythonRunner, ScriptSession

__all__ = ["ScriptTool"]

_MESSAGE = 500

_RESUMED = "this run was resumed: files that earlier calls left are gone"

_PARAMETERS = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "The script."},
        "interactive": {
            "type": "boolean",
            "default": False,
            "description": (
                "Whether it asks the user by input(). You then learn only that the session ended."
            ),
        },
    },
    "required": ["code"],
    "additionalProperties": False,
}


class ScriptTool(Tool[..., Any]):
    """A tool whose calls run scripts. Made by `PythonRunner.as_tool`.

    Where a run is driven in a thread, its scripts are followed there; where on an event loop, on
    that. So whoever answers them is asked where the run is.

    Attributes:
        runner: What runs them.
    """

    runner: PythonRunner
    awaits_on_loop = True

    def __init__(
        self, runner: PythonRunner, *, name: str, description: str | None, needs_approval: bool
    ) -> None:
        def execute_python_code(code: str, *, interactive: bool = False) -> dict[str, Any]:
            return runner.run(code, interactive=interactive).for_model(interactive=interactive)

        # A script of a box changes nothing but its own files.
        in_a_box = runner.backend is None and runner.profile != "unconfined"
        super().__init__(
            execute_python_code,
            name=name,
            description=describe(runner) if description is None else description,
            effect="idempotent" if in_a_box else "once",
            needs_approval=needs_approval,
        )
        self.runner = runner

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return _PARAMETERS

    @property
    def wants_context(self) -> bool:
        """Always: a run has a session."""
        return True

    def _spec(self) -> str:
        """Return what the core is told of the tool, as JSON text."""
        return to_json({**json.loads(super()._spec()), "kind": "script"})

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Run a script in this thread.

        Raises:
            SandboxError: It could not be run: the run is to end, and the developer to know.
            Exception: What a function of the program (`on_event`, `ask`, `deps`) raised.
        """
        code, interactive = _read(arguments)
        told = _Telling(context, self.runner.limits.wall_seconds)
        try:
            session = self._session(context)
            try:
                result = session._run(
                    code,
                    interactive=interactive,
                    also=told,
                    wanted=lambda: context is None or not context.cancelled,
                )
            finally:
                if _call_of(context) is None:
                    session.close()
        except Exception as error:  # noqa: BLE001  # told apart there
            return self._not_run(error)
        return self._told(result, context, session, interactive=interactive)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Run a script on this event loop. As `call`."""
        code, interactive = _read(arguments)
        told = _Telling(context, self.runner.limits.wall_seconds)
        try:
            session = self._session(context)
            try:
                result = await session._arun(code, interactive=interactive, also=told)
            finally:
                if _call_of(context) is None:
                    session.close()
        except Exception as error:  # noqa: BLE001  # told apart there
            return self._not_run(error)
        return self._told(result, context, session, interactive=interactive)

    def _told(
        self,
        result: ScriptResult,
        context: Context | None,
        session: ScriptSession,
        *,
        interactive: bool,
    ) -> Outcome:
        call = _call_of(context)
        if interactive or call is None:
            return self._returned(result.for_model(interactive=interactive))
        note, session._note = session._note, None
        if note is not None:
            result = replace(result, hints=(note, *result.hints))
        most = call.session.agent.limits.result_bytes
        return self._returned(result._told(min(most, MODEL_BYTES)))

    def _not_run(self, error: Exception) -> Outcome:
        if isinstance(error, ScriptRefused):
            return "error", f"{error.code}: {error}"
        if isinstance(error, RunCancelled):
            return self._failed(error)
        # Neither the model nor its script has made it: what a function of the program raises, too.
        raise error

    def _session(self, context: Context | None) -> ScriptSession:
        """Return the session of the run that calls, which ends with it."""
        call = _call_of(context)
        if call is None:
            return self.runner.session()
        return call.session.keep(self, lambda: self._begun(call))

    def _begun(self, call: Call) -> ScriptSession:
        """Make the session of a run, which may have had one in another process."""
        session = self.runner.session()
        if any(one.tool == self.name and one.outcome == "ok" for one in call.session.run.tickets):
            session._note = _RESUMED
        return session


class _Telling:
    """Tells whoever watches the run how far a script has come."""

    def __init__(self, context: Context | None, seconds: float) -> None:
        self._context = context
        self._begun = time.monotonic()
        self._seconds = seconds

    def __call__(self, event: ScriptEvent) -> None:
        data = event.data
        if event.kind == "artifact":
            show_artifact(data["artifact"])
            message = f"left {data['path']}"
        elif event.kind in {"stdout", "stderr"}:
            message = data["text"]
        elif event.kind == "started":
            message = f"started ({data['profile']})"
        elif event.kind == "input_request":
            message = f"asks: {data['prompt']}"
        elif event.kind == "finished":
            message = f"ended: {data['status']}"
        else:
            message = data["message"]
        if self._context is not None:
            done = round(time.monotonic() - self._begun, 3)
            self._context.progress(done, self._seconds, message[:_MESSAGE])


def _call_of(context: Context | None) -> Call | None:
    call: Any = None if context is None else context._call
    return call if hasattr(call, "session") else None


def _read(arguments: Mapping[str, Any]) -> tuple[str, bool]:
    return arguments["code"], arguments.get("interactive", False)
