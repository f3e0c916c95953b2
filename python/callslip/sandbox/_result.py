"""What came of a script."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from callslip._base.options import check_type
from callslip.parts import IMAGE_TYPES, File, Image
from callslip.sandbox._display import artifact_html, result_html, result_text
from callslip.sandbox._folders import ArtifactFolder, new_file
from callslip.sandbox._text import strip_control_codes

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
"""The largest result for the model, in bytes of JSON."""

STREAM_BYTES = {"stdout": 16 << 10, "stderr": 8 << 10}
"""The largest text of each stream for the model, in bytes of JSON: its beginning and its end."""

_SPARE = 256
"""Bytes for the names of the streams, and for inexact estimates of the length of JSON."""

_LABEL = ", T1000.100"

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Isolation:
    """The sandbox of a script.

    Attributes:
        profile: `"isolated"`, `"restricted"` or `"unconfined"`; an external runner may report
            another.
        layers: The layers of the sandbox that were in force, as measured.
    """

    profile: str
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a script left in `out/`. The content is untrusted.

    Attributes:
        path: The path below `out/`, made safe.
        size: The size in bytes.
        sha256: The SHA-256 of the content, in hexadecimal digits.
        mime: The media type that the name suggests.
        file: A copy of the file. Without `artifacts=…` of the runner, the copy is deleted together
            with this object, and a pickled artifact contains the content.
    """

    path: str
    size: int
    sha256: str
    mime: str
    file: Path
    _folder: object = field(default=None, repr=False, compare=False)

    def read_bytes(self) -> bytes:
        """Return the content."""
        return self.file.read_bytes()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        # All copies share the one file.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        about = (self.path, self.size, self.sha256, self.mime)
        if getattr(self._folder, "is_temporary", False):
            return _unpickle_artifact, (*about, self.read_bytes())
        return _artifact_at, (*about, self.file)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Copy the file to its `path` below a directory. Returns the path of the copy.

        Only the user of this program may read the copy (mode 0600).

        Raises:
            UsageError: `directory` is not a path.
            FileExistsError: There is a file of that name.
        """
        check_type("directory", directory, (str, os.PathLike), "a path")
        target = Path(directory) / self.path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.file.open("rb") as source, new_file(target) as copy:
            shutil.copyfileobj(source, copy)
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return the description for the model: path, size and media type."""
        return {"path": self.path, "size": self.size, "mime": self.mime}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": artifact_html(self)}


def _artifact_at(path: str, size: int, sha256: str, mime: str, file: Path) -> Artifact:
    return Artifact(path=path, size=size, sha256=sha256, mime=mime, file=file)


