"""What a docstring says: the description, and a line for each parameter."""

from __future__ import annotations

import re
from typing import Any, Literal

__all__ = ["read_docstring"]

_GOOGLE = re.compile(
    r"^[ \t]*(Args|Arguments|Params|Parameters|Keyword Args|Keyword Arguments|Other Parameters"
    r"|Returns|Yields|Raises|Examples?|Notes?|Warns|Warnings?)[ \t]*:[ \t]*$",
    re.MULTILINE,
)
_NUMPY = re.compile(
    r"^[ \t]*(Parameters|Other Parameters|Returns|Yields|Raises)[ \t]*\n[ \t]*-{3,}[ \t]*$",
    re.MULTILINE,
)
_SPHINX = re.compile(
    r"^[ \t]*:(param|arg|argument|key|keyword|parameter|returns?|raises?)\b", re.MULTILINE
)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description and the parameters' descriptions.

    Google, NumPy and Sphinx style are told by their sections. A text without any is all
    description, and griffe is not imported for it.
    """
    text = text.strip()
    style: Literal["google", "numpy", "sphinx"]
    if _GOOGLE.search(text):
        style = "google"
    elif _NUMPY.search(text):
        style = "numpy"
    elif _SPHINX.search(text):
        style = "sphinx"
    else:
        return text, {}
    from griffe import Docstring, DocstringSectionKind

    sections = Docstring(text).parse(style, **_quiet(style))
    description: list[str] = []
    parameters: dict[str, str] = {}
    for section in sections:
        value: Any = section.value
        if section.kind is DocstringSectionKind.text:
            description.append(value.strip())
        elif section.kind in {
            DocstringSectionKind.parameters,
            DocstringSectionKind.other_parameters,
        }:
            for parameter in value:
                name = parameter.name.lstrip("*")
                parameters[name] = " ".join(parameter.description.split())
    return "\n\n".join(description), parameters


def _quiet(style: str) -> dict[str, Any]:
    """Options that keep griffe from logging about types it does not find: they are in the hints."""
    options: dict[str, Any] = {"warnings": False}
    if style != "sphinx":
        options["warn_unknown_params"] = False
    return options
