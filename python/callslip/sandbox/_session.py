"""Sessions: scripts that share a working directory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from callslip import _core
from callslip._base.options import check_flag
from callslip._threads.current_loop import check_loop, interruptible, is_in_loop
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._answerers import ListAnswerer, find_answerer
from callslip.sandbox._collector import EventCollector, OnEvent
from callslip.sandbox._folders import ArtifactFolder
from callslip.sandbox._input_files import Brought, InputFiles, Source, check_files
from callslip.sandbox._native import NativeStream, find_interpreter
from callslip.sandbox._native_place import NativePlace
from callslip.sandbox._result import Isolation, ScriptResult
from callslip.sandbox._run_files import Kept, Restored, RunFiles
from callslip.sandbox._steps import (
    ApprovePackages,
    FollowScript,
    InThread,
    Steps,
    WaitForTurn,
    perform,
    perform_async,
)
from callslip.sandbox._stream import Place

if TYPE_CHECKING:
    from callslip.sandbox._answerers import Answerer
    from callslip.sandbox._runner import PythonRunner

__all__ = ["Files", "OpenSessions", "ScriptSession"]

Files: TypeAlias = Mapping[str, bytes | os.PathLike[str]]
"""Files for a script, by their names in its folder `in/`."""

_NO_FILES: Mapping[str, Source] = MappingProxyType({})


class OpenSessions:
    """The open sessions of a runner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: set[ScriptSession] = set()
        self._is_closed = False

    def add(self, session: ScriptSession) -> None:
        """Add a session.

        Raises:
            UsageError: The runner is closed.
        """
        with self._lock:
            if self._is_closed:
                raise UsageError("this PythonRunner is closed: make a new one")
            self._sessions.add(session)

    def discard(self, session: ScriptSession) -> None:
        """Forget a session, which is closed."""
        with self._lock:
            self._sessions.discard(session)

    def close(self) -> None:
        """Close all sessions. No others are added afterwards."""
        with self._lock:
            self._is_closed = True
            sessions = list(self._sessions)
        for session in sessions:
            session.close()

    def __len__(self) -> int:
        return len(self._sessions)


