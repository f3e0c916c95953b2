"""Names of files that scripts find, and how much of them there may be."""

from __future__ import annotations

import unicodedata
from collections.abc import Container

__all__ = ["FOLDER", "MOST_BYTES", "MOST_FILES", "distinct_name", "key_of", "safe_name"]

FOLDER = "in"
"""The folder of the files, below the working directory of a script."""

MOST_BYTES = 100_000_000
"""Bytes of all files of a run or session together."""

MOST_FILES = 1000

_LONGEST = 200
"""Bytes of a name. Systems allow 255, and a number may be added."""

_LONGEST_ENDING = 20

_FORBIDDEN = frozenset(':*?"<>|/\\')
_RESERVED = frozenset(
    {
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{name}{digit}" for name in ("com", "lpt") for digit in range(10)),
    }
)

_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "video/mp4": ".mp4",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/plain": ".txt",
}
"""Not those of the system, which differ from machine to machine."""


def safe_name(name: str | None, label: str, media_type: str) -> str:
    """Return a name that is valid and harmless on any machine.

    Args:
        name: The name of the file, of which the last part of a path counts; `None` without one.
        label: The name to use if nothing is left of it.
        media_type: The media type, which gives a file without a name its ending.
    """
    text = _harmless((name or "").replace("\\", "/").rpartition("/")[2])
    return text or f"{_harmless(label)}{_ENDINGS.get(media_type, '')}"


def distinct_name(name: str, taken: Container[str]) -> str:
    """Return the name, with a number before its ending if its key is taken."""
    stem, ending = _split(name)
    number, given = 1, name
    while key_of(given) in taken:
        number += 1
        given = f"{stem}-{number}{ending}"
    return given


def key_of(name: str) -> str:
    """Return what is equal for names that some file system takes for the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _harmless(name: str) -> str:
    text = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    text = "".join(
        one if (one.isprintable() and one not in _FORBIDDEN) else "_" for one in text
    ).strip()
    text = text.rstrip(". ")
    if not text.strip("._- "):
        return ""
    if text[0] in "-.":
        text = f"_{text[1:]}"
    if text.partition(".")[0].strip().casefold() in _RESERVED:
        text = f"_{text}"
    stem, ending = _split(text)
    room = _LONGEST - len(ending.encode())
    if len(stem.encode()) > room:
        text = stem.encode()[:room].decode("utf-8", "ignore") + ending
    return text.rstrip(". ")


def _split(name: str) -> tuple[str, str]:
    """Return a name without its ending, and the ending."""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending.encode()) > _LONGEST_ENDING:
        return name, ""
    return stem, dot + ending
