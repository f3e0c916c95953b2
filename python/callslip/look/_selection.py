"""The rows of a long trace that its page shows."""

from __future__ import annotations

from collections.abc import Iterator

from callslip.trace import TicketSpan, Trace, Turn

__all__ = ["Selection", "has_failed"]

_MOST_EVENTS = 20_000
_ROWS_AT_AN_END = 5_000


def has_failed(row: Turn | TicketSpan) -> bool:
    """Return whether a turn broke the protocol, or a call has an outcome other than `"ok"`."""
    if isinstance(row, Turn):
        return row.violation is not None
    return row.outcome not in {None, "ok"}


class Selection:
    """The rows that are shown: all of a trace of up to 20,000 events.

    Of a longer one, the first and the last 5,000 rows, all failures, and calls that are awaiting
    approval, each with the rows above it.

    Args:
        trace: The run.
        rows: The number of rows that are shown, half of them from each end, in place of these.
    """

    def __init__(self, trace: Trace, *, rows: int | None = None) -> None:
        self.events = sum(run.events for run in trace.walk())
        total = sum(1 for _ in _rows(trace))
        self.at_an_end = _ROWS_AT_AN_END if rows is None else rows // 2
        self.is_whole = self.events <= _MOST_EVENTS if rows is None else total <= rows
        self.left_out = 0
        self._shown: set[int] = set()
        if not self.is_whole:
            self._place = 0
            self._last = total - self.at_an_end
            self._select_run(trace)
            self.left_out = total - len(self._shown)

    def has(self, row: Turn | TicketSpan) -> bool:
        """Return whether a row is shown."""
        return self.is_whole or id(row) in self._shown

    def _select_run(self, run: Trace) -> bool:
        found = [self._select_turn(turn) for turn in run.turns]
        found += [self._select_run(below) for below in run.other_runs]
        return any(found)

    def _select_turn(self, turn: Turn) -> bool:
        shown = self._takes(turn)
        below = [self._select_ticket(ticket) for ticket in turn.tickets]
        return self._keep(turn, shown=shown or any(below))

    def _select_ticket(self, ticket: TicketSpan) -> bool:
        shown = self._takes(ticket) or ticket.awaiting_approval
        below = [self._select_run(run) for run in ticket.runs]
        return self._keep(ticket, shown=shown or any(below))

    def _takes(self, row: Turn | TicketSpan) -> bool:
        place, self._place = self._place, self._place + 1
        return place < self.at_an_end or place >= self._last or has_failed(row)

    def _keep(self, row: Turn | TicketSpan, *, shown: bool) -> bool:
        if shown:
            self._shown.add(id(row))
        return shown


def _rows(trace: Trace) -> Iterator[Turn | TicketSpan]:
    for run in trace.walk():
        yield from run.turns
        yield from run.tickets
