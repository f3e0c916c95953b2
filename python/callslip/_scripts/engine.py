"""The interface of the interpreters of scripts.

An interpreter runs a script until it needs the outcomes of its calls, and returns these calls. The
runtime makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

__all__ = [
    "CallsDue",
    "Engine",
    "EngineSession",
    "Function",
    "OutcomeKind",
    "ScriptCall",
    "ScriptEnd",
    "ScriptError",
    "ScriptOutcome",
    "Step",
]

OutcomeKind: TypeAlias = Literal["ok", "error", "retry", "denied", "wrong", "cancelled", "in_doubt"]

_EXCEPTIONS: Mapping[OutcomeKind, str] = {
    "error": "RuntimeError",
    "retry": "RuntimeError",
    "cancelled": "RuntimeError",
    "denied": "PermissionError",
    "wrong": "TypeError",
}


@dataclass(frozen=True)
class Function:
    """A tool, as a script calls it.

    Attributes:
        name: The name of the tool, which need not be an identifier.
        schema: JSON Schema of its arguments.
    """

    name: str
    schema: Mapping[str, Any]

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, for arguments without a name."""
        return [*self.schema.get("properties", {})]


@dataclass(frozen=True)
class ScriptCall:
    """A call that a script has come to.

    Attributes:
        tool: The name of the tool.
        arguments: The arguments: values of JSON.
        line: The line of the script, from 1.
    """

    tool: str
    arguments: Mapping[str, Any]
    line: int


@dataclass(frozen=True)
class ScriptOutcome:
    """The outcome of a call.

    Attributes:
        number: The number of the call, from 0, in the order in which the script came to its calls.
        kind: How the call ended. An interpreter never receives `in_doubt`.
        value: The result of a call that ended well: a value of JSON.
        message: The message of a call that failed.
        at: The time in Unix seconds. The clock of the script stands there from now on.
    """

    number: int
    kind: OutcomeKind
    value: Any
    message: str
    at: float

    @property
    def exception(self) -> str | None:
        """The name of the built-in exception that the script sees; `None` for a result."""
        return _EXCEPTIONS.get(self.kind)


@dataclass(frozen=True)
class ScriptError:
    """The exception that has ended a script.

    Attributes:
        type: The name of its class.
        message: Its message.
        line: The line of the script, from 1; `None` if it is not known.
    """

    type: str
    message: str
    line: int | None = None


@dataclass(frozen=True)
class CallsDue:
    """A script goes on when one of its calls has an outcome.

    Attributes:
        calls: The new calls, in order; none if it only waits for earlier ones.
        printed: The output since the last step.
    """

    calls: Sequence[ScriptCall]
    printed: str = ""


@dataclass(frozen=True)
class ScriptEnd:
    """A script is over.

    Attributes:
        value: The value of its last expression, a value of JSON; `None` if there is none.
        error: The exception that has ended it; `None` if it ended by itself.
        printed: The output since the last step.
    """

    value: Any = None
    error: ScriptError | None = None
    printed: str = ""


Step: TypeAlias = CallsDue | ScriptEnd


class EngineSession(Protocol):
    """A script in progress. Its steps depend on the code, seed, clock and outcomes alone."""

    def step(self, outcomes: Sequence[ScriptOutcome], /) -> Step:
        """Run the script until it needs an outcome that it has not, or ends.

        Args:
            outcomes: The outcomes since the last step, in the order of the log. The first step has
                none, each later one has at least one.
        """

    def close(self) -> None:
        """End the interpreter, from any thread and at any moment. It may be called twice."""


class Engine(Protocol):
    """Starts scripts.

    Attributes:
        version: Its name and version, for the log.
    """

    @property
    def version(self) -> str:
        """The name and version of the interpreter."""

    def start(
        self, code: str, functions: Sequence[Function], *, seed: str, clock: float, replaying: bool
    ) -> EngineSession:
        """Prepare a script, which begins with the first step.

        Args:
            code: The script.
            functions: The tools that it can call.
            seed: For all that is drawn at random.
            clock: The time of its beginning in Unix seconds.
            replaying: Whether earlier steps are taken again, so that its limit of time is wider.
        """
