"""A script under way, wherever it runs, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["CodeRunner", "Place", "ScriptRequest", "ScriptStream"]

ScriptRequest: TypeAlias = Mapping[str, Any]
"""`type`, `version`, `code`, `interactive`, `limits`, `dependencies`: the host's first line."""


class ScriptStream(Protocol):
    """A script under way. Its methods are called from any thread, and never block but for `wait`.

    Its events are those that a runner writes as JSON lines; the last one is `finished`, `refused`
    or `failed`. A stream that is cancelled ends with such an event too, once the script is dead.
    """

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is news."""

    def news(self) -> list[dict[str, Any]]:
        """Return the events since the last call, and make the descriptor unreadable."""

    def wait(self, seconds: float) -> None:
        """Wait for news, at most so long."""

    def answer(self, number: int, text: str | None) -> None:
        """Answer the question of this `id`; `None` is the end of input."""

    def cancel(self) -> None:
        """Kill the script. May be said any number of times."""

    @property
    def over(self) -> bool:
        """Whether the last event was handed out."""


class Place(Protocol):
    """Where scripts run one after the other, and find the files of those before them."""

    def start(self, request: ScriptRequest) -> ScriptStream:
        """Begin a script.

        Raises:
            SandboxError: It can't be begun.
        """

    def close(self) -> None:
        """End what runs there and remove its files. May be said any number of times."""


@runtime_checkable
class CodeRunner(Protocol):
    """Runs scripts elsewhere than on this machine: for `PythonRunner(backend=…)`.

    `CommandRunner` is one for any command that speaks JSON lines; another service needs no more
    than a small program of that kind.

    Attributes:
        about: A sentence for the model about the place: whether it has a network, for example.
    """

    about: str

    def open(self) -> Place:
        """Make a place, for one script or for those of a session.

        Raises:
            SandboxError: There is none to be had.
        """
