"""A call as markup, for pages and notebooks: each value in a field of its own, below its name."""

from __future__ import annotations

import sys

from callslip._base import _lazy
from callslip.approval._view import CallRow, CallView
from callslip.look._markup import Content, Markup, el, joined
from callslip.look._origins import influence_line, origin_tags
from callslip.look._outputs import output_of
from callslip.look._text import Texts

__all__ = ["call_output", "call_parts", "reason_part", "said", "short_line"]

# A person approves the whole call: nothing of it is cut, masked or changed.
_WHOLE = Texts(limit=sys.maxsize, redact=None, masked=False)

_ORIGINS = {"given": None, "default": "the default", "left out": None}


def said(text: str) -> Markup:
    """Return a text of the view as markup; invisible characters are already named in it."""
    return Markup(_lazy.html.escape(text))


def call_parts(call: CallView) -> Markup:
    """Return what the tool does, the call, and what is to be said of its characters.

    Of an operation over HTTP, the method and the path with its values too.
    """
    parts: list[Content] = []
    if call.about:
        parts.append(el("p", _WHOLE.line(call.about), class_="soft"))
    if call.request is not None:
        parts += [el("h4", "Call"), _block(call.request)]
    if call.rows:
        rows = [(el("dt", _label(row)), el("dd", _value(row))) for row in call.rows]
        parts += [el("h4", "Arguments"), el("dl", rows, class_="fields")]
    else:
        parts.append(el("p", "No arguments"))
    parts.append(influence_line(call.influenced, str))
    if call.notes:
        parts.append(el("ul", (el("li", said(note)) for note in call.notes), class_="look"))
    return joined(parts)


def reason_part(call: CallView) -> Markup:
    """Return why the call waits; nothing without a reason."""
    if call.reason is None:
        return joined()
    return joined(el("h4", "Why it waits"), _block(call.reason))


def short_line(call: CallView) -> Markup:
    """Return the short line. Letters of one value never move another one."""
    return el("p", call.short_with_each(lambda value: el("bdi", said(value))), class_="short")


def call_output(call: CallView) -> Markup:
    """Return a call as the output of a notebook, ended by its short line."""
    needs = "an answer" if call.awaiting == "result" else "approval"
    return output_of(
        el("h1", f"A call needs {needs}"),
        el("p", said(f"{call.tool} ({call.run_id}, {call.ticket_id})"), class_="soft"),
        call_parts(call),
        reason_part(call),
        el("p", "Seal: ", call.seal[:16], class_="soft") if call.seal is not None else None,
        short_line(call),
    )


def _label(row: CallRow) -> Markup:
    about = ", ".join(one for one in (row.type, _ORIGINS[row.origin]) if one)
    kind = el("small", f" {about}", class_="soft") if about else None
    # Next to the name: the field of a value may contain any text, but is never above it.
    return joined(said(row.name), kind, origin_tags(row.origins, str))


def _value(row: CallRow) -> Markup:
    if row.origin == "left out":
        return el("p", map(said, row.lines), class_="soft")
    if len(row.lines) > 1 and isinstance(row.value, str):
        # Without its number of lines, a text that ends in a blank one could be taken for JSON.
        count, *lines = row.lines
        return joined(el("p", said(count), class_="soft"), _block("\n".join(lines)))
    return _block("\n".join(row.lines))


def _block(text: str) -> Markup:
    return el("pre", "\n", said(text))
