"""Objects of a program, by the words of a command."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from callslip._base import _lazy
from callslip.errors import UsageError

__all__ = ["ProgramError", "imported"]

_MOST_NAMES = 8
"""Names of a module in an error."""


class ProgramError(Exception):
    """A module of the program has raised an exception at its import.

    Attributes:
        trace: What Python would print of that exception, from the program's own line on.
    """

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramError, (str(self), self.trace)


def imported(what: str, name: str, form: str) -> Any:
    """Return the object that a command names.

    Args:
        what: What it is, for the error: `"the tool"`.
        name: Its module and its name, with a colon between.
        form: How it is given, for the error.

    Raises:
        UsageError: The name has another form, or there is no such object.
        ProgramError: The module has raised an exception.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute or module.startswith("."):
        raise UsageError(
            f"expected {form}: got {name or 'nothing'}; pass the module and the name, with a "
            "colon between: app:name"
        )
    # As `python -m` has it: modules of the working folder are found.
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:
        # What is missing may also be an import of the module itself.
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            hint = _advice(module, attribute)
            raise UsageError(f"{what} {name} cannot be imported: {hint}") from error
        raise _failed(what, name, error) from error
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        raise UsageError(
            f"{what} {name} cannot be imported: expected a name of {module}: got {attribute}"
            f"{_names_of(found, attribute)}"
        ) from error
    except Exception as error:  # a module may compute its names
        raise _failed(what, name, error) from error


def _advice(module: str, attribute: str) -> str:
    path = module.replace("\\", "/")
    if not path.endswith(".py") and "/" not in path:
        return f"there is no module {module} in this folder, and none is installed"
    dotted = path.removesuffix(".py").strip("/").replace("/", ".")
    if path.startswith("/"):
        dotted = dotted.rpartition(".")[2]
    return f"expected a module: got a path; pass {dotted}:{attribute}, from the folder that has it"


def _names_of(module: ModuleType, attribute: str) -> str:
    known = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    near = _lazy.difflib.get_close_matches(attribute, known, n=1)
    if near:
        return f"; use {module.__name__}:{near[0]}"
    # Names that the module imports come last.
    names = sorted(known, key=lambda name: _is_imported(known[name], module))
    return f"; it has {', '.join(names[:_MOST_NAMES])}" if names else ""


def _is_imported(value: object, module: ModuleType) -> bool:
    is_named = isinstance(value, (type, FunctionType))
    return is_named and value.__module__ != module.__name__


def _failed(what: str, name: str, error: Exception) -> ProgramError:
    own = _own_frames(error.__traceback__)
    trace = "".join(traceback.format_exception(type(error), error, own)).rstrip("\n")
    said = traceback.format_exception_only(type(error), error)[-1].strip()
    return ProgramError(f"{what} {name} cannot be imported: {said}", trace)


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback without those of the import."""
    while frames is not None:
        name = frames.tb_frame.f_code.co_filename
        if name not in {__file__, importlib.__file__} and not name.startswith("<frozen importlib"):
            break
        frames = frames.tb_next
    return frames
