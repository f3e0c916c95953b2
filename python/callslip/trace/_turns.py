"""Turns of a trace: a request to the model, its reply, and what followed from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from callslip._base.usage import Usage
from callslip.trace._tickets import TicketSpan

__all__ = ["Mark", "MarkKind", "ModelAttempt", "ShortenedHistory", "TraceViolation", "Turn"]

MarkKind: TypeAlias = Literal["violation", "repair", "call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A marked place in the text of a reply: `reply[start:end]`.

    The log counts bytes of UTF-8; a mark counts characters.

    Attributes:
        kind: `"violation"`, `"repair"` or `"call"`.
        start: The position of the first character.
        end: The position after the last character; equal to `start` if something is missing there.
        label: The code of the violation or repair; for a call, the name of the tool.
    """

    kind: MarkKind
    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceViolation:
    """The way in which a reply broke the protocol, as `Violation`.

    Attributes:
        code: The code, such as `"unknown_tool"`.
        message: The message.
        expected: The form or the values that were expected; `None` if that is not known.
        found: The text in the place; `None` without one.
        hint: A hint to the model; `None` without one.
        pointer: The JSON pointer of the place; `None` without one.
    """

    code: str
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None
    pointer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAttempt:
    """A request for the reply that failed, and was followed by another one or by the end.

    Attributes:
        at: The time of the failure, in Unix seconds.
        model: The name of the model.
        error: The error.
        wait: Seconds until the next attempt; `None` if there is none with the same messages.
        dropped: Whether a part of the reply had been streamed, to be discarded.
        usage: The usage of the attempt; `None` if the client does not report it.
    """

    at: float
    model: str
    error: str
    wait: float | None
    dropped: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortenedHistory:
    """The part of the conversation that the model was shown no longer, from this turn on.

    Attributes:
        at: The time, in Unix seconds.
        exchanges: The number of the oldest exchanges that are left out, in all.
        results: The number of the oldest exchanges that are left out or shown without results.
        summary: The text in their place; `None` without one.
        error: The error of the request before, or of the summary; `None` if neither failed.
    """

    at: float
    exchanges: int
    results: int
    summary: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn: the request to the model, its reply, and what followed from it.

    Attributes:
        number: The number of the turn, from 1.
        asked_at: The time of the request, in Unix seconds. `None` if the log was compacted since.
        asked_again_at: The times of further requests: a process ended before the reply had come.
        first_at: The time of the first chunk of the reply; `None` if that is not known.
        replied_at: The time of the reply; `None` while there is none, and if it is not known.
        model: The name of the model; `None` if it is not known.
        provider: The name of its provider; `None` if it is not known.
        reply: The reply as text, as far as it was read; `None` while there is none.
        thoughts: The thoughts in it; `None` without any, and if the log was compacted since or is
            of an earlier version.
        narration: The text to the user before the calls (chatty); `None` as for `thoughts`.
        finish_reason: The reason for the end of the reply, as the client reports it.
        move: `"finish"`, `"call"`, `"delegate"`, `"await"` or `"load"`; `None` without a move.
        target: The id of the ticket that the move waits for or loads; else `None`.
        answer: The value of the answer, for the move `"finish"`; else `None`.
        answer_checks: How often the program was asked to check the answer.
        usage: The usage of the reply; `None` if the client does not report it.
        violation: The way in which the reply broke the protocol; `None` if it did not.
        marks: The places of the violation, of the repairs and of the calls, in their order.
        attempts: The requests that failed before the reply.
        shortened: The times when the model was shown less of the conversation.
        tickets: The tickets that the reply has opened.
        next_message: The message that the model read next; `None` if it has read none.
        seqs: The positions in the log of the events of the turn, without those of its tickets.
    """

    number: int
    asked_at: float | None = None
    asked_again_at: tuple[float, ...] = ()
    first_at: float | None = None
    replied_at: float | None = None
    model: str | None = None
    provider: str | None = None
    reply: str | None = None
    thoughts: str | None = None
    narration: str | None = None
    finish_reason: str | None = None
    move: str | None = None
    target: str | None = None
    answer: Any = None
    answer_checks: int = 0
    usage: Usage | None = None
    violation: TraceViolation | None = None
    marks: tuple[Mark, ...] = ()
    attempts: tuple[ModelAttempt, ...] = ()
    shortened: tuple[ShortenedHistory, ...] = ()
    tickets: tuple[TicketSpan, ...] = ()
    next_message: str | None = None
    seqs: tuple[int, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Seconds from the last request to the reply; `None` without both times."""
        asked = self.asked_again_at[-1] if self.asked_again_at else self.asked_at
        if asked is None or self.replied_at is None:
            return None
        return max(0.0, self.replied_at - asked)

    @property
    def repairs(self) -> Mapping[str, int]:
        """The codes of the repairs of the reply, each with its count."""
        counts: dict[str, int] = {}
        for mark in self.marks:
            if mark.kind == "repair":
                counts[mark.label] = counts.get(mark.label, 0) + 1
        return counts

    @property
    def is_waiting(self) -> bool:
        """Whether a ticket of the turn, or of a run below it, is awaiting approval."""
        return any(ticket.is_waiting for ticket in self.tickets)
