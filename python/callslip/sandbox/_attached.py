"""Files that a script left, as parts of the run whose model wrote it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callslip import _core
from callslip.parts import IMAGE_TYPES, MOST_PIXELS, File, Image, has_too_many_pixels, received
from callslip.sandbox._folders import read_file

if TYPE_CHECKING:
    from callslip.sandbox._result import Artifact

__all__ = ["attached_files"]

_MOST_OF_ONE = 1 << 20
_MOST_OF_ALL = 4 << 20
"""Bytes of the files that a model may be sent. It pays for them in each later request."""


def attached_files(artifacts: Sequence[Artifact]) -> dict[str, File | str]:
    """Return the files of a script by their paths, or why one is left out.

    Empty files are left out in silence, and so is what is only called an image.
    """
    told: dict[str, File | str] = {}
    left = _MOST_OF_ALL
    for artifact in artifacts:
        is_image = artifact.mime in IMAGE_TYPES
        if is_image and (why := _too_large(artifact.size, left)):
            told[artifact.path] = why
            continue
        file = _read(artifact)
        if isinstance(file, File) and file.kind != "file":
            if why := _too_large(file.size, left):
                told[artifact.path] = why
                continue
            left -= file.size
        if file is not None:
            told[artifact.path] = file
    return told


def _too_large(size: int, left: int) -> str | None:
    if size > _MOST_OF_ONE:
        return "not attached: larger than 1 MiB"
    return "not attached: the images of this call have 4 MiB already" if size > left else None


def _read(artifact: Artifact) -> File | str | None:
    try:
        data = read_file(artifact.file, artifact.size)
    except OSError:
        return "not attached: the file is gone"
    # A folder of the program is open to others.
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        return "not attached: the file was changed meanwhile"
    if not data:
        return None
    if has_too_many_pixels(_core.Part(data, artifact.mime, None)):
        return f"not attached: more than {MOST_PIXELS:,} pixels"
    file = received(data, artifact.mime, artifact.path)
    return file if isinstance(file, Image) or artifact.mime not in IMAGE_TYPES else None
