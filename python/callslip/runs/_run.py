"""Runs: an agent's work, to be looked at while it goes on and afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias
from weakref import WeakValueDictionary

from callslip._options import check_text
from callslip.errors import UsageError
from callslip.events import Event
from callslip.runs._conversation import send, send_sync, taken, written_down
from callslip.runs._messages import Messages, Transcript
from callslip.runs._ticket import Ticket
from callslip.runs._usage import Usage

if TYPE_CHECKING:
    from callslip import _core
    from callslip.agent import Agent
    from callslip.runs._result import RunResult
    from callslip.store import TicketStore

__all__ = ["Driver", "Run", "StopReason", "run_under_way"]

StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]

_under_way: WeakValueDictionary[str, Run] = WeakValueDictionary()
"""The kept runs that this process works on."""


def run_under_way(run_id: str) -> Run | None:
    """Return the kept run of this id that this process works on."""
    return _under_way.get(run_id)


class Driver(Protocol):
    """Whoever works on a run."""

    def give(self, make: Callable[[float], list[_core.Command]]) -> bool:
        """Take what somebody else gives in, from any thread.

        Returns:
            Whether it was taken; else the driver is just leaving the run.
        """

    def result(self) -> Awaitable[RunResult]:
        """Return what is to be awaited for the end of the run."""


class Run:
    """One agent working on one task: its transcript, its tickets, its log.

    While it is under way it can be cancelled, told more, and its calls be approved or denied, from
    any thread, event loop or tool. In a store each of these returns once it is written down, and
    blocks for the moment that takes: what was decided stands, whatever happens next. A run that was
    read from a store and that nobody works on can be told, approved and denied too: `Agent.resume`
    goes on with it.

    Attributes:
        id: Unique among runs.
        task: What the user asked for.
    """

    __slots__ = (
        "__weakref__",
        "_agent",
        "_children",
        "_core",
        "_driver",
        "_levels",
        "_store",
        "_transcript",
        "id",
        "task",
    )

    id: str
    task: str

    def __init__(
        self,
        core: _core.Run,
        run_id: str,
        task: str,
        *,
        agent: Agent | None = None,
        store: TicketStore | None = None,
    ) -> None:
        self._core = core
        self._transcript: Transcript | None = None
        self._agent = agent
        self._store = store
        self._driver: Driver | None = None
        # How many levels of runs may be below it, for whoever goes on with it.
        self._levels: int | None = None
        self._children: list[Run] | None = None
        self.id = run_id
        self.task = task

    @property
    def messages(self) -> Messages:
        """The transcript as it is now: what the model is given, but for what `history` drops."""
        if self._transcript is None:
            self._transcript = Transcript(self._core)
        return self._transcript.now()

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets, oldest first."""
        return [Ticket.from_row(row) for row in self._core.tickets()]

    @property
    def children(self) -> list[Run]:
        """The runs of the tasks that this one has given to others, oldest first.

        Those that this process has worked on; of a kept run, also those of earlier processes, and
        runs that were started in its calls by hand.
        """
        seen = {child.id: child for child in self._children or ()}
        if self._store is None:
            return list(seen.values())
        rows = self._store.runs(parent=self.id)
        return [seen.get(row.run_id) or self._store.run(row.run_id) for row in reversed(rows)]

    @property
    def approvals(self) -> list[Ticket]:
        """The calls that wait for approval, of this run and of all below it."""
        parked = [ticket for ticket in self.tickets if ticket.parked]
        under_way = self.children if self._driver is None else self._children or ()
        for child in list(under_way):
            if not child.finished:
                parked += child.approvals
        return parked

    def approve(self, ticket: Ticket | str) -> None:
        """Have a call made that waits for approval.

        Args:
            ticket: Its ticket; or the ticket's id, of this run. A ticket may be one of a run below.

        Raises:
            UsageError: It does not wait for approval.
            StoreError: That can't be written down.
        """
        run, number = self._of_ticket(ticket)

        run._give(lambda now: run._core.approve(number, now))

    def deny(self, ticket: Ticket | str, why: str = "") -> None:
        """Refuse a call that waits for approval. The model is told so, and why.

        Raises:
            UsageError: It does not wait for approval.
            StoreError: That can't be written down.
        """
        if not isinstance(why, str):
            raise UsageError(f"expected the reason as a string: got {type(why).__name__}")
        check_text("the reason", why)
        run, number = self._of_ticket(ticket)
        run._give(lambda now: run._core.deny(number, why, now))

    def cancel(self) -> None:
        """End the run, all runs below it and all its calls; it does nothing where it is over.

        Whoever waits for the run gets `RunCancelled`. A sync tool can't be stopped: it finds
        `Context.cancelled` set.
        """
        if self.finished:
            return
        kept = self._store if self._driver is None else None
        self._give(self._core.cancel)
        if kept is not None:
            # Whoever works on a run ends those below it; nobody does.
            kept.end_children(self.id)

    def send(self, message: str) -> Awaitable[RunResult]:
        """Say more to the run. It is told with the next message to the model.

        A run that is over goes on with it when what this returns is awaited. One that is under way
        takes it up by itself, also where its model is just giving its answer: then it goes on.

        Returns:
            To be awaited for what comes of the run then; it raises as `Agent.run` does.

        Raises:
            UsageError: The message is no text, or the run has not begun.
            StoreError: It can't be written down.
        """
        return send(self, message)

    def send_sync(self, message: str) -> RunResult:
        """Say more to a run that is over and go on with it, in this thread. As `send`.

        Raises:
            UsageError: The run is under way, or was called inside a tool.
        """
        return send_sync(self, message)

    @property
    def log(self) -> list[Event]:
        """Everything that has happened: the run is the fold of these events."""
        return [Event.from_json(text, self.id) for text in self._core.records()]

    def export(self) -> str:
        """Return the log as JSON lines, one event a line: what `replay` and `import_run` read."""
        return "".join(f"{text}\n" for text in self._core.records())

    @property
    def usage(self) -> Usage:
        """What the replies cost so far."""
        return Usage(*self._core.usage)

    @property
    def total(self) -> Usage:
        """The same with all runs below it: those that have ended, and those under way."""
        usage = Usage(*self._core.spent[:4])
        ended = {f"{self.id}.{one.id}" for one in self.tickets if one.status == "COMPLETED"}
        for child in self._children or ():
            if child.id not in ended:
                usage += child.total
        return usage

    @property
    def turns(self) -> int:
        """How often the model was asked."""
        return self._core.counts[0]

    @property
    def violations(self) -> int:
        """How many replies broke the protocol."""
        return self._core.counts[1]

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._core.finished

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it ended; `None` while it goes on."""
        ending = self._core.ending
        return None if ending is None else ending[0]

    def _drive_by(self, driver: Driver) -> None:
        """Say who works on it."""
        self._driver = driver
        if self._store is not None:
            _under_way[self.id] = self

    def _is_kept_in(self, store: TicketStore) -> bool:
        """Whether it is under way, and kept there."""
        kept = self._store
        if self._driver is None or kept is None:
            return False
        return kept is store or (kept.path is not None and kept.path == store.path)

    def _left(self) -> None:
        """Say that nobody works on it any more."""
        self._driver = None

    def _adopt(self, child: Run) -> None:
        """Take a run that was started for one of its tasks, or in one of its calls."""
        if self._children is None:
            self._children = []
        self._children.append(child)

    def _of_ticket(self, ticket: Ticket | str) -> tuple[Run, int]:
        if not isinstance(ticket, str | Ticket):
            raise UsageError(f"expected a Ticket or its id, such as 'T1': got {ticket!r}")
        run_id, ticket_id = (
            (self.id, ticket) if isinstance(ticket, str) else (ticket.run_id, ticket.id)
        )
        digits = ticket_id.removeprefix("T")
        if not digits.isdecimal():
            raise UsageError(f"expected a Ticket or its id, such as 'T1': got {ticket_id!r}")
        run = self._find(run_id)
        if run is None:
            raise UsageError(
                f"ticket {ticket_id} is one of run {run_id}, which is not below {self.id}"
            )
        return run, int(digits)

    def _find(self, run_id: str) -> Run | None:
        if run_id == self.id:
            return self
        found = (child._find(run_id) for child in self.children)
        return next((run for run in found if run is not None), None)

    def _give(self, make: Callable[[float], list[_core.Command]]) -> None:
        """Give something in from outside: to whoever works on the run, or into its log."""
        if taken(self, make) is not None:
            return
        if self._store is not None:
            written_down(self, self._store, make)
        elif self.finished:
            # Nothing of it waits for approval.
            make(0.0)
        else:
            raise UsageError(
                "nobody works on this run: watch it with agent.stream(…), or take it from its "
                "store with store.run(run_id)"
            )

    def __repr__(self) -> str:
        state = self.stop_reason or "running"
        return f"Run({self.id!r}, {state}, turns={self.turns}, tickets={len(self._core.tickets())})"
