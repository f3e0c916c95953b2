"""The tickets of a run: each is read from the core once, and again where it has changed."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from callslip import _core
from callslip._base.json import from_json
from callslip.origins._read import origins_of
from callslip.runs._ticket import Ticket

if TYPE_CHECKING:
    from callslip.origins import Origin

__all__ = ["TicketCache"]


class TicketCache:
    """The tickets of a run as objects. Any thread may read them, beside the driver.

    Args:
        core: The run.
    """

    __slots__ = ("_changes", "_core", "_lock", "_tickets")

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._tickets: list[Ticket] = []
        # How many changes of tickets these have.
        self._changes = 0

    def all(self) -> list[Ticket]:
        """Return all tickets so far, oldest first, in a list of its own."""
        with self._lock:
            return self._read().copy()

    def some(self, numbers: list[int]) -> list[Ticket]:
        """Return the tickets of these numbers, in their order."""
        with self._lock:
            known = self._read()
            return [known[number - 1] for number in numbers]

    def origins(self, ticket_id: str) -> dict[str, Origin]:
        """Return the origins of one ticket, without reading others.

        They never change. The result is empty if the run has no such ticket.
        """
        return origins_of(from_json(_core.origins_of(self._core, int(ticket_id[1:]))))

    def _read(self) -> list[Ticket]:
        known = self._tickets
        rows, self._changes = self._core.ticket_news(len(known), self._changes)
        for row in rows:
            number = int(row.id[1:])
            position = number - 1
            is_open = row.parked or row.awaits_result
            spec = self._core.tool_spec(row.tool) if is_open else None
            ticket = Ticket.from_row(row, spec, partial(_core.origins_of, self._core, number))
            if position < len(known):
                known[position] = ticket
            else:
                known.append(ticket)
        return known
