"""The exceptions callslip raises.

`CallslipError` is the root. An exception that ends a run carries the run as `.run`, so that its
messages and tickets are never lost with the exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from callslip._base.usage import Usage
    from callslip.runs import Run

__all__ = [
    "Busy",
    "CallslipError",
    "ContextFull",
    "DrivenElsewhere",
    "InterpreterMissing",
    "IsolationUnavailable",
    "KeyTaken",
    "LimitExceeded",
    "ModelError",
    "ModelRefused",
    "NoLease",
    "Outdated",
    "ProtocolError",
    "ReplayError",
    "RunCancelled",
    "RunFailed",
    "RunnerLost",
    "RunnerProtocolError",
    "SandboxError",
    "ScriptRefused",
    "StoreError",
    "TakenOver",
    "TemplateError",
    "ToolError",
    "UnknownRun",
    "UnknownTicket",
    "UsageError",
]


class CallslipError(Exception):
    """The root of all exceptions of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in self.__dict__.items() if name not in _LOCAL}
        return type(self), self.args, state


_LOCAL = frozenset({"_cause"})


class UsageError(CallslipError, ValueError):
    """An option or a call that cannot work. The message says how to correct it.

    `run` is the run that it has ended, or `None`, as of an option that was refused before a run.
    `problems` has each problem of arguments that were refused: its place, a JSON pointer such as
    `"/amount"`, and what is wrong.
    """

    run: Run | None = None
    problems: Sequence[tuple[str, str]] = ()
    # Task groups raise exceptions again without their cause.
    _cause: BaseException | None = None


class KeyTaken(UsageError):
    """A run with this key has another task. `run` is that run.

    A key is unique among the runs of one owner and one agent.
    """


class UnknownTicket(UsageError):
    """A run has no ticket with this id."""


class Outdated(UsageError):
    """What a decision or an answer is about has changed: nothing was written down.

    Somebody else has decided or answered, the run is over, or the call is another one than the
    person was shown.
    """


class TemplateError(CallslipError):
    """A prompt template lacks a placeholder, or has one that the protocol does not know."""


class ToolError(CallslipError):
    """A tool cannot be offered: its signature, its name, its document or its server is at fault.

    A wrong option of a tool is a `UsageError`.
    """


class StoreError(CallslipError):
    """A run could not be written down or read. The message says what to do.

    `run` is the run that it has stopped, or `None`. The run can be resumed from its log.
    """

    run: Run | None = None


class UnknownRun(StoreError):
    """A store has no run with this id, or none of this owner."""


class DrivenElsewhere(StoreError):
    """Another driver works on the run, or a worker is to begin it."""


class TakenOver(StoreError):
    """Another worker has the run now. Its driver here leaves it: nothing is lost by that."""


class NoLease(StoreError):
    """Another worker may have the run.

    The database was away for longer than the lease of the run, or the run has made no progress for
    longer than `Fleet(stuck=)`.
    """


class Busy(StoreError):
    """The queue has as many runs as it may have: submit the run later."""


class ReplayError(CallslipError):
    """A text is not the log of a run, or its replay differs from it."""


class SandboxError(CallslipError):
    """A script could not be run, for a reason outside of the script.

    `run` is the run that it has ended, or `None`.
    """

    run: Run | None = None


class IsolationUnavailable(SandboxError):
    """There is no sandbox of the requested profile on this machine; no script was run.

    `stage` is the step that failed, `errno` the number of the system's error, and `remedy` a way to
    correct it. Each is `None` if it is not known.
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
    """The Python interpreter for scripts does not exist, or is not an interpreter."""


class RunnerProtocolError(SandboxError):
    """An external runner sent something that is not an event, or an event out of order."""


class RunnerLost(SandboxError):
    """A runner could not be started, ended before its script, or does not respond any more."""


class ScriptRefused(CallslipError):
    """A script was not run. The message is for the author of the script.

    `code` is `bad_code`, `dependency_rejected`, `dependency_denied`, `dependency_install_failed`,
    `interactive_unavailable` or `files_unavailable`.
    """

    def __init__(self, message: str, code: str = "bad_code") -> None:
        super().__init__(message)
        self.code = code


class RunFailed(CallslipError):
    """The root of the exceptions that end a run. `run` has its log, messages and tickets."""

    # For subclasses that do not call this class's `__init__`. With `Any`, typed programs can read
    # the run without a check: only the exception of a model that is called alone has none.
    run: Run | Any = None

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


class ProtocolError(RunFailed):
    """The model broke the protocol more often in a row than `Limits.max_violations` allows."""


class LimitExceeded(RunFailed):
    """A limit of the run was reached, and `on_limit` is `"raise"` or the last turn gave no answer.

    It is also raised after the first reply if tokens or cost are limited and the model client does
    not report them.

    `limit` is the name of the field of `Limits`.
    """

    limit: str

    def __init__(self, message: str, run: Run | None = None, limit: str = "") -> None:
        super().__init__(message, run)
        self.limit = limit


class ModelError(RunFailed):
    """The model client raised, or returned no reply. Its exception is the `__cause__`."""

    # For the wrappers of models: the codes that the server has reported in a reply, whether the
    # same request may succeed, and the usage of a reply that cannot be read.
    _codes: tuple[str | int, ...] = ()
    _is_transient: bool = False
    _usage: Mapping[str, float] | Usage | None = None


class ContextFull(ModelError):
    """The messages are longer than the model can read, also without the oldest ones.

    The message says how to continue the run.
    """


class ModelRefused(ModelError):
    """The model, or a filter of its provider, refused to answer. The message quotes the reply."""


class RunCancelled(RunFailed):
    """The run was cancelled. A task's own `CancelledError` is never replaced by this."""

    _was_left = False
    """Whether nobody has cancelled it: its driver was."""
