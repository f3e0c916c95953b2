"""A run as it is shown: turns, tickets and the runs below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from callslip._base.usage import Usage
from callslip._protocols import ProtocolName
from callslip.parts import File
from callslip.trace._tickets import TicketSpan
from callslip.trace._turns import Turn

__all__ = ["NoteKind", "Trace", "TraceEnding", "TraceMessage", "TraceNote"]

NoteKind: TypeAlias = Literal[
    "user_said", "resumed", "more_approval", "last_turn", "exhausted", "compacted"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEnding:
    """The end of a run.

    Attributes:
        at: The time, in Unix seconds. `None` if the log was compacted since.
        reason: As `Run.stop_reason`.
        value: The answer as JSON values; `None` without one.
        success: Whether the task was successful, according to the model (react); else `None`.
        error: The error that ended the run; `None` without one.
        limit: The field of `Limits` that was reached; `None` without one.
    """

    at: float | None
    reason: Literal["finished", "limit", "violations", "model_error", "cancelled"]
    value: Any = None
    success: bool | None = None
    error: str | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMessage:
    """A message that the model read before its first reply.

    Attributes:
        role: `"system"`, `"user"` or `"assistant"`.
        content: The text.
    """

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNote:
    """An event of a run between its turns.

    Attributes:
        kind: `"user_said"` (a message of the user came), `"resumed"`, `"more_approval"` (tools ask
            for more approval from here on), `"last_turn"` or `"exhausted"` (a limit was reached),
            or `"compacted"` (the log before it was replaced by a state, so that times are missing).
        at: The time, in Unix seconds.
        turn: The number of the turn that was the latest then; 0 before the first.
        text: The message of the user; else `None`.
        limit: The field of `Limits`; else `None`.
        parts: The labels of the images and files of the message: keys of `Trace.parts`.
        seq: The position in the log.
    """

    kind: NoteKind
    at: float
    turn: int
    text: str | None = None
    limit: str | None = None
    parts: tuple[str, ...] = ()
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run as it is shown: its turns, their tickets, and the runs below them.

    It is what the log says at one moment, and does not change. `Run.trace` returns it for a run in
    any state. Times are Unix seconds, and those of the runs below are on the same clock.

    Attributes:
        run_id: The id of the run.
        agent: The name of the agent; empty if the run has not begun and its agent is not known.
        protocol: The name of the protocol; empty as `agent` is.
        task: The task, as the user has written it.
        parent_run: The id of the parent run; `None` for a run without one.
        parent_ticket: The id of the ticket in the parent run.
        started_at: The time of the start; 0.0 if the run has not begun.
        updated_at: The time of the last event, without those of the runs below.
        ending: The end of the run; `None` while it is in progress.
        opening: The messages before the first reply: the prompt, examples, an earlier conversation,
            the task.
        turns: The turns, in their order.
        notes: The events between turns: messages of the user, limits, resumption.
        other_runs: Runs below this one whose tickets are not in `turns`.
        parts: The images and files of the run by their labels. Their `data` raises `StoreError` if
            the log came without the bytes.
        usage: The usage of the run's own replies.
        total_usage: The usage of this run and of all runs below it.
        unreported: The number of own replies whose usage the client did not report.
        violations: The number of own replies that broke the protocol.
        seqs: The positions in the log of the start and the end of the run.
        events: The number of events in the log.
    """

    run_id: str
    agent: str
    protocol: ProtocolName
    task: str
    parent_run: str | None = None
    parent_ticket: str | None = None
    started_at: float
    updated_at: float
    ending: TraceEnding | None = None
    opening: tuple[TraceMessage, ...] = ()
    turns: tuple[Turn, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    other_runs: tuple[Trace, ...] = ()
    parts: Mapping[str, File] = field(default_factory=lambda: MappingProxyType({}))
    usage: Usage
    total_usage: Usage
    unreported: int = 0
    violations: int = 0
    seqs: tuple[int, ...] = ()
    events: int = 0

    @property
    def status(self) -> Literal["running", "finished"]:
        """`"running"` until the run is finished, even if no driver works on it."""
        return "running" if self.ending is None else "finished"

    @property
    def ended_at(self) -> float:
        """The time of the last event of this run and of all runs below it."""
        return max(run.updated_at for run in self.walk())

    @property
    def seconds(self) -> float:
        """Seconds from the start to the last event of this run and of all runs below it."""
        return max(0.0, self.ended_at - self.started_at)

    @property
    def tickets(self) -> tuple[TicketSpan, ...]:
        """The tickets of all turns, in their order."""
        return tuple(ticket for turn in self.turns for ticket in turn.tickets)

    @property
    def runs(self) -> tuple[Trace, ...]:
        """The runs directly below this one."""
        below = (run for ticket in self.tickets for run in ticket.runs)
        return (*below, *self.other_runs)

    @property
    def awaiting_approval(self) -> tuple[tuple[Trace, TicketSpan], ...]:
        """The tickets that are awaiting approval, each after its run; those of runs below too."""
        return tuple(
            (run, ticket)
            for run in self.walk()
            for ticket in run.tickets
            if ticket.awaiting_approval
        )

    @property
    def is_waiting(self) -> bool:
        """Whether a ticket of this run, or of a run below it, is awaiting approval."""
        return bool(self.awaiting_approval)

    def walk(self) -> Iterator[Trace]:
        """Yield this run and all runs below it, each before those below it."""
        todo = [self]
        while todo:
            run = todo.pop()
            yield run
            todo.extend(reversed(run.runs))

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON values: the fields of each object by their names.

        `parts` holds the description of each image and file, without its bytes.
        """
        data: dict[str, Any] = _plain(self)
        return data

    def __reduce__(self) -> tuple[Any, ...]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return _unpickled, ({**values, "parts": dict(self.parts)},)


def _unpickled(values: dict[str, Any]) -> Trace:
    return Trace(**{**values, "parts": MappingProxyType(values["parts"])})


def _plain(value: Any) -> Any:
    """Return the JSON form of a part of a trace."""
    if hasattr(type(value), "__dataclass_fields__"):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, MappingProxyType | dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, File):
        return {
            "label": value.label,
            "media_type": value.media_type,
            "name": value.name,
            "size": value.size,
            "sha256": value.sha256,
        }
    return value
