"""Running scripts: the runner that programs make, and its sessions."""

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
from callslip._threads.current_loop import answered_at_once, holds_up_a_loop
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._answer import Ask, Scripted, check_ask, find_answerer
from callslip.sandbox._approve import Approval, Deps
from callslip.sandbox._events import ScriptEvent
from callslip.sandbox._folders import ArtifactFolder
from callslip.sandbox._limits import ScriptLimits
from callslip.sandbox._native import (
    NativeStream,
    Profile,
    find_interpreter,
    has_box,
    install_request,
    probed,
    unavailable,
)
from callslip.sandbox._perform import Approve, Follow, Steps, Turn, perform, perform_async
from callslip.sandbox._places import NativePlace
from callslip.sandbox._result import Isolation, ScriptResult
from callslip.sandbox._stream import CodeRunner, Place
from callslip.sandbox._taking import OnEvent, Taking
from callslip.sandbox._tool import ScriptTool

__all__ = ["PythonRunner", "ScriptSession"]

_PROFILES = ("auto", "isolated", "restricted", "unconfined")


class PythonRunner:
    """Runs Python that a model has written, each script in a new process.

    Nothing of a script runs before the box around it stands. What a script writes, leaves and asks
    is hostile and is treated so.

    Args:
        profile: `isolated` (namespaces, file rules and a filter of system calls), `restricted`
            (file rules and the filter only), or `auto`, the stronger of the two that the machine
            has. `unconfined` is no box at all: limits, and nothing else.
        limits: How far a script may go.
        deps: Who says which packages a script may have: `"ask"` a person at the terminal or the
            notebook, a list of approved names or requirements (`[]`: none), or a function of the
            requirements, sync or async.
        ask: Who answers interactive scripts: a person at the terminal or the notebook (`"auto"`), a
            function of an `InputRequest`, sync or async, that returns the answer, or `None` for the
            end of input; or nobody (`None`).
        on_event: Called with each `ScriptEvent`; it may be async. Answers are told to nobody.
        python: The interpreter of scripts. Default that of this program, below any virtual
            environment.
        artifacts: The folder in which each script that leaves files gets one of its own. Default a
            temporary one, which lasts as long as its result.
        index: The package index. Default the one that this program's environment names.
        backend: Runs scripts elsewhere: a `CommandRunner`, for example. What `profile`, `python`
            and `index` say is then its business.

    Raises:
        UsageError: An option is none of those.
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
        self.limits = limits or ScriptLimits()
        self.ask = ask
        self.backend = backend
        self.python = python
        self.approval = Approval(deps)
        self._on_event = on_event
        self._artifacts = None if artifacts is None else Path(artifacts)
        self._index = index
        self._lock = threading.Lock()
        self._sessions: set[ScriptSession] = set()
        self._closed = False

    def run(
        self, code: str, *, interactive: bool = False, answers: Sequence[str] | None = None
    ) -> ScriptResult:
        """Run a script to its end, in this thread. Ctrl-C kills it and is raised.

        Args:
            code: The script. Its first lines may declare packages:
                `# dependencies = ["requests"]`.
            interactive: Whether it may ask by `input()`.
            answers: Answers to its questions, in place of `ask`; after the last one it gets
                `EOFError`.

        Raises:
            ScriptRefused: It was not run, for its code, its packages, or because nobody can answer.
            SandboxError: It could not be run, for this machine or the runner.
            UsageError: An argument is none, or the runner is closed.
        """
        with self._session(keeps=False) as session:
            return session.run(code, interactive=interactive, answers=answers)

    async def arun(
        self, code: str, *, interactive: bool = False, answers: Sequence[str] | None = None
    ) -> ScriptResult:
        """Run a script to its end, on the caller's event loop. As `run`.

        A task that is cancelled has the script killed before `CancelledError` is raised.
        """
        with self._session(keeps=False) as session:
            return await session.arun(code, interactive=interactive, answers=answers)

    def session(self) -> ScriptSession:
        """Return a session, whose scripts share a working directory: `with runner.session() as s:`.

        Raises:
            UsageError: The runner is closed.
        """
        return self._session(keeps=True)

    def as_tool(
        self,
        *,
        name: str = "execute_python_code",
        description: str | None = None,
        needs_approval: bool = False,
    ) -> ScriptTool:
        """Return a tool by which a model of any protocol runs scripts. Each run has a session.

        Args:
            name: As the model writes it.
            description: For the model. Default what is in force here: limits, packages, files.
            needs_approval: Each call waits until a person approves it: `run.approve`.
        """
        return ScriptTool(self, name=name, description=description, needs_approval=needs_approval)

    def close(self) -> None:
        """End all sessions, and what runs in them. May be said any number of times."""
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

    def _session(self, *, keeps: bool) -> ScriptSession:
        session = ScriptSession(self, keeps=keeps)
        with self._lock:
            if self._closed:
                raise UsageError("this PythonRunner is closed: make a new one")
            self._sessions.add(session)
        return session

    def _left(self, session: ScriptSession) -> None:
        with self._lock:
            self._sessions.discard(session)

    def _place(self, *, keeps: bool) -> Place:
        if self.backend is not None:
            return self.backend.open()
        return NativePlace(self.profile, self.python, keeps=keeps)

    def _install(self, dependencies: list[str], packages: list[str] | None) -> NativeStream:
        request = install_request(
            dependencies, find_interpreter(self.python), self._index, self.limits, packages
        )
        return NativeStream(_core.ScriptJob.install(request))

    def _listeners(self, also: OnEvent | None) -> list[OnEvent]:
        given = [one for one in (self._on_event, also) if one is not None]
        return [_warn_of_less, *given] if self.profile == "auto" and self.backend is None else given


class ScriptSession:
    """Scripts that share a working directory. Made by `PythonRunner.session`.

    Each of them is a process of its own; what they have in common is the files.
    """

    def __init__(self, runner: PythonRunner, *, keeps: bool) -> None:
        self._runner = runner
        self._keeps = keeps
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
        """Run a script in this thread. As `PythonRunner.run`."""
        return self._run(code, interactive=interactive, answers=answers)

    async def arun(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
    ) -> ScriptResult:
        """Run a script on the caller's event loop. As `PythonRunner.arun`."""
        return await self._arun(code, interactive=interactive, answers=answers)

    def close(self) -> None:
        """End what runs in it, and remove its files. May be said any number of times.

        A script that is about to begin, its packages being approved or installed, is `cancelled`.
        """
        with self._lock:
            self._closed = True
            place, self._place = self._place, None
            installations = list(self._installations)
        for installation in installations:
            installation.cancel()
        if place is not None:
            place.close()
        self._runner._left(self)

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
        also: OnEvent | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> ScriptResult:
        """Run a script in this thread, as long as it is `wanted`. `also` is told its events too."""
        steps = self._steps(code, interactive, answers, also)
        if holds_up_a_loop():
            with answered_at_once():
                return perform(steps, wanted)
        return perform(steps, wanted)

    async def _arun(
        self,
        code: str,
        *,
        interactive: bool,
        answers: Sequence[str] | None = None,
        also: OnEvent | None = None,
    ) -> ScriptResult:
        """Run a script on this event loop. `also` is told its events too."""
        return await perform_async(self._steps(code, interactive, answers, also))

    def _opened(self) -> Place | None:
        """Return where scripts run; `None` once it is closed."""
        with self._lock:
            if not self._closed and self._place is None:
                self._place = self._runner._place(keeps=self._keeps)
            return self._place

    def _is_open(self) -> bool:
        return not self._closed

    def _install(
        self, dependencies: list[str], packages: list[str] | None, taking: Taking
    ) -> Steps[None]:
        """Install packages, or find out which they are."""
        stream = self._runner._install(dependencies, packages)
        with self._lock:
            self._installations.add(stream)
            if self._closed:
                stream.cancel()
        try:
            yield Follow(stream, taking)
        finally:
            with self._lock:
                self._installations.discard(stream)

    def _packages(self, script: dict[str, Any], listeners: list[OnEvent]) -> Steps[str | None]:
        """Have what a script needs approved and installed.

        Returns where it is; `None` where the session was closed.
        """
        dependencies, approval = script["dependencies"], self._runner.approval
        taking = Taking(listeners)
        yield from self._install(dependencies, None, taking)
        if self._closed:
            return None
        packages, path = taking.packages()
        brought = approval.unapproved_packages(packages, script["names"])
        if brought and not (yield Approve(approval, brought, self._is_open)):
            return None
        if path is None:
            taking = Taking(listeners)
            yield from self._install(dependencies, packages, taking)
            path = None if self._closed else taking.path()
        return path

    def _read(self, code: str) -> dict[str, Any]:
        """Read what a script declares.

        Raises:
            ScriptRefused: It can't be run as it is.
        """
        runner = self._runner
        version = None if runner.backend is not None else find_interpreter(runner.python).version
        read: dict[str, Any] = json.loads(_core.read_script(code, version))
        if refused := read.get("refused"):
            raise ScriptRefused(refused["message"], refused["code"])
        return read

    def _hints(self, code: str, taking: Taking, *, interactive: bool) -> list[str]:
        """Return what the errors of a script mean for its writer."""
        if taking.status == "ok":
            return []
        runner = self._runner
        # Of a place elsewhere it is not known.
        network = runner.backend is not None or runner.profile == "unconfined"
        stderr = taking.stderr
        return _core.script_hints(code, stderr, interactive=interactive, network=network)

    def _steps(
        self,
        code: str,
        interactive: bool,  # noqa: FBT001  # private
        answers: Sequence[str] | None,
        also: OnEvent | None,
    ) -> Steps[ScriptResult]:
        runner = self._runner
        _check(code, interactive=interactive, answers=answers)
        if self._closed:
            raise UsageError("this session is closed: its files are gone")
        script = self._read(code)
        # Before anything is started: who can't be asked won't be.
        answerer = find_answerer(runner.ask, answers) if interactive else None
        listeners = runner._listeners(also)
        unapproved = runner.approval.unapproved(script["dependencies"], script["names"])
        if unapproved and not (yield Approve(runner.approval, unapproved, self._is_open)):
            return _CANCELLED
        more: dict[str, Any] = {}
        if script["dependencies"] and runner.backend is None:
            packages = yield from self._packages(script, listeners)
            if packages is None:
                return _CANCELLED
            more["packages"] = packages
        # Each takes the files over from the one before it.
        if not (yield Turn(self._turn)):
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
            taking = Taking(listeners, folder)
            place = self._opened()
            if place is None:
                return _CANCELLED
            yield Follow(place.start(request), taking, answerer)
        finally:
            self._turn.release()
        hints = [*script["hints"], *self._hints(script["code"], taking, interactive=interactive)]
        is_about_input = "EOFError" in "\n".join(taking.stderr.splitlines()[-_LAST:])
        if isinstance(answerer, Scripted) and answerer.ran_out and is_about_input:
            hints.append(answerer.hint)
        return taking.result(hints)


