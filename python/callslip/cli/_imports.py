"""Objects of a program, by the words of a command."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from callslip.errors import UsageError

__all__ = ["imported"]


def imported(what: str, name: str, form: str) -> Any:
    """Return the object that a command names.

    Args:
        what: What it is, for the error: `"the tool"`.
        name: Its module and its name, with a colon between.
        form: How it is given, for the error.

    Raises:
        UsageError: The name has another form, or there is no such object.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise UsageError(f"expected {form}: got {name}")
    # As `python -m` has it: modules of the working folder are found.
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{what} {name} cannot be imported: {error}") from error
