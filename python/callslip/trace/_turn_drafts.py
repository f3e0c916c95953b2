"""Turns of a trace while the log is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callslip._core import Protocol as CoreProtocol
from callslip._protocols import PROTOCOL_NAMES
from callslip.events import (
    AnswerOffered,
    Event,
    HistoryShortened,
    ModelAsked,
    ModelAttemptFailed,
    ModelReplied,
    Moved,
    Violated,
)
from callslip.trace._positions import characters_at, span_of
from callslip.trace._ticket_drafts import TicketDraft
from callslip.trace._tickets import TicketSpan
from callslip.trace._turns import Mark, ModelAttempt, ShortenedHistory, TraceViolation, Turn

__all__ = ["TurnDraft"]

_DESCRIBED = ("code", "message", "expected", "found", "hint", "pointer")


class TurnDraft:
    """One turn, as far as the log has been read."""

    __slots__ = (
        "_attempts",
        "_fields",
        "_marks",
        "_seqs",
        "_shortened",
        "is_compacted",
        "tickets",
    )

    def __init__(self, number: int) -> None:
        self._fields: dict[str, Any] = {"number": number}
        # Spans in bytes; they are counted in characters once they are all known.
        self._marks: list[tuple[str, tuple[int, int], str]] = []
        self._attempts: list[ModelAttempt] = []
        self._shortened: list[ShortenedHistory] = []
        self._seqs: list[int] = []
        self.tickets: list[TicketDraft] = []
        # Whether its reply came before the log was compacted.
        self.is_compacted: bool = False

    @property
    def has_reply(self) -> bool:
        """Whether the reply is known."""
        return "reply" in self._fields

    def set_messages(self, reply: str, answer: str | None) -> None:
        """Set the message after the reply; and the reply, where the log has it no longer."""
        self._fields.setdefault("reply", reply)
        self._fields["next_message"] = answer

    def read(self, event: Event) -> None:
        """Read an event of the turn."""
        self._seqs.append(event.seq)
        match event:
            case ModelAsked():
                self._ask(event)
            case ModelAttemptFailed():
                self._attempts.append(
                    ModelAttempt(
                        at=event.at,
                        model=event.model,
                        error=event.error,
                        wait=event.wait,
                        dropped=event.dropped,
                        usage=event.usage,
                    )
                )
            case HistoryShortened():
                self._shortened.append(
                    ShortenedHistory(
                        at=event.at,
                        exchanges=event.exchanges,
                        results=event.results,
                        summary=event.summary,
                        error=event.error,
                    )
                )
            case ModelReplied():
                self._reply(event)
            case Violated():
                self._violate(event)
            case AnswerOffered():
                self._say(event)
                self._fields["answer_checks"] = self._fields.get("answer_checks", 0) + 1
                self._move(event.move)
            case Moved():
                self._say(event)
                self._move(event.move)
            case _:
                pass

    def _ask(self, event: ModelAsked) -> None:
        if "asked_at" in self._fields:
            again = self._fields.get("asked_again_at", ())
            self._fields["asked_again_at"] = (*again, event.at)
        else:
            self._fields["asked_at"] = event.at
        self._name_model(event)

    def _name_model(self, event: Event) -> None:
        if getattr(event, "model", None) is not None:
            self._fields["model"] = getattr(event, "model", None)
            self._fields["provider"] = getattr(event, "provider", None)

    def _reply(self, event: ModelReplied) -> None:
        self._fields.update(
            replied_at=event.at,
            reply=event.text,
            finish_reason=event.finish_reason,
            usage=event.usage,
            first_at=getattr(event, "first_at", None),
        )
        self._name_model(event)
        self._marks += [
            ("repair", span, repair["code"])
            for repair in event.repairs
            if (span := span_of(repair)) is not None
        ]

    def _violate(self, event: Violated) -> None:
        violation = event.violation
        described: dict[str, Any] = {name: violation.get(name) for name in _DESCRIBED}
        self._fields["violation"] = TraceViolation(**described)
        # A refused answer was offered as a move, and is none.
        for name in ("move", "answer"):
            self._fields.pop(name, None)
        span = span_of(violation)
        if span is not None:
            self._marks.append(("violation", span, violation["code"]))
        self._say(event)

    def _say(self, event: Violated | AnswerOffered | Moved) -> None:
        self._fields.update(thoughts=event.thoughts, narration=event.narration)

    def _move(self, move: Mapping[str, Any]) -> None:
        ((name, content),) = move.items()
        self._fields["move"] = name
        if name == "finish":
            self._fields["answer"] = content["value"]
        elif name in {"await", "load"}:
            self._fields["target"] = content["ticket_id"]
        elif name == "call":
            self._marks += [
                ("call", span, call["tool"])
                for call in content["calls"]
                if (span := span_of(call)) is not None
            ]

    def finish(self, tickets: tuple[TicketSpan, ...], protocol: str) -> Turn:
        """Return the turn with its tickets.

        Args:
            tickets: Those of its calls.
            protocol: The name of the protocol.
        """
        reply: str | None = self._fields.get("reply")
        offsets = [offset for _, span, _ in self._marks for offset in span]
        if reply is not None and protocol in PROTOCOL_NAMES:
            reply, shown = CoreProtocol.shown_reply(protocol, reply, offsets)
            self._fields["reply"] = reply
        else:
            shown = offsets
        characters = characters_at(reply or "", shown)
        places = {at: characters[there] for at, there in zip(offsets, shown, strict=True)}
        marks: list[Mark] = [
            Mark(kind=kind, start=places[start], end=places[end], label=label)  # type: ignore[arg-type]
            for kind, (start, end), label in self._marks
        ]
        return Turn(
            **self._fields,
            marks=tuple(sorted(marks, key=lambda mark: (mark.start, mark.end))),
            attempts=tuple(self._attempts),
            shortened=tuple(self._shortened),
            tickets=tickets,
            seqs=tuple(self._seqs),
        )
