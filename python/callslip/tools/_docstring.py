"""Descriptions from docstrings: one for the tool, and one for each parameter."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from callslip._base import _lazy

__all__ = ["read_docstring"]

Style: TypeAlias = Literal["google", "numpy", "sphinx"]

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

_STYLES: dict[Style, re.Pattern[str]] = {"google": _GOOGLE, "numpy": _NUMPY, "sphinx": _SPHINX}

_TOLD = {"note", "notes", "warning", "warnings", "important"}

_ROLE = re.compile(r"(\w+) *\(:\w+:`[^`]*`[^)]*\) *:\s*(.*)", re.DOTALL)
"""``name (:obj:`str`): text``, which griffe cuts at the first colon."""


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description and the parameters' descriptions.

    Google, NumPy and Sphinx style are recognised by their sections; one text may mix them. A text
    without sections is the description, and does not need griffe. Notes and warnings are part of
    the description, because they are meant for the caller.
    """
    text = text.strip()
    parameters: dict[str, str] = {}
    for style, sections in _STYLES.items():
        if sections.search(text):
            text, found = _read(text, style, sections)
            parameters = {**found, **parameters}
    return text, parameters


def _read(text: str, style: Style, sections: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    if style == "google":
        # griffe needs a blank line before a section.
        text = re.sub(rf"(?<=\S)\n(?={sections.pattern})", "\n\n", text, flags=re.MULTILINE)
    description: list[str] = []
    parameters: dict[str, str] = {}
    for section in _lazy.griffe.Docstring(text).parse(style, **_quiet(style)):
        value: Any = section.value
        if section.kind is _lazy.griffe.DocstringSectionKind.text:
            description.append(value.strip())
        elif section.kind is _lazy.griffe.DocstringSectionKind.admonition:
            if value.kind in _TOLD:
                description.append(f"{value.kind.title()}: {value.description.strip()}")
        elif section.kind in {
            _lazy.griffe.DocstringSectionKind.parameters,
            _lazy.griffe.DocstringSectionKind.other_parameters,
        }:
            for parameter in value:
                name, told = parameter.name.lstrip("*"), parameter.description
                if cut := _ROLE.fullmatch(f"{name}:{told}"):
                    name, told = cut.groups()
                parameters[name] = " ".join(told.split())
    return "\n\n".join(part for part in description if part), parameters


def _quiet(style: Style) -> dict[str, Any]:
    """Return options that stop griffe from logging missing types, which are in the hints."""
    options: dict[str, Any] = {"warnings": False}
    if style != "sphinx":
        options["warn_unknown_params"] = False
    return options
