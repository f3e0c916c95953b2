"""The runner of scripts, and its sessions."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from callslip import _core
from callslip._options import check_one_of
from callslip._threads.current_loop import interruptible, is_in_loop
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._answerers import Ask, ListAnswerer, check_ask, find_answerer
from callslip.sandbox._approval import Deps, PackageApproval
from callslip.sandbox._collector import EventCollector, OnEvent
from callslip.sandbox._events import ScriptEvent
from callslip.sandbox._folders import ArtifactFolder
from callslip.sandbox._limits import ScriptLimits
from callslip.sandbox._native import (
    NativeStream,
    Profile,
    find_interpreter,
    has_sandbox,
    install_request,
    isolation_error,
    probe_profiles,
)
from callslip.sandbox._native_place import NativePlace
from callslip.sandbox._result import Isolation, ScriptResult
from callslip.sandbox._steps import (
    ApprovePackages,
    FollowScript,
    Steps,
    WaitForTurn,
    perform,
    perform_async,
)
from callslip.sandbox._stream import CodeRunner, Place
from callslip.sandbox._tool import ScriptTool
from callslip.tools import NeedsApproval

__all__ = ["PythonRunner", "ScriptSession"]

_PROFILES = ("auto", "isolated", "restricted", "unconfined")


class PythonRunner:
    """Runs Python code that a model has written, each script in a new process.

    The sandbox is fully set up before the first line of a script runs. All output, files and
    questions of a script are treated as untrusted data.

    Args:
        profile: `"isolated"` (namespaces, file rules and a filter of system calls), `"restricted"`
            (file rules and the filter only), or `"auto"` (default): the stronger of the two that
            this machine supports. `"unconfined"` means limits, but no sandbox.
        limits: The limits of each script. Default: `ScriptLimits()`.
        deps: Approval of the packages of a script: `"ask"` (default) asks a person at the terminal
            or in the notebook; or a list of approved names or requirements (`[]`: none); or a
            function of the list of requirements, sync or async, that returns whether they are
            approved.
        ask: Answers for interactive scripts: `"auto"` (default) asks a person at the terminal or in
            the notebook; or a function of an `InputRequest`, sync or async, that returns the
            answer, or `None` for the end of input; or `None` for no answers.
        on_event: A function, sync or async, that is called with each `ScriptEvent`. Answers to
            questions are not among the events.
        python: The interpreter of scripts. Default: that of this program, without its virtual
            environment.
        artifacts: A folder for artifacts. Each script that leaves any gets a folder of its own in
            it. Default: a temporary folder, which is deleted with the result.
        index: The package index. Default: that of this program's environment.
        backend: Runs the scripts elsewhere, for example a `CommandRunner`. It replaces `profile`,
            `python` and `index`.

    Raises:
        UsageError: An option is invalid.
    """

    def __init__(
        self,
        *,
        profile: Profile = "auto",
        limits: ScriptLimits | None = None,
        deps: Deps = "ask",
        ask: Ask = "auto",
        on_event: OnEvent | None = None,
        python: str | os.PathLike[str] | None = None,
        artifacts: str | os.PathLike[str] | None = None,
        index: str | None = None,
        backend: CodeRunner | None = None,
    ) -> None:
        check_one_of("profile", profile, _PROFILES)
        check_ask(ask)
        if on_event is not None and not callable(on_event):
            raise UsageError(f"expected on_event as a function: got {on_event!r}")
        if backend is not None and not isinstance(backend, CodeRunner):
            raise UsageError(
                f"expected backend with `about` and `open()`, as a CommandRunner: got {backend!r}"
            )
        self.profile = profile
        self.limits: ScriptLimits = limits or ScriptLimits()
        self.ask = ask
        self.backend = backend
        self.python = python
        self.approval: PackageApproval = PackageApproval(deps)
        self._on_event = on_event
        self._artifacts = None if artifacts is None else Path(artifacts)
        self._index = index
        self._lock = threading.Lock()
        self._sessions: set[ScriptSession] = set()
        self._closed = False

    def run(
        self, code: str, *, interactive: bool = False, answers: Sequence[str] | None = None
    ) -> ScriptResult:
        """Run a script to its end, in this thread. Ctrl-C kills the script and is raised.

        Args:
            code: The script. Its first lines may declare packages:
                `# dependencies = ["requests"]`.
            interactive: Whether the script may ask questions with `input()`. Default: `False`.
            answers: Answers to its questions, instead of `ask`. After the last one, `input()`
                raises `EOFError` in the script.

        Raises:
            ScriptRefused: The script was not run: because of its code or its packages, or because
                its questions cannot be answered.
            SandboxError: The script could not be run, because of this machine or the runner.
            UsageError: An argument is invalid, or the runner is closed.
        """
        with self._session(keeps_files=False) as session:
            return session.run(code, interactive=interactive, answers=answers)

    async def arun(
        self, code: str, *, interactive: bool = False, answers: Sequence[str] | None = None
    ) -> ScriptResult:
        """Run a script to its end, on the caller's event loop, like `run`.

        If the task is cancelled, the script is killed before `CancelledError` is raised.
        """
        with self._session(keeps_files=False) as session:
            return await session.arun(code, interactive=interactive, answers=answers)

    def session(self) -> ScriptSession:
        """Return a session whose scripts share a working directory: `with runner.session() as s:`.

        Raises:
            UsageError: The runner is closed.
        """
        return self._session(keeps_files=True)

    def as_tool(
        self,
        *,
        name: str = "execute_python_code",
        description: str | None = None,
        needs_approval: NeedsApproval = False,
    ) -> ScriptTool:
        """Return a tool with which a model runs scripts. Each run has a session of its own.

        Args:
            name: The name that the model writes.
            description: The description for the model. Default: generated from the options, with
                limits, packages and files.
            needs_approval: As for `tool`.
        """
        return ScriptTool(self, name=name, description=description, needs_approval=needs_approval)

    def close(self) -> None:
        """End all sessions and their scripts. May be called more than once."""
        with self._lock:
            self._closed = True
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"profile={self.profile!r}" if self.backend is None else f"backend={self.backend!r}"
        return f"PythonRunner({where})"

    def _session(self, *, keeps_files: bool) -> ScriptSession:
        session = ScriptSession(self, keeps_files=keeps_files)
        with self._lock:
            if self._closed:
                raise UsageError("this PythonRunner is closed: make a new one")
            self._sessions.add(session)
        return session

    def _forget_session(self, session: ScriptSession) -> None:
        with self._lock:
            self._sessions.discard(session)

    def _place(self, *, keeps_files: bool) -> Place:
        if self.backend is not None:
            return self.backend.open()
        return NativePlace(self.profile, self.python, keeps_files=keeps_files)

    def _install(self, dependencies: list[str], packages: list[str] | None) -> NativeStream:
        request = install_request(
            dependencies, find_interpreter(self.python), self._index, self.limits, packages
        )
        return NativeStream(_core.ScriptJob.install(request))

    def _listeners(self, listener: OnEvent | None) -> list[OnEvent]:
        given = [one for one in (self._on_event, listener) if one is not None]
        return (
            [_warn_of_weaker_profile, *given]
            if self.profile == "auto" and self.backend is None
            else given
        )


class ScriptSession:
    """Scripts that share a working directory. Created by `PythonRunner.session`.

    Each script is a process of its own; only files are shared.
    """

    def __init__(self, runner: PythonRunner, *, keeps_files: bool) -> None:
        self._runner = runner
        self._keeps_files = keeps_files
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._place: Place | None = None
        self._installations: set[NativeStream] = set()
        self._note: str | None = None
        self._closed = False

    def run(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
    ) -> ScriptResult:
        """Run a script in this thread, like `PythonRunner.run`."""
        return self._run(code, interactive=interactive, answers=answers)

    async def arun(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
    ) -> ScriptResult:
        """Run a script on the caller's event loop, like `PythonRunner.arun`."""
        return await self._arun(code, interactive=interactive, answers=answers)

    def close(self) -> None:
        """End the scripts of the session and remove its files. May be called more than once.

        A script whose packages are still being approved or installed ends as `cancelled`.
        """
        with self._lock:
            self._closed = True
            place, self._place = self._place, None
            installations = list(self._installations)
        for installation in installations:
            installation.cancel()
        if place is not None:
            place.close()
        self._runner._forget_session(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(
        self,
        code: str,
        *,
        interactive: bool,
        answers: Sequence[str] | None = None,
        listener: OnEvent | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> ScriptResult:
        """Run a script in this thread while `wanted` returns true. `listener` gets its events."""
        steps = self._steps(code, interactive, answers, listener)
        if is_in_loop():
            with interruptible():
                return perform(steps, wanted)
        return perform(steps, wanted)

    async def _arun(
        self,
        code: str,
        *,
        interactive: bool,
        answers: Sequence[str] | None = None,
        listener: OnEvent | None = None,
    ) -> ScriptResult:
        """Run a script on this event loop. `listener` gets its events."""
        return await perform_async(self._steps(code, interactive, answers, listener))

    def _open_place(self) -> Place | None:
        """Return the place of the session's scripts; `None` once the session is closed."""
        with self._lock:
            if not self._closed and self._place is None:
                self._place = self._runner._place(keeps_files=self._keeps_files)
            return self._place

    def _is_open(self) -> bool:
        return not self._closed

    def _install(
        self, dependencies: list[str], packages: list[str] | None, collector: EventCollector
    ) -> Steps[None]:
        """Install packages, or resolve them if `packages` is `None`."""
        stream = self._runner._install(dependencies, packages)
        with self._lock:
            self._installations.add(stream)
            if self._closed:
                stream.cancel()
        try:
            yield FollowScript(stream, collector)
        finally:
            with self._lock:
                self._installations.discard(stream)

    def _install_packages(
        self, script: dict[str, Any], listeners: list[OnEvent]
    ) -> Steps[str | None]:
        """Have the packages of a script approved and installed.

        Returns their folder; `None` if the session was closed meanwhile.
        """
        dependencies, approval = script["dependencies"], self._runner.approval
        collector = EventCollector(listeners)
        yield from self._install(dependencies, None, collector)
        if self._closed:
            return None
        packages, path = collector.packages()
        brought = approval.unapproved_packages(packages, script["names"])
        if brought and not (yield ApprovePackages(approval, brought, self._is_open)):
            return None
        if path is None:
            collector = EventCollector(listeners)
            yield from self._install(dependencies, packages, collector)
            path = None if self._closed else collector.path()
        return path

    def _read_script(self, code: str) -> dict[str, Any]:
        """Read the declarations of a script.

        Raises:
            ScriptRefused: The script cannot be run.
        """
        runner = self._runner
        version = None if runner.backend is not None else find_interpreter(runner.python).version
        read: dict[str, Any] = json.loads(_core.read_script(code, version))
        if refused := read.get("refused"):
            raise ScriptRefused(refused["message"], refused["code"])
        return read

    def _hints(self, code: str, collector: EventCollector, *, interactive: bool) -> list[str]:
        """Return hints about the errors of a script, for the model that wrote it."""
        if collector.status == "ok":
            return []
        runner = self._runner
        # A place elsewhere may have a network.
        network = runner.backend is not None or runner.profile == "unconfined"
        stderr = collector.stderr
        return _core.script_hints(code, stderr, interactive=interactive, network=network)

    def _steps(
        self,
        code: str,
        interactive: bool,  # noqa: FBT001  # private
        answers: Sequence[str] | None,
        listener: OnEvent | None,
    ) -> Steps[ScriptResult]:
        runner = self._runner
        _check_arguments(code, interactive=interactive, answers=answers)
        if self._closed:
            raise UsageError("this session is closed: its files are gone")
        script = self._read_script(code)
        # First of all: without an answerer, nothing is started.
        answerer = find_answerer(runner.ask, answers) if interactive else None
        listeners = runner._listeners(listener)
        unapproved = runner.approval.unapproved(script["dependencies"], script["names"])
        if unapproved and not (yield ApprovePackages(runner.approval, unapproved, self._is_open)):
            return _CANCELLED
        more: dict[str, Any] = {}
        if script["dependencies"] and runner.backend is None:
            packages = yield from self._install_packages(script, listeners)
            if packages is None:
                return _CANCELLED
            more["packages"] = packages
        # One script at a time, because they share their files.
        if not (yield WaitForTurn(self._turn)):
            return _CANCELLED
        try:
            folder = ArtifactFolder(runner._artifacts)
            if runner.backend is None:
                more["artifacts"] = str(folder.path)
            request = {
                "type": "run",
                "version": 1,
                "code": script["code"],
                "interactive": interactive,
                "limits": runner.limits.to_dict(),
                "dependencies": script["dependencies"],
                **more,
            }
            collector = EventCollector(listeners, folder)
            place = self._open_place()
            if place is None:
                return _CANCELLED
            yield FollowScript(place.start(request), collector, answerer)
        finally:
            self._turn.release()
        hints = [*script["hints"], *self._hints(script["code"], collector, interactive=interactive)]
        is_about_input = "EOFError" in "\n".join(collector.stderr.splitlines()[-_LAST:])
        if isinstance(answerer, ListAnswerer) and answerer.ran_out and is_about_input:
            hints.append(answerer.hint)
        return collector.result(hints)


def _check_arguments(code: str, *, interactive: bool, answers: Sequence[str] | None) -> None:
    if not isinstance(code, str):
        raise UsageError(f"expected the script as a string: got {type(code).__name__}")
    if not isinstance(interactive, bool):
        raise UsageError(f"expected interactive to be True or False: got {interactive!r}")
    if answers is not None and not interactive:
        raise UsageError("answers need interactive=True: pass both")


_CANCELLED = ScriptResult(
    status="cancelled", exit_code=None, stdout="", stderr="", isolation=Isolation("none")
)
"""The result of a script that was cancelled before it started."""

_LAST = 8
"""The last lines of the standard error, which contain the error that ended a script."""

_warned = threading.Event()


def _warn_of_weaker_profile(event: ScriptEvent) -> None:
    """Warn once if `auto` did not find the stronger profile."""
    if event.kind == "started" and event.data["profile"] == "restricted" and not _warned.is_set():
        _warned.set()
        missing = probe_profiles()["isolated"]
        why = "" if missing is None else "{stage}: {message}; {remedy}, ".format(**missing)
        warnings.warn(
            "scripts are run in the profile 'restricted', without namespaces of their own: "
            f"{why}or pass profile='restricted' to PythonRunner",
            RuntimeWarning,
            stacklevel=2,
        )


def runner_for(python: PythonRunner | bool) -> PythonRunner:  # noqa: FBT001  # private
    """Return the runner for an agent's option `python`: `True` is a runner with the defaults.

    Raises:
        UsageError: The option is neither a runner nor `True`.
        IsolationUnavailable: This machine supports no sandbox.
    """
    if isinstance(python, PythonRunner):
        return python
    if python is not True:
        raise UsageError(
            f"expected python=True, False or a PythonRunner: got {type(python).__name__}"
        )
    if has_sandbox():
        return PythonRunner()
    raise isolation_error()
