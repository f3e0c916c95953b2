"""External runners: commands that speak JSON lines on their standard input and output."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from callslip.errors import RunnerLost, UsageError
from callslip.sandbox._process import RunnerProcess

if TYPE_CHECKING:
    from callslip.sandbox._stream import Place

__all__ = ["CommandRunner"]


class CommandRunner:
    """Runs scripts by a command, such as `docker run -i`, that speaks JSON lines.

    It is started for each script, and once for all those of a session. It gets a line `run`, writes
    a line for each event and one for the end, as the guide to scripts says. The module
    `callslip.sandbox.serve` is such a runner: one file that needs nothing but Python.

    What it writes to its standard error is told where it fails. When its standard input ends, so
    must it.

    Args:
        command: The program and its arguments.
        about: A sentence for the model about the place, for example "It has no network."
        env: Its environment; default this program's.
        start_seconds: How long it may take to begin a script, packages and all, since it last said
            anything.

    Raises:
        UsageError: The command is none.
    """

    about: str

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        about: str = "",
        env: Mapping[str, str] | None = None,
        start_seconds: float = 300.0,
    ) -> None:
        if isinstance(command, str) or not command:
            raise UsageError(
                "expected the command as a list, ['docker', 'run', …]: got "
                f"{'a string' if isinstance(command, str) else 'an empty one'}"
            )
        if not start_seconds > 0:
            raise UsageError(f"expected start_seconds to be more than 0: got {start_seconds!r}")
        self._command = [os.fspath(one) for one in command]
        self._env = None if env is None else dict(env)
        self._start_seconds = start_seconds
        self.about = about

    def open(self) -> Place:
        """Start the command.

        Raises:
            RunnerLost: It can't be started.
        """
        try:
            process = subprocess.Popen(  # noqa: S603  # it is the developer's own command
                self._command,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise RunnerLost(
                f"the runner '{self._command[0]}' can't be started: {error.strerror or error}"
            ) from error
        place = RunnerProcess(process, self._command[0], start_seconds=self._start_seconds)
        # A session that nobody has any more leaves no process behind.
        weakref.finalize(place, place.closer())
        return place

    def __repr__(self) -> str:
        return f"<CommandRunner {self._command[0]!r}>"
