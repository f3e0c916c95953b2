"""The box of a call that awaits approval: the whole call, and what a person may do."""

from __future__ import annotations

import json
import sys

from callslip import _lazy
from callslip.approval import CallRow, CallView, view
from callslip.look._markup import Content, Markup, el, joined
from callslip.look._text import Texts
from callslip.runs import Ticket

__all__ = ["box_of"]

# A person approves the whole call: nothing of it is cut, masked or changed.
_WHOLE = Texts(limit=sys.maxsize, redact=None, masked=False)

_ORIGINS = {"given": None, "default": "the default", "left out": None}


def box_of(ticket: Ticket, agent: str, address: str, may_decide: str | None) -> Markup:
    """Return the box of a call.

    Args:
        ticket: The call.
        agent: The agent of its run.
        address: The address that takes a decision.
        may_decide: Why no decision is taken here; `None` if it is.
    """
    call, seal = view(ticket), ticket.seal or ""
    key = seal[:16]
    title = f"{_line(call.ticket_id)} {call.tool} awaits approval"
    content: list[Content] = [
        el("h3", _said(title), id=f"name-{key}"),
        el("p", f"run {_line(ticket.run_id)} of {_line(agent)}", class_="soft"),
    ]
    if call.about:
        content.append(el("p", _line(call.about), class_="soft"))
    content += [_call(call), _notes(call)]
    if call.reason is not None:
        content += [el("h4", "Why it waits"), _block(call.reason)]
    content.append(el("p", _said(call.short), class_="short"))
    content.append(el("div", _controls(key, ticket, may_decide), class_="controls"))
    data = {"data-seal": seal, "data-address": address, "data-ticket": ticket.id}
    return el(
        "section", content, class_="ask", id=f"ask-{key}", aria_labelledby=f"name-{key}", **data
    )


def _line(text: str) -> str:
    return _WHOLE.line(text)


def _said(text: str) -> Markup:
    """Return a text of the view as markup: what nobody would see is named in it already."""
    return Markup(_lazy.html.escape(text))


def _call(call: CallView) -> Markup:
    """Return the call: of an operation over HTTP, the method and the path with its values too."""
    shown = []
    if call.request is not None:
        shown += [el("h4", "Call"), _block(call.request)]
    if not call.rows:
        return joined(shown, el("p", "No arguments"))
    rows = [(el("dt", _label(row)), el("dd", _value(row))) for row in call.rows]
    return joined(shown, el("h4", "Arguments"), el("dl", rows, class_="fields"))


def _label(row: CallRow) -> Markup:
    about = ", ".join(one for one in (row.type, _ORIGINS[row.origin]) if one)
    return joined(_said(row.name), el("small", f" {about}", class_="soft") if about else None)


def _value(row: CallRow) -> Markup:
    if row.origin == "left out":
        return el("p", map(_said, row.lines), class_="soft")
    # The first line of a text of several says that it is one.
    lines = row.lines[1:] if len(row.lines) > 1 and isinstance(row.value, str) else row.lines
    return _block("\n".join(lines))


def _block(text: str) -> Markup:
    return el("pre", "\n", _said(text))


def _notes(call: CallView) -> Markup | None:
    return (
        el("ul", (el("li", _said(note)) for note in call.notes), class_="look")
        if call.notes
        else None
    )


def _controls(key: str, ticket: Ticket, may_decide: str | None) -> Markup:
    if may_decide is not None:
        return el("p", may_decide)
    # In ASCII: what is sent back is what stands there.
    arguments = json.dumps(ticket.arguments or {}, indent=2)
    change = el(
        "details",
        el("summary", "Change the arguments"),
        el("label", "All arguments, as JSON", for_=f"edit-{key}"),
        el("textarea", "\n", arguments, id=f"edit-{key}", rows="6", data_edit=True),
        class_="change",
    )
    buttons = (
        el("button", "Approve this call", type="button", data_do="approve"),
        el("button", "Deny", type="button", data_do="deny"),
    )
    return joined(
        change,
        el("label", "Why not? The model reads it.", for_=f"why-{key}"),
        el("textarea", id=f"why-{key}", rows="1", data_why=True),
        el("p", buttons, class_="buttons"),
        el("p", role="status"),
    )
