"""The exceptions callslip raises.

`CallslipError` is the root. Everything that ends a run carries it as `.run`, so that the transcript
and the tickets are never lost with the exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.runs import Run

__all__ = [
    "CallslipError",
    "ContextFull",
    "InterpreterMissing",
    "IsolationUnavailable",
    "LimitExceeded",
    "ModelError",
    "ModelRefused",
    "ProtocolError",
    "ReplayError",
    "RunCancelled",
    "RunFailed",
    "RunnerLost",
    "RunnerProtocolError",
    "SandboxError",
    "ScriptRefused",
    "StoreError",
    "TemplateError",
    "ToolError",
    "UsageError",
]


class CallslipError(Exception):
    """The root of all exceptions of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A run lives in its process: what crosses to another one is the message.
        state = {name: value for name, value in self.__dict__.items() if name not in _LOCAL}
        return type(self), self.args, state


_LOCAL = frozenset({"run", "_cause"})


class UsageError(CallslipError, ValueError):
    """An option or a call that cannot work; the message says what to do instead.

    `run` is the run that was ended by it, where one was: by a history policy that fails.
    """

    run: Run | None = None
    # A task group's exceptions are raised anew, without their cause.
    _cause: BaseException | None = None


class TemplateError(CallslipError):
    """A prompt template lacks a placeholder, or holds one that the protocol does not know."""


class ToolError(CallslipError):
    """A tool cannot be offered: its signature, its name or its document is at fault."""


class StoreError(CallslipError):
    """A run could not be written down or read; the message says what to do.

    `run` is the run that was stopped by it, where one was. What was written down of it can be
    resumed.
    """

    run: Run | None = None


class ReplayError(CallslipError):
    """A log is none, or the run that it records does not come out again as it was."""


class SandboxError(CallslipError):
    """A script could not be run, and neither it nor the model that wrote it is at fault.

    `run` is the run that was ended by it, where one was.
    """

    run: Run | None = None


class IsolationUnavailable(SandboxError):
    """Scripts can't be kept apart here as was asked for; nothing of the script was run.

    `stage` is what failed, `errno` the system's number for it, `remedy` what to do about it; each
    is `None` where that is not known.
    """

    def __init__(
        self,
        message: str,
        stage: str | None = None,
        errno: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.errno = errno
        self.remedy = remedy


class InterpreterMissing(SandboxError):
    """The Python that scripts are to be run by is not there, or is none."""


class RunnerProtocolError(SandboxError):
    """An external runner said what is no event, or not at its time."""


class RunnerLost(SandboxError):
    """A runner can't be started, ended before its script did, or does not answer any more."""


class ScriptRefused(CallslipError):
    """A script was not run; the message is for whoever wrote it.

    `code` is `bad_code`, `dependency_rejected`, `dependency_denied`, `dependency_install_failed` or
    `interactive_unavailable`.
    """

    def __init__(self, message: str, code: str = "bad_code") -> None:
        super().__init__(message)
        self.code = code


class RunFailed(CallslipError):
    """The root of the exceptions that end a run. `run` holds its log, transcript and tickets."""

    # Also for one that a subclass makes without this class's own `__init__`.
    run: Run | None = None

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


class ProtocolError(RunFailed):
    """The model broke the protocol more often in a row than `Limits.max_violations` allows."""


class LimitExceeded(RunFailed):
    """A limit of the run was reached and `on_limit` is `"raise"`, or the last turn failed too.

    `limit` is the name of the field of `Limits`.
    """

    limit: str

    def __init__(self, message: str, run: Run | None = None, limit: str = "") -> None:
        super().__init__(message, run)
        self.limit = limit


class ModelError(RunFailed):
    """The model client raised, or returned what is no reply. Its exception is the `__cause__`."""


class ContextFull(ModelError):
    """The transcript is longer than the model can read; the message says how to go on."""


class ModelRefused(ModelError):
    """The model, or a filter of its provider, refused to answer; the message quotes its words."""


class RunCancelled(RunFailed):
    """The run was cancelled. A task's own `CancelledError` is never replaced by this."""
