"""`callslip console`."""

from __future__ import annotations

import argparse
from importlib import import_module

from callslip.cli._files import check_present
from callslip.errors import UsageError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Serve the console of a file until Ctrl-C."""
    try:
        console = import_module("callslip.console")
    except ModuleNotFoundError as error:
        raise UsageError(
            f'{error.name} is not installed: use pip install "callslip[console]"'
        ) from error
    check_present(options.file)
    console.serve(options.file, port=options.port, open_browser=not options.no_open)
    return 0
