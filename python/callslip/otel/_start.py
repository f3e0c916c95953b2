"""How a run began, as its log says."""

from __future__ import annotations

from typing import Any, NamedTuple

from callslip._base.json import from_json
from callslip._protocols import PROTOCOL_NAMES
from callslip.events._event import ticket_id
from callslip.protocols import find_protocol
from callslip.runs import Run

__all__ = ["Start", "start_of"]


class Start(NamedTuple):
    """How a run began.

    Attributes:
        agent: The name of the agent.
        protocol: The name of the protocol.
        parent_run: The id of the parent run; `None` for a run without one.
        parent_ticket: The id of the ticket in the parent run.
        traceparent: The trace that it began in; `None` without one.
        takes_calls: Whether replies have the model's own tool calls.
    """

    agent: str
    protocol: str
    parent_run: str | None
    parent_ticket: str | None
    traceparent: str | None
    takes_calls: bool


def start_of(run: Run[Any]) -> Start:
    """Return how a run began, or begins."""
    start = from_json(run._core.origin)
    parent = start.get("parent") or {}
    ticket = parent.get("ticket")
    protocol = next(iter(start["setup"].get("protocol") or {}), "")
    return Start(
        agent=start["agent"],
        protocol=protocol,
        parent_run=parent.get("run_id"),
        parent_ticket=None if ticket is None else ticket_id(ticket),
        traceparent=start.get("traceparent"),
        takes_calls=protocol in PROTOCOL_NAMES and find_protocol(protocol).native.takes_calls,
    )
