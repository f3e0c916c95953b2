"""The description of the tool, for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callslip.errors import InterpreterMissing
from callslip.sandbox._native import find_interpreter
from callslip.sandbox._result import STREAM_BYTES

if TYPE_CHECKING:
    from callslip.sandbox._limits import ScriptLimits
    from callslip.sandbox._runner import PythonRunner

__all__ = ["describe"]


def describe(runner: PythonRunner) -> str:
    """Return the description of the tool, generated from the runner's options."""
    parts = [
        f"Run a script of {_language(runner)} and get what it prints.",
        "Each call is a new process; files in its working directory stay for later calls.",
    ]
    if runner.backend is not None:
        parts.append(runner.backend.about)
    elif runner.profile != "unconfined":
        parts.append("It has no network and sees no files but its own.")
    parts += [_bounds(runner), _artifacts(runner), _packages(runner), _questions(runner)]
    return " ".join(part for part in parts if part)


def _language(runner: PythonRunner) -> str:
    if runner.backend is not None:
        return "Python"

    try:
        version = find_interpreter(runner.python).version
    except InterpreterMissing:
        # The error is raised when a script is run.
        return "Python"
    return f"Python {version.rpartition('.')[0]}"


def _bounds(runner: PythonRunner) -> str:
    limits = runner.limits
    return (
        f"It may take {limits.wall_seconds:g} seconds, {limits.cpu_seconds:g} of CPU, "
        f"{_amount(limits.memory_bytes)} of memory and {_amount(limits.disk_bytes)} of files; of "
        f"long output you see the beginning and the end: {_shown(limits, 'stdout')} of stdout, "
        f"{_shown(limits, 'stderr')} of stderr."
    )


def _shown(limits: ScriptLimits, stream: str) -> str:
    return _amount(min(limits.kept_bytes, STREAM_BYTES[stream]))


def _artifacts(runner: PythonRunner) -> str:
    if not runner.limits.artifacts:
        return ""
    return (
        "Files that it puts into a folder out/, which it makes, are handed to the user; images "
        "among them are in the result too."
    )


def _packages(runner: PythonRunner) -> str:
    allowed = runner.approval.summary()
    if not allowed:
        return "There is the standard library only: no packages."
    return (
        'Packages are declared in its first line, # dependencies = ["numpy"], and installed before '
        f"it runs: {allowed}."
    )


def _questions(runner: PythonRunner) -> str:
    if runner.ask is None:
        return "Nobody answers input(): interactive must be false."
    return (
        "If it calls input(), set interactive to true: the user then deals with it, and you learn "
        "only that the session ended."
    )


def _amount(size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return (
                f"{size / factor:g} {unit}" if size % factor == 0 else f"{size / factor:.1f} {unit}"
            )
    return f"{size} bytes"
