"""The position of a run in its tree, with which any worker finds its agent and its limits."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from callslip.events._event import ticket_id

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession

__all__ = ["Place", "child_id", "new_seal_key", "place_below", "runs_above"]


def child_id(run_id: str, ticket: int) -> str:
    """Return the id of the run for a task, which is the same in every process."""
    return f"{run_id}.{ticket_id(ticket)}"


def new_seal_key() -> str:
    """Return a random key for the seals of a run."""
    return os.urandom(16).hex()


class Place(NamedTuple):
    """The position of a child run in its tree.

    Attributes:
        agent: The name of the agent at the top.
        levels: Levels of child runs below the run at the top; `None` for no limit.
        path: For each level down to the run: the tool that was called, and the role.
        above: The id and the limits, as JSON, of each run above; the nearest first.
    """

    agent: str
    levels: int | None
    path: list[tuple[str, str | None]]
    above: list[tuple[str, str]]

    def to_text(self) -> str:
        """Return the place as JSON."""
        return json.dumps(self._asdict(), ensure_ascii=False)

    @staticmethod
    def from_text(text: str) -> Place:
        """Return a place, from `to_text`."""
        given = json.loads(text)
        path = [(tool, role) for tool, role in given["path"]]
        above = [(run_id, limits) for run_id, limits in given["above"]]
        return Place(given["agent"], given["levels"], path, above)


def place_below(session: RunSession, tool: str, role: str | None) -> Place:
    """Return the place of a child run that a run starts."""
    own = session.beginning.place or Place(session.agent.name, session.levels, [], [])
    above = [(session.run.id, session.core.limits), *own.above]
    return Place(own.agent, own.levels, [*own.path, (tool, role)], above)


def runs_above(session: RunSession) -> list[str]:
    """Return the ids of the runs above a run, the nearest first."""
    place = session.beginning.place
    return [] if place is None else [run_id for run_id, _ in place.above]
