"""Markup of pages: one function writes it, and every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from callslip._base import _lazy
from callslip._base.unseen import replace_unseen

__all__ = ["DOCTYPE", "Content", "Markup", "el", "escaped", "joined"]


class Markup(str):
    """Markup that `el` has written. Any other text is escaped where it is put into a page."""

    __slots__ = ()


DOCTYPE = Markup("<!doctype html>\n")

Content: TypeAlias = "str | Iterable[Content] | None"
"""What an element contains: markup as it is, texts escaped, `None` for nothing."""

_EMPTY = frozenset({"br", "hr", "img", "input", "meta"})
_SHAPES = frozenset({"rect"})
"""Elements of SVG without content."""


def el(tag: str, /, *children: Content, **attributes: str | bool | float | None) -> Markup:
    """Return an element.

    Args:
        tag: The name of the tag, which is not escaped: a literal.
        children: What it contains.
        attributes: Its attributes. `class_` is `class`, and `_` stands for `-`. `True` is an
            attribute without a value; `False` and `None` are none.
    """
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{pairs}>")
    if tag in _SHAPES:
        return Markup(f"<{tag}{pairs}/>")
    return Markup(f"<{tag}{pairs}>{joined(*children)}</{tag}>")


def joined(*children: Content) -> Markup:
    """Return several pieces of content as one."""
    return Markup("".join(map(_written, children)))


def _written(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return escaped(content)
    return "".join(map(_written, content))


def escaped(text: str) -> Markup:
    """Return a text as markup, with invisible characters as code points."""
    return Markup(replace_unseen(_lazy.html.escape(text.replace("\r\n", "\n")), _name))


def _name(one: str) -> str:
    return f"⟨U+{ord(one):04X}⟩"
