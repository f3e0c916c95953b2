"""The place of scripts on this machine."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from callslip import _core
from callslip.sandbox._folders import WorkFolder
from callslip.sandbox._limits import OF_PACKAGES
from callslip.sandbox._native import NativeStream, Profile, find_interpreter, request_parts

if TYPE_CHECKING:
    from callslip.sandbox._stream import ScriptRequest

__all__ = ["NativePlace"]


_PATIENCE = 20.0
"""Seconds until the files of a cancelled script are removed, even if it has not ended."""


class NativePlace:
    """A working directory on this machine: a `Place`.

    Args:
        profile: The profile of the sandbox.
        python: The interpreter of scripts; `None` for that of this program.
        keeps_files: Whether files stay for later scripts.
        folder: The files to begin with; `None` for none.
    """

    def __init__(
        self,
        profile: Profile,
        python: str | os.PathLike[str] | None,
        *,
        keeps_files: bool,
        folder: WorkFolder | None = None,
    ) -> None:
        self._profile = profile
        self._python = python
        self._keeps_files = keeps_files
        self._lock = threading.Lock()
        self._streams: weakref.WeakSet[NativeStream] = weakref.WeakSet()
        self._folder = folder

    @property
    def path(self) -> Path | None:
        """The folder with the files of the scripts so far; `None` without one."""
        return None if self._folder is None else self._folder.path

    def start(self, request: ScriptRequest) -> NativeStream:
        """Start a script."""
        with self._lock:
            if self._keeps_files and self._folder is None:
                self._folder = WorkFolder()
            folder = self._folder
        more = {
            "packages": None,
            "profile": self._profile,
            "session": None if folder is None else str(folder.path),
            **request_parts(find_interpreter(self._python)),
        }
        native = {**more, **request}
        for name in ("type", "version", "dependencies"):
            native.pop(name)
        limits = native["limits"].items()
        native["limits"] = {name: value for name, value in limits if name not in OF_PACKAGES}
        stream = NativeStream(_core.ScriptJob.run(json.dumps(native)))
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """Kill all scripts, and remove the directory once they are dead."""
        left = [stream for stream in self._streams if not stream.over]
        for stream in left:
            stream.cancel()
        folder = self._folder
        if folder is None:
            return
        if left:
            # In a thread, because the followers of the scripts may wait for this one.
            threading.Thread(target=_remove_after, args=(folder, left), daemon=True).start()
        else:
            folder.remove()


def _remove_after(folder: WorkFolder, streams: list[NativeStream]) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and not all(stream.over for stream in streams):
        time.sleep(0.02)
    folder.remove()
