"""The interpreters of this machine that a wheel is for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

LOWEST = (3, 11)

_ABOUT = (
    "import json, sys, sysconfig; print(json.dumps([sys.version_info[:2], sys.implementation.name, "
    "bool(sysconfig.get_config_var('Py_GIL_DISABLED')), sys.executable]))"
)


@dataclass(frozen=True)
class Python:
    """An interpreter.

    Attributes:
        path: Its program.
        version: Its minor version, as (3, 13).
        free_threaded: Whether it was built without the global interpreter lock.
    """

    path: Path
    version: tuple[int, int]
    free_threaded: bool

    @property
    def name(self) -> str:
        return f"{self.version[0]}.{self.version[1]}{'t' if self.free_threaded else ''}"


def find() -> list[Python]:
    """Return one interpreter of each version that callslip is for, the lowest version first.

    They are looked for in `PATH`, in the folders of pyenv, and in the folders that
    `CALLSLIP_PYTHONS` names.
    """
    found: dict[tuple[tuple[int, int], bool], Python] = {}
    for path in _candidates():
        python = _ask(path)
        if python is not None and python.version >= LOWEST:
            found.setdefault((python.version, python.free_threaded), python)
    return [found[key] for key in sorted(found)]


def _candidates() -> list[Path]:
    folders = os.environ.get("CALLSLIP_PYTHONS", "").split(os.pathsep)
    folders += os.environ.get("PATH", "").split(os.pathsep)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += [str(folder) for folder in _folders(pyenv)]
    names = re.compile(r"python(3\.\d+t?)?(\.exe)?")
    return [path for folder in filter(None, folders) for path in _listed(folder, names)]


def _folders(pyenv: Path) -> list[Path]:
    # Root's may be named to a user who can't enter it.
    with contextlib.suppress(OSError):
        return sorted(pyenv.glob("versions/*/bin"), reverse=True)
    return []


def _listed(folder: str, names: re.Pattern[str]) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in Path(folder).iterdir() if names.fullmatch(path.name))
    return []


def _ask(path: Path) -> Python | None:
    """Return what the program is, or None if it isn't a CPython that works."""
    try:
        asked = subprocess.run(
            [str(path), "-I", "-c", _ABOUT], capture_output=True, text=True, timeout=30, check=True
        )
        version, implementation, free_threaded, executable = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if implementation != "cpython":
        return None
    return Python(Path(executable), (version[0], version[1]), free_threaded)
