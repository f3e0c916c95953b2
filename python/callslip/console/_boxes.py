"""The box of a call that awaits approval: the whole call, and what a person may do."""

from __future__ import annotations

import json

from callslip.approval import view
from callslip.approval._box import call_parts, reason_part, said, short_line
from callslip.look._markup import Markup, el, joined
from callslip.runs import Ticket

__all__ = ["box_of"]


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
    short = short_line(call)
    data = {"data-seal": seal, "data-address": address, "data-ticket": ticket.id}
    return el(
        "section",
        el("h3", said(f"{call.ticket_id} {call.tool} awaits approval"), id=f"name-{key}"),
        el("p", f"run {ticket.run_id} of {agent}", class_="soft"),
        call_parts(call),
        reason_part(call),
        el("div", _controls(key, ticket, short, may_decide), class_="controls"),
        class_="ask",
        id=f"ask-{key}",
        aria_labelledby=f"name-{key}",
        **data,
    )


def _controls(key: str, ticket: Ticket, short: Markup, may_decide: str | None) -> Markup:
    """Return the fields and buttons. The short line stands directly above the buttons."""
    if may_decide is not None:
        return joined(short, el("p", may_decide))
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
        short,
        el("p", buttons, class_="buttons"),
        el("p", role="status"),
    )
