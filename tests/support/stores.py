"""Stores as a killed process leaves them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def copy_store(path: Path, copy: Path) -> None:
    """Copy the files of an open SQLite store whose run waits for its model.

    Another process does it: to close a file of a database takes its locks from this process.
    """
    for end in ("", "-wal"):
        if Path(f"{path}{end}").exists():
            subprocess.run(["cp", f"{path}{end}", f"{copy}{end}"], check=True)
