"""The command line: `callslip`, or `python -m callslip`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from callslip.cli._imports import ProgramError
from callslip.cli._output import open_missing_streams, print_text, report
from callslip.cli._parser import command_parser
from callslip.errors import CallslipError, ReplayError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words after the name of the program. Default: those of this process.

    Returns:
        The exit status: 0 if all is well, 1 if a run, a replay, a reply or a module of the program
        is at fault, 2 if the command cannot be carried out, and 130 after Ctrl-C.

    Raises:
        SystemExit: The words are wrong, or ask for help.
    """
    open_missing_streams()
    options = command_parser().parse_args(arguments)
    # A command imports what it needs, so that help is quick.
    command = import_module(f"callslip.cli.{options.module}")
    try:
        status: int = command.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has enough. Nothing may be written at the exit, either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ProgramError as error:
        print_text(error.trace, sys.stderr)
        report(str(error))
        return 1
    except ReplayError as error:
        report(str(error))
        return 1
    except CallslipError as error:
        report(str(error))
        return 2
    except OSError as error:
        why = error.strerror or str(error)
        report(why if error.filename is None else f"{error.filename} cannot be used: {why}")
        return 2
    except KeyboardInterrupt:
        return 130
    return status
