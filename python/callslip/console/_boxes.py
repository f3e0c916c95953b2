"""The box of a call that awaits approval: the whole call, and what a person may do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from callslip._call_line import call_line
from callslip._json import to_json
from callslip.console._seal import seal_of
from callslip.look._text import Texts
from callslip.trace import TicketSpan, Trace

__all__ = ["box_of"]

# A person approves the whole call: nothing of it is cut, masked or changed.
_WHOLE = Texts(limit=sys.maxsize, redact=None, masked=False)
_LONGEST_NAME = 60


def box_of(run: Trace, ticket: TicketSpan, address: str, owner: str | None) -> str:
    """Return the box of a call.

    Args:
        run: The run of the call.
        ticket: The call.
        address: The address that takes a decision.
        owner: Who takes decisions; `None` for this console.
    """
    seal = seal_of(run.run_id, ticket.id, ticket.tool, ticket.arguments)
    line = _WHOLE.line
    reason = ticket.approval.reason if ticket.approval is not None else None
    why = "" if reason is None else f"<h4>Why it waits</h4>{_WHOLE.block(reason)}"
    return (
        f'<section class="ask" id="ask-{seal[:16]}" data-seal="{seal}" data-address="{address}" '
        f'data-ticket="{line(ticket.id)}" aria-labelledby="name-{seal[:16]}">'
        f'<h3 id="name-{seal[:16]}">{line(f"{ticket.id} {ticket.tool}")} awaits approval</h3>'
        f'<p class="soft">run {line(run.run_id)} of {line(run.agent)}</p>'
        f'{_call(ticket)}{why}<div class="controls">{_controls(seal[:16], owner)}</div></section>'
    )


def _call(ticket: TicketSpan) -> str:
    """Return the call: of an operation over HTTP, the method and the path with its values too."""
    arguments = ticket.arguments or {}
    shown = f"<h4>Arguments</h4>{_arguments(arguments)}" if arguments else "<p>No arguments</p>"
    if " " in ticket.tool:
        shown = f"<h4>Call</h4>{_WHOLE.block(call_line(ticket.tool, arguments))}{shown}"
    return shown


def _arguments(arguments: Mapping[str, Any]) -> str:
    if not all(_is_plain(name) for name in arguments):
        return _WHOLE.block(to_json(arguments))
    rows = (
        f"<dt>{_WHOLE.line(name)}</dt><dd>{_WHOLE.block(_said(value))}</dd>"
        for name, value in arguments.items()
    )
    return f'<dl class="fields">{"".join(rows)}</dl>'


def _is_plain(name: str) -> bool:
    return name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME


def _said(value: Any) -> str:
    """Return a value as JSON, but a text of several lines as it is."""
    return value if isinstance(value, str) and "\n" in value else to_json(value)


def _controls(name: str, owner: str | None) -> str:
    if owner is not None:
        return (
            f"<p>Decide in the program that has the file open, {_WHOLE.line(owner)}: "
            "this console can only read it.</p>"
        )
    return (
        f'<label for="why-{name}">Why not? The model reads it.</label>'
        f'<textarea id="why-{name}" rows="1"></textarea>'
        '<p class="buttons"><button type="button" data-do="approve">Approve this call</button>'
        '<button type="button" data-do="deny">Deny</button></p><p role="status"></p>'
    )
