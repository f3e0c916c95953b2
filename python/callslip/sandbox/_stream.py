"""Protocols of running scripts, and of the places where they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["CodeRunner", "Place", "ScriptRequest", "ScriptStream"]

ScriptRequest: TypeAlias = Mapping[str, Any]
"""The message `run`: `type`, `version`, `code`, `interactive`, `limits` and `dependencies`; and
`files`, if there are any and the runner takes them: a list of `{"name", "data"}`, with the bytes in
base64. Each script finds them unchanged in `in/`, below its working directory."""


class ScriptStream(Protocol):
    """A running script. Its methods may be called from any thread; only `wait` blocks.

    The events are those that a runner writes as JSON lines. The last one is `finished`, `refused`
    or `failed`, also for a stream that was cancelled: then it comes once the script is dead.
    """

    def fileno(self) -> int:
        """Return a descriptor that is readable while there are new events."""

    def news(self) -> list[dict[str, Any]]:
        """Return the events since the last call, and make the descriptor unreadable."""

    def wait(self, seconds: float) -> None:
        """Wait for events, for at most this many seconds."""

    def answer(self, number: int, text: str | None) -> None:
        """Answer the question with the `id` `number`; `None` is the end of input."""

    def cancel(self) -> None:
        """Kill the script. May be called more than once."""

    @property
    def over(self) -> bool:
        """Whether `news` has returned the last event."""


class Place(Protocol):
    """A place where scripts run one after the other, with the files of the earlier ones."""

    def start(self, request: ScriptRequest) -> ScriptStream:
        """Start a script.

        Raises:
            SandboxError: The script cannot be started.
        """

    def close(self) -> None:
        """End the running script and remove all files. May be called more than once."""


@runtime_checkable
class CodeRunner(Protocol):
    """A runner of scripts elsewhere than on this machine, for `PythonRunner(backend=…)`.

    `CommandRunner` is the one for any command that speaks JSON lines. For another service, a small
    program of that kind is enough. A runner whose attribute `takes_files` is `True` receives the
    files for scripts in its requests; for any other one there are none.

    Attributes:
        about: A sentence for the model about the place, for example whether it has a network.
    """

    about: str

    def open(self) -> Place:
        """Return a new place, for one script or for the scripts of a session.

        Raises:
            SandboxError: No place is available.
        """
