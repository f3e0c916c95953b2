"""`callslip doctor`."""

from __future__ import annotations

import argparse
import locale
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata

from callslip._core import __version__
from callslip.cli._output import print_text
from callslip.sandbox._native import probe_profiles

__all__ = ["run"]

_PACKAGES = (
    *("pydantic", "openai", "anthropic", "xllamacpp", "mcp", "httpx", "genai-prices", "uv"),
    *("starlette", "uvicorn", "opentelemetry-api", "pgmq", "obstore", "temporalio"),
)


def run(options: argparse.Namespace) -> int:
    """Print facts without anything private: no path, no name, no variable's value."""
    del options
    facts = dict(_facts())
    width = max(map(len, facts))
    for name, fact in facts.items():
        print_text(f"{name.ljust(width)}  {fact}")
    return 0


def _facts() -> Iterator[tuple[str, str]]:
    yield "callslip", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    # That of this Python: the store has its own.
    yield "SQLite of Python", sqlite3.sqlite_version
    for name in _PACKAGES:
        yield name, _version(name)
    for profile, problem in probe_profiles().items():
        reason = "" if problem is None else f"not available: {problem['stage']}"
        yield f"sandbox {profile}", reason or "available"
    yield "terminal", _terminal()
    yield "encoding", f"{sys.stdout.encoding}, {locale.getpreferredencoding(False)}"  # noqa: FBT003  # its only parameter


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _terminal() -> str:
    parts = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name).isatty()]
    return f"{', '.join(parts) or 'none'}; TERM={os.environ.get('TERM', '')}"
