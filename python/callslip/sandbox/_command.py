"""External runners: commands that speak JSON lines on their standard input and output."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_dict_of_texts, check_flag, check_seconds, check_text
from callslip.errors import RunnerLost, UsageError
from callslip.sandbox._process import RunnerProcess

if TYPE_CHECKING:
    from callslip.sandbox._stream import Place

__all__ = ["CommandRunner"]


@knows_names_of_class()
class CommandRunner:
    """Runs scripts with a command that speaks JSON lines, such as `docker run -i`.

    The command is started once for each script, or once for all scripts of a session. It reads a
    line `run`, and writes a line for each event and one for the end, as described in the guide to
    scripts. The module `callslip.sandbox.serve` is such a runner: one file that needs only Python.

    Errors quote its standard error. The command must end when its standard input ends.

    Args:
        command: The program and its arguments.
        about: A sentence for the model about the place, for example "It has no network." Default:
            an empty text.
        env: The environment of the command. Default: this program's.
        takes_files: Whether the command reads `files` of a line `run`, as `serve` does. Without it,
            scripts find no files in `in/`. Default: `False`.
        start_seconds: Seconds without any message until a script, with its packages, has to start.
            Default: 300.

    Raises:
        UsageError: The command is not a list, or empty; or an option has a wrong value.
    """

    about: str

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        about: str = "",
        env: Mapping[str, str] | None = None,
        takes_files: bool = False,
        start_seconds: float = 300.0,
    ) -> None:
        if not (
            isinstance(command, Sequence)
            and not isinstance(command, str | bytes)
            and command
            and all(isinstance(one, str | os.PathLike) for one in command)
        ):
            raise UsageError(
                f"expected the command as a list, ['docker', 'run', …]: got {command!r}"
            )
        check_text("about", about)
        if env is not None:
            check_dict_of_texts("env", env)
        check_flag("takes_files", takes_files)
        check_seconds("start_seconds", start_seconds, zero=False)
        self._command = [os.fspath(one) for one in command]
        self._env = None if env is None else dict(env)
        self._start_seconds = start_seconds
        self.about = about
        self.takes_files: bool = takes_files

    def open(self) -> Place:
        """Start the command.

        Raises:
            RunnerLost: The command cannot be started.
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
        # Ends the process when the place is garbage collected.
        weakref.finalize(place, place.closer())
        return place

    def __repr__(self) -> str:
        return f"<CommandRunner {self._command[0]!r}>"