class ScriptSession:
    """Scripts that share a working directory. Created by `PythonRunner.session`.

    Each script is a process of its own; only files are shared.
    """

    def __init__(
        self, runner: PythonRunner, *, keeps_files: bool, files: RunFiles | None = None
    ) -> None:
        self._runner = runner
        self._keeps_files = keeps_files
        # Where the files of a run are kept for other processes.
        self._files = files
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._place: Place | None = None
        self._installations: set[NativeStream] = set()
        self._inputs = InputFiles()
        self._note: str | None = None
        self._closed = False

    def run(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
        files: Files | None = None,
    ) -> ScriptResult:
        """Run a script in this thread, like `PythonRunner.run`.

        Later scripts of the session find its `files` too. A file replaces an earlier one of its
        name.
        """
        given = self._check_files(files)
        return self._run(code, interactive=interactive, answers=answers, files=given)

    async def arun(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
        files: Files | None = None,
    ) -> ScriptResult:
        """Run a script on the caller's event loop, like `PythonRunner.arun`.

        Its `files` are those of `run`.
        """
        check_loop("runner.run, code")
        given = self._check_files(files)
        return await self._arun(code, interactive=interactive, answers=answers, files=given)

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
        self._inputs.remove()
        self._runner._sessions.discard(self)

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
        files: Mapping[str, Source] = _NO_FILES,
    ) -> ScriptResult:
        """Run a script in this thread while `wanted` returns true. `listener` gets its events."""
        steps = self._steps(code, interactive, answers, listener, files)
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
        files: Mapping[str, Source] = _NO_FILES,
    ) -> ScriptResult:
        """Run a script on this event loop. `listener` gets its events."""
        return await perform_async(self._steps(code, interactive, answers, listener, files))

    def _check_files(self, files: Files | None) -> dict[str, Source]:
        """Return the files of a call, before anything is run.

        Raises:
            UsageError: They are invalid, or the runner takes none.
        """
        given = check_files(files)
        if given and not self._runner._takes_files:
            raise UsageError(
                f"expected a runner that takes files: got {self._runner!r}; pass "
                "CommandRunner(…, takes_files=True) if its command reads them, or set takes_files "
                "on your own CodeRunner"
            )
        return given

    def _bring_files(self, files: Mapping[str, Source]) -> Steps[Brought | None]:
        """Add files for scripts. Returns `None` if nobody waits for the script."""
        if not files and self._inputs.path is None:
            return Brought({}, [])
        is_here = self._runner.backend is None
        brought: Brought | None = yield InThread(
            partial(self._inputs.bring, files, is_here=is_here)
        )
        return brought

    def _open_place(self, restored: Restored | None) -> Place | None:
        """Return the place of the session's scripts; `None` once the session is closed.

        Args:
            restored: The files to begin with.
        """
        with self._lock:
            if self._closed:
                return None
            if self._place is None:
                folder = None if restored is None else restored.folder
                self._note = self._note if restored is None else restored.note
                self._place = self._runner._place(folder, keeps_files=self._keeps_files)
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
        files: Mapping[str, Source],
    ) -> Steps[ScriptResult]:
        runner = self._runner
        _check_arguments(code, interactive=interactive, answers=answers)
        if self._closed:
            raise UsageError(
                "this session is closed, and its files are gone: open another one with "
                "runner.session()"
            )
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
            brought = yield from self._bring_files(files)
            if brought is None:
                return _CANCELLED
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
                **brought.request,
            }
            collector = EventCollector(listeners, folder)
            kept = yield from self._run_request(request, collector, answerer)
        finally:
            self._turn.release()
        if kept is None:
            return _CANCELLED
        own = self._hints(script["code"], collector, interactive=interactive)
        hints = [*script["hints"], *brought.hints, *own]
        is_about_input = "EOFError" in "\n".join(collector.stderr.splitlines()[-_LAST:])
        if isinstance(answerer, ListAnswerer) and answerer.ran_out and is_about_input:
            hints.append(answerer.hint)
        return replace(collector.result([*hints, *kept.hints]), checkpoint=kept.checkpoint)

    def _run_request(
        self, request: dict[str, Any], collector: EventCollector, answerer: Answerer | None
    ) -> Steps[Kept | None]:
        """Run a script with the files of the earlier ones, and keep its files.

        They are kept before its result is returned, so that no result is in a log without them.

        Returns:
            How its files were kept; `None` if it was not run, because nobody waits for it.
        """
        files, restored = self._files, None
        if files is not None and self._place is None:
            restored = yield InThread(files.restore)
            if restored is None:
                return None
        place = self._open_place(restored)
        if place is None:
            if restored is not None and restored.folder is not None:
                restored.folder.remove()
            return None
        yield FollowScript(place.start(request), collector, answerer)
        folder = place.path if isinstance(place, NativePlace) else None
        if files is None or folder is None:
            return Kept(None)
        kept: Kept | None = yield InThread(partial(files.keep, folder))
        # Closing removes the folder, and perhaps only a part of it was kept.
        return Kept(None) if kept is None or self._closed else kept


def _check_arguments(code: str, *, interactive: bool, answers: Sequence[str] | None) -> None:
    if not isinstance(code, str):
        raise UsageError(f"expected the script as a string: got {type(code).__name__}")
    check_flag("interactive", interactive)
    if answers is not None and not interactive:
        raise UsageError("answers need interactive=True: pass both")


_CANCELLED = ScriptResult(
    status="cancelled", exit_code=None, stdout="", stderr="", isolation=Isolation("none")
)
"""The result of a script that was cancelled before it started."""

_LAST = 8
"""The last lines of the standard error, which contain the error that ended a script."""
