"""The tool with which a model runs scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from callslip._base.json import to_json
from callslip._threads import pool
from callslip.errors import RunCancelled, ScriptRefused
from callslip.sandbox._attached import attached_files
from callslip.sandbox._description import describe
from callslip.sandbox._display import show_artifact
from callslip.sandbox._result import MODEL_BYTES
from callslip.tools import Context, NeedsApproval, Outcome, Tool

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.parts import File
    from callslip.runs import Run
    from callslip.sandbox._events import ScriptEvent
    from callslip.sandbox._result import ScriptResult
    from callslip.sandbox._runner import PythonRunner
    from callslip.sandbox._session import ScriptSession

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
    """A tool whose calls run scripts. Created by `PythonRunner.as_tool`.

    A script is followed in the thread or on the event loop of its run, where its questions are
    asked too.

    Attributes:
        runner: The runner of the scripts.
    """

    runner: PythonRunner
    awaits_on_loop = True

    def __init__(
        self,
        runner: PythonRunner,
        *,
        name: str,
        description: str | None,
        needs_approval: NeedsApproval,
    ) -> None:
        def execute_python_code(code: str, *, interactive: bool = False) -> dict[str, Any]:
            return runner.run(code, interactive=interactive).for_model(interactive=interactive)

        # A script in a sandbox changes only its own files.
        in_a_box = runner.backend is None and runner.profile != "unconfined"
        super().__init__(
            execute_python_code,
            name=name,
            description=describe(runner) if description is None else description,
            effect="idempotent" if in_a_box else "once",
            retries=0,
            needs_approval=needs_approval,
        )
        self.runner = runner
        self.reads_files: bool = runner._takes_files

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return _PARAMETERS

    @property
    def wants_context(self) -> bool:
        """Whether calls receive the context: always, because it contains the session."""
        return True

    def _spec(self) -> str:
        """Return the specification of the tool for the core, as JSON text."""
        return to_json({**json.loads(super()._spec()), "kind": "script"})

    def call(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Run a script in this thread.

        Raises:
            SandboxError: The script could not be run. This ends the run.
            Exception: A function of the program (`on_event`, `ask`, `deps`) raised it.
        """
        code, interactive = _read(arguments)
        caller = _caller_of(context)
        reporter = _ProgressReporter(context, self.runner.limits.wall_seconds)
        try:
            session = self._session(caller)
            try:
                result = session._run(
                    code,
                    interactive=interactive,
                    listener=reporter,
                    wanted=lambda: context is None or not context.cancelled,
                    files=self._files(caller),
                )
            finally:
                if caller is None:
                    session.close()
        except Exception as error:  # noqa: BLE001  # classified there
            return self._outcome_of_failure(error)
        attached = {} if interactive else attached_files(result.artifacts)
        return self._outcome_of(result, attached, caller, session, interactive=interactive)

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Run a script on this event loop, like `call`."""
        code, interactive = _read(arguments)
        caller = _caller_of(context)
        reporter = _ProgressReporter(context, self.runner.limits.wall_seconds)
        try:
            session = self._session(caller)
            try:
                result = await session._arun(
                    code, interactive=interactive, listener=reporter, files=self._files(caller)
                )
            finally:
                if caller is None:
                    session.close()
        except Exception as error:  # noqa: BLE001  # classified there
            return self._outcome_of_failure(error)
        attached: Mapping[str, File | str] = {}
        if result.artifacts and not interactive:
            # They may be large.
            attached = await pool.in_thread(lambda: attached_files(result.artifacts))
        return self._outcome_of(result, attached, caller, session, interactive=interactive)

    def _outcome_of(
        self,
        result: ScriptResult,
        attached: Mapping[str, File | str],
        caller: RunSession | None,
        session: ScriptSession,
        *,
        interactive: bool,
    ) -> Outcome:
        if interactive:
            return self._outcome_of_result(result.for_model(interactive=True))
        if caller is None:
            return self._outcome_of_result(result._for_model_within(MODEL_BYTES, attached))
        note, session._note = session._note, None
        if note is not None:
            result = replace(result, hints=(note, *result.hints))
        most = json.loads(caller.core.limits)["result_bytes"]
        most = min(most, MODEL_BYTES)
        return self._outcome_of_result(result._for_model_within(most, attached))

    def _outcome_of_failure(self, error: Exception) -> Outcome:
        if isinstance(error, ScriptRefused):
            # The very same script may be run once the files can be fetched.
            return Outcome.Error(f"{error.code}: {error}", error.code == "files_unavailable")
        if isinstance(error, RunCancelled):
            return self._outcome_of_error(error)
        # Not a failure of the model or its script, so it ends the run.
        raise error

    def _session(self, caller: RunSession | None) -> ScriptSession:
        """Return the session of the calling run, which ends with the run."""
        if caller is None:
            return self.runner.session()
        return caller.resource(self, lambda: self._start_session(caller.run))

    def _files(self, caller: RunSession | None) -> dict[str, File]:
        """Return the files of the calling run that its model knows."""
        sent = None if caller is None else caller.run._reads.messages.sent
        if sent is None or sent.files is None or not self.reads_files:
            return {}
        return sent.files.by_name()

    def _start_session(self, run: Run[Any]) -> ScriptSession:
        """Create the session of a run, which may have had one in another process."""
        session = self.runner._session_of_run(run, self.name)
        if session._files is None and any(
            one.tool == self.name and one.outcome == "ok" for one in run.tickets
        ):
            session._note = _RESUMED
        return session


class _ProgressReporter:
    """Reports the events of a script as progress of the call."""

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


def _caller_of(context: Context | None) -> RunSession | None:
    """Return the session of the run whose call this is; `None` outside of a run."""
    return getattr(None if context is None else context._call, "session", None)


def _read(arguments: Mapping[str, Any]) -> tuple[str, bool]:
    return arguments["code"], arguments.get("interactive", False)
