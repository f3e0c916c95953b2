"""Images and files that a model names: by their label in its run, or by the line that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from callslip._base import _lazy

if TYPE_CHECKING:
    from callslip.parts import File

__all__ = ["PARTS", "LabelError", "core_schema", "label_schema", "labels_text", "named"]

FileT = TypeVar("FileT", bound="File")

PARTS = "callslip.parts"
"""The key of the context in which pydantic validates arguments: a function of no arguments that
returns the images and files of the run."""

_LISTED = 20
"""The most labels that one error lists."""


class LabelError(ValueError):
    """An argument is not the label of an image or file of the run."""


def _noun(kind: type[File], *, plural: bool = False) -> str:
    if kind.__name__ == "Image":
        return "images" if plural else "an image"
    return "images and files" if plural else "an image or file"


def labels_text(kind: type[File], *, plural: bool = False) -> str:
    """Return the description of an argument with one or several images or files, for the model."""
    noun = _noun(kind, plural=plural)
    subject = f"Labels of {noun}" if plural else f"The label of {noun}"
    return f'{subject} in this conversation, such as "U1" or "T3".'


def label_schema(kind: type[File]) -> dict[str, Any]:
    """Return the JSON Schema of a label."""
    return {"type": "string", "description": labels_text(kind)}


def named(kind: type[FileT], value: object, files: Callable[[], Mapping[str, File]]) -> FileT:
    """Return the image or file that an argument names.

    Args:
        kind: `Image` or `File`.
        value: A label, the line of a part, or an image or file.
        files: Returns the images and files of the run, by their labels.

    Raises:
        LabelError: It is none of these.
    """
    if isinstance(value, kind):
        return value
    known = {} if not isinstance(value, str) else files()
    text = str(value).strip()
    found = known.get(text) or next((one for one in known.values() if one._part.line == text), None)
    if isinstance(found, kind):
        return found
    right = [label for label, one in known.items() if isinstance(one, kind)]
    got = repr(value) if isinstance(value, str) else type(value).__name__
    if found is not None:
        got = f"{got}, which is a file of the type {found.media_type}"
    wanted = f"the label of {_noun(kind)} of this conversation"
    raise LabelError(f"expected {wanted}: got {got}; {_listed(kind, right)}")


def _listed(kind: type[File], labels: list[str]) -> str:
    if not labels:
        return f"it has no {_noun(kind, plural=True)}"
    told = ", ".join(labels[-_LISTED:])
    if len(labels) > _LISTED:
        return f"the last {_LISTED} labels are {told}"
    return f"the label is {told}" if len(labels) == 1 else f"the labels are {told}"


def core_schema(kind: type[FileT]) -> Any:
    """Return the schema by which pydantic reads images and files, inside of models too."""

    def read(value: object, info: Any) -> FileT:
        context = info.context
        files = context.get(PARTS) if isinstance(context, Mapping) else None
        return named(kind, value, files or dict)

    schemas = _lazy.pydantic_core.core_schema
    # Not a plain validator, because its schema would hide the description of a `Field`.
    return schemas.with_info_before_validator_function(read, schemas.any_schema())