def _unpickle_artifact(path: str, size: int, sha256: str, mime: str, content: bytes) -> Artifact:
    """Create an artifact from another process, whose own file may be deleted meanwhile."""
    folder = ArtifactFolder(None)
    file = folder.put(path, content)
    return Artifact(path=path, size=size, sha256=sha256, mime=mime, file=file, _folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """The result of a script.

    Attributes:
        status: `"ok"`; `"error"` if the script failed; the limit that ended it (`"timeout"`,
            `"cpu_limit"`, `"memory_limit"`, `"output_limit"`, `"disk_limit"`, `"prompt_limit"`,
            `"idle_timeout"`); `"cancelled"`; or `"killed"` by any other signal.
        exit_code: The exit code; `None` if a signal ended the script.
        signal: The number of the signal that ended the script; else `None`.
        stdout: Its standard output. Beyond `ScriptLimits.kept_bytes`: the beginning and the end.
        stderr: Its standard error, truncated likewise.
        stdout_truncated: Whether `stdout` is truncated.
        stderr_truncated: Whether `stderr` is truncated.
        stdout_bytes: The number of all bytes on its standard output.
        stderr_bytes: The number of all bytes on its standard error.
        duration_ms: Milliseconds from start to end.
        cpu_ms: CPU milliseconds of all its processes.
        max_rss: The largest amount of memory, in bytes.
        artifacts: The files that it left in `out/`.
        isolation: The sandbox that was in force.
        hints: Hints about its errors, for the model that wrote it.
        checkpoint: The name under which the files of its session are kept (`files=` of the runner);
            `None` if there are none, or they are not kept.
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
    checkpoint: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the script ended without an error."""
        return self.status == "ok"

    def for_model(self, *, interactive: bool = False) -> dict[str, Any]:
        """Return the result for the model: first the status, then the output.

        It has less than 32 KiB as JSON. Long output is truncated to its beginning and its end.

        Args:
            interactive: Whether a person has used the script. The model must not read their
                dialogue, so the result contains only the status. Default: `False`.
        """
        if interactive:
            words = {"ok": "session ended", "cancelled": "session cancelled"}
            status = words.get(self.status, "session failed")
            told = {"status": status, "exit_code": self.exit_code}
            return {**told, "checkpoint": self.checkpoint} if self.checkpoint else told
        return self._for_model_within(MODEL_BYTES)

    def _for_model_within(
        self, most: int, attached: Mapping[str, File | str] | None = None
    ) -> dict[str, Any]:
        """Return the result for the model, in fewer than `most` bytes of JSON if possible.

        The most important fields come first, because a text is truncated at its end.

        Args:
            most: The number of bytes.
            attached: Files by the paths of their artifacts, or why one is left out.
        """
        attached = attached or {}
        told: dict[str, Any] = {"status": self.status, "exit_code": self.exit_code}
        if self.signal is not None:
            told["signal"] = self.signal
        if self.hints:
            told["hints"] = _first_rows(self.hints, most // 4)
        if self.artifacts:
            rows = [one.to_dict() for one in self.artifacts]
            for row in rows:
                if (file := attached.get(row["path"])) is not None:
                    is_image = isinstance(file, Image) or row["mime"] in IMAGE_TYPES
                    row["image" if is_image else "file"] = file
            told["artifacts"] = _first_rows(rows, most // 4)
        if self.checkpoint:
            told["checkpoint"] = self.checkpoint
        told["truncated"] = self.stdout_truncated or self.stderr_truncated
        told["duration_s"] = round(self.duration_ms / 1000, 3)
        left = max(0, most - _size(told) - _SPARE)
        for name, part in (("stderr", 3), ("stdout", 1)):
            text = strip_control_codes(getattr(self, name))
            told[name] = truncate(text, min(left // part, STREAM_BYTES[name]))
            left -= _size(told[name])
            told["truncated"] = told["truncated"] or told[name] != text
        return told

    def __str__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        return result_html(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def truncate(text: str, most: int) -> str:
    """Return the beginning and the end of a text, in at most `most` bytes of JSON."""
    if _size(text) <= most:
        return text
    # A mark of at most 40 bytes, and two quotes.
    half = max(0, (most - 42) // 2)
    head, tail = _truncate_start(text, half), _truncate_start(text[::-1], half)[::-1]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {left_out} characters left out …\n{tail}"


def _truncate_start(text: str, most: int) -> str:
    """Return the beginning of a text, in at most `most` bytes of JSON."""
    fits, too_many = 0, min(len(text), most) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if _size(text[:middle]) - 2 <= most:
            fits = middle
        else:
            too_many = middle
    return text[:fits]


def _first_rows(rows: Sequence[Any], most: int) -> list[Any]:
    """Return the first rows, with the number of the others if they take too much room."""
    kept: list[Any] = []
    for row in rows:
        most -= _size(row)
        if most < 0:
            return [*kept, f"and {len(rows) - len(kept)} more"]
        kept.append(row)
    return kept


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=_line_with_label).encode())


def _line_with_label(file: File) -> str:
    """Return about the text that an image or file has in the result."""
    return f"{file!r}{_LABEL}"


def safe_path(path: str) -> bool:
    """Whether a relative path stays below its folder, on any machine."""
    if not path or strip_control_codes(path) != path or "\t" in path or "\n" in path:
        return False
    if any(character in path for character in '\\:*?"<>|'):
        return False
    parts = path.split("/")
    return all(part.strip(". ") and len(part.encode()) <= _LONGEST_NAME for part in parts)
