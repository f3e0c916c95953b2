"""What a run has so far: its messages, tickets, events and usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from callslip._base.options import check_whole
from callslip._base.usage import Usage
from callslip.parts import File
from callslip.runs._log_cache import check_seq
from callslip.runs._origin import origin_of

if TYPE_CHECKING:
    from callslip import _core
    from callslip.events import Event
    from callslip.runs._log_cache import Reads
    from callslip.runs._messages import Messages
    from callslip.runs._run import Run
    from callslip.runs._ticket import Ticket

__all__ = ["RunRecord"]


class RunRecord:
    """The part of a `Run` that is read, during the run and afterwards.

    What was read once is kept: a read costs what is new since the last one.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _core: _core.Run
        _children: list[Run]
        id: str

        @property
        def _reads(self) -> Reads: ...

    @property
    def owner(self) -> str | None:
        """Whose data the run is, as it was passed to `Agent.run`; `None` for nobody's."""
        return origin_of(cast("Run", self)).owner

    @property
    def key(self) -> str | None:
        """What its caller calls the run, as it was passed to `Agent.run`; `None` without a key."""
        return origin_of(cast("Run", self)).key

    @property
    def messages(self) -> Messages:
        """All messages so far. `history` may leave some of them out of a request to the model."""
        return self._messages_until(self._core.message_count)

    def _messages_until(self, count: int) -> Messages:
        return self._reads.messages.until(count)

    @property
    def _sent_messages(self) -> Messages:
        """All messages so far as models are sent them: with the names of files for scripts."""
        known = self._reads.messages
        if known.sent is not None and self._core.has_parts:
            known = known.sent
        return known.until(self._core.message_count)

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets of this run, oldest first.

        The list is yours. The tickets are shared: one that has not changed is the same object at
        each read, so do not change the values in it.
        """
        return self._reads.tickets.all()

    def outcomes_since(self, known: int) -> list[Ticket]:
        """Return the tickets that have ended, in the order in which they did, without the first.

        It costs what is new, however long the run is: keep the number of those that you have.

        Args:
            known: How many of them are known already; 0 for none.

        Raises:
            UsageError: `known` is not a whole number from 0 on.
        """
        check_whole("known", known, least=0)
        return self._reads.tickets.some(self._core.ended_since(known))

    @property
    def log(self) -> list[Event]:
        """All events so far. The state of a run is computed from these and from nothing else.

        Each event is read once: do not change the objects in it.
        """
        return self.events()

    @property
    def seq(self) -> int:
        """The `seq` of the last event so far; -1 before the first."""
        return self._core.event_count - 1

    def events(self, *, after: int | None = None, before: int | None = None) -> list[Event]:
        """Return the events of the log so far that stand between two others.

        If the run was compacted since `after`, they begin with a `Compacted`, which stands for all
        events that it has folded: read what they have led to from the run itself.

        Args:
            after: The `seq` of the event to begin after. Default: the beginning.
            before: The `seq` of the event to end before. Default: the end.

        Raises:
            UsageError: The log has no event `after` or `before`.
        """
        for name, seq in (("after", after), ("before", before)):
            if seq is not None:
                check_seq(name, seq, self._core.event_count)
        return self._reads.events.between(-1 if after is None else after, before)

    def export(self) -> str:
        """Return the log as JSON lines, which `replay` and `import_run` read.

        There is one for each event, and one for the bytes of each image or file, before the event
        that is the first to have it.
        """
        return "".join(f"{text}\n" for text in self._core.export_lines())

    @property
    def parts(self) -> dict[str, File]:
        """The images and files of the run, by their labels.

        `"U1"`, `"U2"`, … for those of the user, then `"T3"` for that of a result; `"T3.1"`,
        `"T3.2"`, … for several in one result.
        """
        return {part.label: File._of(part) for part in self._core.parts()}

    @property
    def usage(self) -> Usage:
        """The usage of this run's own replies so far."""
        return Usage._from_core(self._core.usage)

    @property
    def total_usage(self) -> Usage:
        """The usage of this run and of all its child runs, finished or in progress."""
        usage = Usage._from_core(self._core.total_usage)
        if not self._children:
            return usage
        for child in self._children:
            if not self._has_usage_of(child):
                usage += child.total_usage
        return usage

    def _has_usage_of(self, child: Run) -> bool:
        """Whether the usage of a child run is in the log: that of a task is, once it has ended."""
        above, _, number = child.id.rpartition(".T")
        return above == self.id and not self._core.is_open(int(number))

    @property
    def turns(self) -> int:
        """The number of turns: how often the model was asked."""
        return self._core.turn

    @property
    def violations(self) -> int:
        """The number of replies that broke the protocol."""
        return self._core.violations
