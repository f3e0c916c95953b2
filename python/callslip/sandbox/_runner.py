"""The runner of scripts, and its sessions."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Self

from callslip import _core
from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_called_with, check_one_of, check_text, check_type
from callslip.errors import UsageError
from callslip.runs import Run
from callslip.sandbox._answerers import Ask, check_ask
from callslip.sandbox._approval import Deps, PackageApproval
from callslip.sandbox._collector import OnEvent
from callslip.sandbox._events import ScriptEvent
from callslip.sandbox._file_stores import FileStore, SharedFiles, open_file_store
from callslip.sandbox._limits import ScriptLimits
from callslip.sandbox._native import (
    NativeStream,
    Profile,
    check_platform,
    find_interpreter,
    has_sandbox,
    install_request,
    isolation_error,
    probe_profiles,
)
from callslip.sandbox._native_place import NativePlace
from callslip.sandbox._result import ScriptResult
from callslip.sandbox._run_files import RunFiles, delete_files
from callslip.sandbox._session import Files, OpenSessions, ScriptSession
from callslip.sandbox._stream import CodeRunner, Place
from callslip.sandbox._tool import ScriptTool
from callslip.tools import NeedsApproval

if TYPE_CHECKING:
    from callslip.sandbox._folders import WorkFolder

__all__ = ["PythonRunner"]

_PROFILES = ("auto", "isolated", "restricted", "unconfined")


@knows_names_of_class(
    {
        "timeout": "limits=ScriptLimits(wall_seconds=…)",
        "memory": "limits=ScriptLimits(memory_bytes=…)",
        "packages": "deps=…",
    }
)
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
        files: A place that all processes share, where the files of a run's session are kept after
            each of its scripts: a folder; a URL such as `"s3://bucket/agents"`, or a store of
            obstore (extra `shared`). A run that is resumed in another process has the files of its
            last script. Default: the files are deleted when the run rests, ends or is left.
        index: The package index. Default: that of this program's environment.
        backend: Runs the scripts elsewhere, for example a `CommandRunner`. It replaces `profile`,
            `python` and `index`.

    Raises:
        UsageError: An option is invalid.
        IsolationUnavailable: This is Windows.
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
        files: SharedFiles | None = None,
        index: str | None = None,
        backend: CodeRunner | None = None,
    ) -> None:
        check_platform()
        check_one_of("profile", profile, _PROFILES)
        check_type("limits", limits, (ScriptLimits, NoneType), "ScriptLimits(…) or None")
        check_ask(ask)
        if on_event is not None:
            check_called_with("on_event", on_event, "the event")
        _check_path("python", python)
        _check_path("artifacts", artifacts)
        if index is not None:
            check_text("index", index)
        if backend is not None and not isinstance(backend, CodeRunner):
            raise UsageError(
                f"expected backend with `about` and `open()`, as a CommandRunner: got {backend!r}"
            )
        if backend is not None and files is not None:
            raise UsageError(
                "expected files or backend: got both; the files of another place stay there"
            )
        self.profile = profile
        self.limits: ScriptLimits = ScriptLimits() if limits is None else limits
        self.ask = ask
        self.backend = backend
        self.python = python
        self.approval: PackageApproval = PackageApproval(deps)
        self._on_event = on_event
        self._artifacts = None if artifacts is None else Path(artifacts)
        self._index = index
        self._files = None if files is None else open_file_store(files)
        self._sessions = OpenSessions()

    def run(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
        files: Files | None = None,
    ) -> ScriptResult:
        """Run a script to its end, in this thread. Ctrl-C kills the script and is raised.

        Args:
            code: The script. Its first lines may declare packages:
                `# dependencies = ["requests"]`.
            interactive: Whether the script may ask questions with `input()`. Default: `False`.
            answers: Answers to its questions, instead of `ask`. After the last one, `input()`
                raises `EOFError` in the script.
            files: Files that the script finds in its folder `in/`: bytes or paths, by their names.
                It cannot change the originals. At most 100 MB and 1,000 files together.

        Raises:
            ScriptRefused: The script was not run: because of its code or its packages, or because
                its questions cannot be answered.
            SandboxError: The script could not be run, because of this machine or the runner.
            UsageError: An argument is invalid, a file cannot be read, or the runner is closed or
                takes no files.
        """
        with self._session(keeps_files=False) as session:
            return session.run(code, interactive=interactive, answers=answers, files=files)

    async def arun(
        self,
        code: str,
        *,
        interactive: bool = False,
        answers: Sequence[str] | None = None,
        files: Files | None = None,
    ) -> ScriptResult:
        """Run a script to its end, on the caller's event loop. As `run`.

        The arguments and the exceptions are those of `run`. If the task is cancelled, the script is
        killed before `CancelledError` is raised.
        """
        with self._session(keeps_files=False) as session:
            return await session.arun(code, interactive=interactive, answers=answers, files=files)

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

        Raises:
            UsageError: An option has a wrong value.
        """
        return ScriptTool(self, name=name, description=description, needs_approval=needs_approval)

    def close(self) -> None:
        """End all sessions and their scripts. May be called more than once."""
        self._sessions.close()

    def save_files(
        self,
        run: Run,
        directory: str | os.PathLike[str],
        *,
        tool: str = "execute_python_code",
    ) -> list[Path]:
        """Copy the files that the last script of a run has left, artifacts in `out/` among them.

        Links are not copied, and the content is untrusted.

        Args:
            run: The run. Any process may have worked on it.
            directory: The directory for the files, which keep their paths below it.
            tool: The name of the tool for scripts.

        Returns:
            The paths of the copies.

        Raises:
            UsageError: The runner has no `files=…`, or an argument has a wrong type.
            SandboxError: The files are damaged, are gone, or cannot be read.
            OSError: A copy cannot be written, for example because there is a file of that name.
        """
        check_type("run", run, Run, "a Run, such as result.run")
        check_type("directory", directory, (str, os.PathLike), "a path")
        check_text("tool", tool)
        return RunFiles(self._file_store(), run, tool, self.limits).save(Path(directory))

    def delete_files(self, *run_ids: str) -> None:
        """Delete all files that are kept of runs, for example of runs that are deleted themselves.

        Raises:
            UsageError: The runner has no `files=…`, or an id is empty or no text.
            OSError: Files in a folder cannot be deleted. Object stores raise errors of their own.
        """
        delete_files(self._file_store(), run_ids)

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

    def _session(self, *, keeps_files: bool, files: RunFiles | None = None) -> ScriptSession:
        session = ScriptSession(self, keeps_files=keeps_files, files=files)
        self._sessions.add(session)
        return session

    def _session_of_run(self, run: Run, tool: str) -> ScriptSession:
        """Return the session of a run, with the files that it has left in other processes."""
        files = None
        if self._files is not None:
            files = RunFiles(self._files, run, tool, self.limits)
        return self._session(keeps_files=True, files=files)

    @property
    def _takes_files(self) -> bool:
        """Whether scripts find files in `in/`. Runners of others say so."""
        return self.backend is None or getattr(self.backend, "takes_files", False) is True

    def _file_store(self) -> FileStore:
        if self._files is None:
            raise UsageError("this PythonRunner keeps no files of runs: pass files=… to it")
        return self._files

    def _place(self, folder: WorkFolder | None, *, keeps_files: bool) -> Place:
        if self.backend is not None:
            return self.backend.open()
        return NativePlace(self.profile, self.python, keeps_files=keeps_files, folder=folder)

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


def _check_path(name: str, path: object) -> None:
    check_type(name, path, (str, os.PathLike, NoneType), "a path or None")


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
            f"expected python=True, False or a PythonRunner: got {type(python).__name__}; pass "
            "PythonRunner(…)"
        )
    check_platform()
    if has_sandbox():
        return PythonRunner()
    raise isolation_error()
