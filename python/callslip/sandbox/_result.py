"""What came of a script."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from callslip.sandbox._display import artifact_html, result_html, result_text
from callslip.sandbox._folders import ArtifactFolder
from callslip.sandbox._text import cleaned

__all__ = ["Artifact", "Isolation", "ScriptResult", "ScriptStatus", "safe_path"]

ScriptStatus: TypeAlias = Literal[
    "ok",
    "error",
    "timeout",
    "cpu_limit",
    "memory_limit",
    "output_limit",
    "disk_limit",
    "prompt_limit",
    "idle_timeout",
    "cancelled",
    "killed",
]

MODEL_BYTES = 32 << 10
"""What a model is told of a script at most, as JSON."""

STREAM_BYTES = {"stdout": 16 << 10, "stderr": 8 << 10}
"""What it is told of each stream, as JSON: the beginning and the end."""

_SPARE = 256
"""Bytes for the names of the streams, and for what an encoder writes a little longer."""

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Isolation:
    """What kept a script apart.

    Attributes:
        profile: `isolated`, `restricted` or `unconfined`; a runner of another kind may have its
            own word.
        layers: What was in force, as it was measured.
    """

    profile: str
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a script left in `out/`. Its content is whatever the script wrote.

    Attributes:
        path: Its name below `out/`, made safe.
        size: In bytes.
        sha256: Of its content, in hexadecimal digits.
        mime: What its name says that it is.
        file: The copy of it. Unless the runner was made with `artifacts=…`, it is there as long as
            this object: pickled, it takes its content along.
    """

    path: str
    size: int
    sha256: str
    mime: str
    file: Path
    _folder: object = field(default=None, repr=False, compare=False)

    def read_bytes(self) -> bytes:
        """Return its content."""
        return self.file.read_bytes()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # The one file lasts as long as any of them.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        about = (self.path, self.size, self.sha256, self.mime)
        if getattr(self._folder, "is_temporary", False):
            return _unpacked, (*about, self.read_bytes())
        return _named, (*about, self.file)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Copy it into a directory, below which it has its `path`. Returns where it is.

        Raises:
            FileExistsError: There is a file of that name.
        """
        target = Path(directory) / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return what a model is told of it."""
        return {"path": self.path, "size": self.size, "mime": self.mime}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": artifact_html(self)}


def _named(path: str, size: int, sha256: str, mime: str, file: Path) -> Artifact:
    return Artifact(path=path, size=size, sha256=sha256, mime=mime, file=file)


def _unpacked(path: str, size: int, sha256: str, mime: str, content: bytes) -> Artifact:
    """Make an artifact of another process: its file may be gone before it is asked for."""
    folder = ArtifactFolder(None)
    file = folder.put(path, content)
    return Artifact(path=path, size=size, sha256=sha256, mime=mime, file=file, _folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """What came of a script.

    Attributes:
        status: `ok`, `error` (it failed by itself), or what ended it: a limit (`timeout`,
            `cpu_limit`, `memory_limit`, `output_limit`, `disk_limit`, `prompt_limit`,
            `idle_timeout`), `cancelled`, or `killed` by a signal that was none of these.
        exit_code: `None` where it was ended by a signal.
        signal: The number of that signal; `None` where there was none.
        stdout: What it printed: of more than `ScriptLimits.kept_bytes` the beginning and the end.
        stderr: The same of its standard error.
        stdout_truncated: Whether some of `stdout` is left out.
        stderr_truncated: The same of `stderr`.
        stdout_bytes: All that it wrote to its standard output.
        stderr_bytes: The same of its standard error.
        duration_ms: From its start to its end.
        cpu_ms: Of all its processes.
        max_rss: Bytes of memory that it took at most.
        artifacts: Files that it left in `out/`.
        isolation: What kept it apart.
        hints: What the writer of the script should know.
    """

    status: ScriptStatus
    exit_code: int | None
    signal: int | None = None
    stdout: str
    stderr: str
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    duration_ms: float = 0
    cpu_ms: float = 0
    max_rss: int = 0
    artifacts: tuple[Artifact, ...] = ()
    isolation: Isolation
    hints: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it came to its end without an error."""
        return self.status == "ok"

    def for_model(self, *, interactive: bool = False) -> dict[str, Any]:
        """Return what a model is told: first how it ended, then its output.

        As JSON it has less than 32 KiB: of long output it holds the beginning and the end.

        Args:
            interactive: Whether a person has dealt with the script: then what was said between the
                two is no business of the model.
        """
        if interactive:
            words = {"ok": "session ended", "cancelled": "session cancelled"}
            status = words.get(self.status, "session failed")
            return {"status": status, "exit_code": self.exit_code}
        return self._told(MODEL_BYTES)

    def _told(self, most: int) -> dict[str, Any]:
        """Return what a model is told, in less than so many bytes of JSON where that is possible.

        What counts most stands first: whoever cuts the text cuts its end.
        """
        told: dict[str, Any] = {"status": self.status, "exit_code": self.exit_code}
        if self.signal is not None:
            told["signal"] = self.signal
        if self.hints:
            told["hints"] = _first_of(self.hints, most // 4)
        if self.artifacts:
            told["artifacts"] = _first_of(
                [artifact.to_dict() for artifact in self.artifacts], most // 4
            )
        told["truncated"] = self.stdout_truncated or self.stderr_truncated
        told["duration_s"] = round(self.duration_ms / 1000, 3)
        left = max(0, most - _size(told) - _SPARE)
        for name, part in (("stderr", 3), ("stdout", 1)):
            text = cleaned(getattr(self, name))
            told[name] = shortened(text, min(left // part, STREAM_BYTES[name]))
            left -= _size(told[name])
            told["truncated"] = told["truncated"] or told[name] != text
        return told

    def __str__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        return result_html(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def shortened(text: str, most: int) -> str:
    """Return a text that takes at most so many bytes as JSON: its beginning and its end."""
    if _size(text) <= most:
        return text
    # A mark of at most 40 bytes, and two quotes.
    half = max(0, (most - 42) // 2)
    head, tail = _fitting(text, half), _fitting(text[::-1], half)[::-1]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {left_out} characters left out …\n{tail}"


def _fitting(text: str, most: int) -> str:
    """Return as much of the beginning as takes so many bytes as JSON."""
    fits, too_many = 0, min(len(text), most) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _size(text[:middle]) - 2 <= most:
            fits = middle
        else:
            too_many = middle
    return text[:fits]


def _first_of(rows: Sequence[Any], most: int) -> list[Any]:
    """Return the first rows, and how many there are besides where they take too much."""
    kept: list[Any] = []
    for row in rows:
        most -= _size(row)
        if most < 0:
            return [*kept, f"and {len(rows) - len(kept)} more"]
        kept.append(row)
    return kept


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def safe_path(path: str) -> bool:
    """Whether a path stays below the folder that it is taken from, on any machine."""
    if not path or cleaned(path) != path or "\t" in path or "\n" in path:
        return False
    if any(character in path for character in '\\:*?"<>|'):
        return False
    parts = path.split("/")
    return all(part.strip(". ") and len(part.encode()) <= _LONGEST_NAME for part in parts)
