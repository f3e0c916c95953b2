"""How a run began, as its log says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from callslip.events import Compacted, Event, RunStarted, read_event
from callslip.runs import Run

__all__ = ["Start", "start_of"]


class Start(NamedTuple):
    """How a run began.

    Attributes:
        agent: The name of the agent.
        protocol: The name of the protocol.
        parent_run: The id of the parent run; `None` for a run without one.
        parent_ticket: The id of the ticket in the parent run.
    """

    agent: str
    protocol: str
    parent_run: str | None
    parent_ticket: str | None


def start_of(run: Run[Any]) -> Start:
    """Return how a run began."""
    event = read_event(run._core.records(0)[0], run.id)
    if isinstance(event, RunStarted):
        return _start(event.agent, event.setup, event.parent_run, event.parent_ticket)
    return _compacted(event)


def _compacted(event: Event) -> Start:
    start = event.start if isinstance(event, Compacted) else {}
    parent = start.get("parent") or {}
    ticket = parent.get("ticket")
    return _start(
        start.get("agent", ""),
        start.get("setup") or {},
        parent.get("run_id"),
        None if ticket is None else f"T{ticket}",
    )


def _start(
    agent: str, setup: Mapping[str, Any], parent_run: str | None, parent_ticket: str | None
) -> Start:
    protocol = next(iter(setup.get("protocol") or {}), "")
    return Start(agent, protocol, parent_run, parent_ticket)
