"""Images that a script left, for the model that wrote it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callslip import _core
from callslip.parts import IMAGE_TYPES, MOST_PIXELS, Image, has_too_many_pixels, received
from callslip.sandbox._folders import read_file

if TYPE_CHECKING:
    from callslip.sandbox._result import Artifact

__all__ = ["attached_images"]

_MOST_OF_ONE = 1 << 20
_MOST_OF_ALL = 4 << 20


def attached_images(artifacts: Sequence[Artifact]) -> dict[str, Image | str]:
    """Return the images among the files of a script by their paths, or why one is left out.

    Other files are left out in silence, and so is what is only called an image.
    """
    told: dict[str, Image | str] = {}
    left = _MOST_OF_ALL
    for artifact in artifacts:
        if artifact.mime not in IMAGE_TYPES:
            continue
        if artifact.size > _MOST_OF_ONE:
            told[artifact.path] = "not attached: larger than 1 MiB"
        elif artifact.size > left:
            told[artifact.path] = "not attached: the images of this call have 4 MiB already"
        elif (image := _read(artifact)) is not None:
            told[artifact.path] = image
            left -= image.size if isinstance(image, Image) else 0
    return told


def _read(artifact: Artifact) -> Image | str | None:
    try:
        data = read_file(artifact.file, artifact.size)
    except OSError:
        return "not attached: the file is gone"
    # A folder of the program is open to others.
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        return "not attached: the file was changed meanwhile"
    if has_too_many_pixels(_core.Part(data, artifact.mime, None)):
        return f"not attached: more than {MOST_PIXELS:,} pixels"
    file = received(data, artifact.mime, artifact.path)
    return file if isinstance(file, Image) else None