def _check(code: str, *, interactive: bool, answers: Sequence[str] | None) -> None:
    if not isinstance(code, str):
        raise UsageError(f"expected the script as a string: got {type(code).__name__}")
    if not isinstance(interactive, bool):
        raise UsageError(f"expected interactive to be True or False: got {interactive!r}")
    if answers is not None and not interactive:
        raise UsageError("answers need interactive=True: pass both")


_CANCELLED = ScriptResult(
    status="cancelled", exit_code=None, stdout="", stderr="", isolation=Isolation("none")
)
"""Of a script that was given up before it began."""

_LAST = 8
"""Lines of the standard error in which the error stands that ended a script."""

_warned = threading.Event()


def _warn_of_less(event: ScriptEvent) -> None:
    """Warn once where `auto` came to less than there could be."""
    if event.kind == "started" and event.data["profile"] == "restricted" and not _warned.is_set():
        _warned.set()
        missing = probed()["isolated"]
        why = "" if missing is None else "{stage}: {message}; {remedy}, ".format(**missing)
        warnings.warn(
            "scripts are run in the profile 'restricted', without namespaces of their own: "
            f"{why}or pass profile='restricted' to PythonRunner",
            RuntimeWarning,
            stacklevel=2,
        )


def runner_for(python: PythonRunner | bool) -> PythonRunner:  # noqa: FBT001  # private
    """Return the runner that an agent's option `python` asks for: `True` is one with the defaults.

    Raises:
        UsageError: It is something else.
        IsolationUnavailable: This machine can't keep scripts apart.
    """
    if isinstance(python, PythonRunner):
        return python
    if python is not True:
        raise UsageError(
            f"expected python=True, False or a PythonRunner: got {type(python).__name__}"
        )
    if has_box():
        return PythonRunner()
    raise unavailable()
