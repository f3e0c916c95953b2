"""What must hold of logs and effects, whatever happened to the processes that made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from callslip import TicketStore, replay

if TYPE_CHECKING:
    from callslip import Run, Ticket

Effects = dict[tuple[str, str], list[tuple[str, str]]]


class Wrong(AssertionError):  # noqa: N818  # it says what is so
    """Something that must hold does not."""


class Judge:
    """Judges runs, one after the other.

    Args:
        store: Where their logs are.
        effects: What the calls have really done: `ledger.read`.
        seen: Counts what was seen.
    """

    def __init__(
        self, store: TicketStore, effects: Effects, *, seen: Counter[str] | None = None
    ) -> None:
        self._store = store
        self._effects = effects
        self.seen: Counter[str] = Counter() if seen is None else seen

    def judge(self, run_id: str, said: Sequence[str] = ()) -> None:
        """Check a run that has ended, and the runs below it.

        Args:
            run_id: Its id.
            said: The messages that it was told.

        Raises:
            Wrong: Something does not hold.
        """
        run = self._store.run(run_id)
        self._judge_log(run, said)
        self.seen["runs"] += 1
        for ticket in run.tickets:
            self._judge_ticket(run_id, ticket)
        for child in self._store.runs(parent=run_id):
            self.judge(child.run_id)

    def check_all_known(self) -> None:
        """Check that there is no effect left of a call that stands in no log."""
        if self._effects:
            some = dict(list(self._effects.items())[:5])
            raise Wrong(f"calls took effect that no log has: {some}")

    def _judge_log(self, run: Run, said: Sequence[str]) -> None:
        events = run.log
        if [event.seq for event in events] != list(range(len(events))):
            raise Wrong(f"the log of run {run.id} has gaps")
        kinds = Counter(event.kind for event in events)
        if not run.finished or events[-1].kind != "run_finished" or kinds["run_started"] != 1:
            raise Wrong(f"run {run.id} has not ended: {kinds}")
        if _ends_twice([event.kind for event in events]):
            raise Wrong(f"run {run.id} has ended twice: {kinds}")
        if replay(run).log != events:
            raise Wrong(f"the replay of run {run.id} differs")
        told = [event.text for event in events if event.kind == "user_said"]
        if sorted(told) != sorted(said):
            raise Wrong(f"run {run.id} was told {said}, its log has {told}")
        self.seen["events"] += len(events)

    def _judge_ticket(self, run_id: str, ticket: Ticket) -> None:
        effects = self._effects.pop((run_id, ticket.id), [])
        if ticket.outcome is None:
            raise Wrong(f"ticket {ticket.id} of run {run_id} is open")
        kind = ticket.tool.removesuffix("_there")
        if kind not in ("charge", "store", "refund"):
            return
        self.seen["calls"] += 1
        self.seen[f"outcome {ticket.outcome}"] += 1
        if kind != "store" and len(effects) > 1:
            raise Wrong(f"{ticket.tool} of {run_id} {ticket.id} took effect {len(effects)} times")
        if len({key for key, _ in effects}) > 1:
            raise Wrong(f"{ticket.tool} of {run_id} {ticket.id} has several keys")
        if ticket.outcome == "ok" and not effects:
            raise Wrong(f"{ticket.tool} of {run_id} {ticket.id} has a result, and took no effect")
        self.seen["idempotent calls made again"] += len(effects) > 1


def _ends_twice(kinds: Sequence[str]) -> bool:
    """Whether there are two ends with no message between them."""
    marks = [kind for kind in kinds if kind in ("run_finished", "user_said")]
    return ("run_finished", "run_finished") in pairwise(marks)
