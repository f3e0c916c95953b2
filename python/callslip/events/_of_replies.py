"""Events of requests to the model, and of its replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.usage import Usage
from callslip.events._event import Event, EventKind, Json

__all__ = [
    "AnswerOffered",
    "HistoryShortened",
    "ModelAsked",
    "ModelAttemptFailed",
    "ModelReplied",
    "Moved",
    "Violated",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAsked(Event):
    """The model is asked for its next reply.

    Attributes:
        turn: The number of the turn, from 1.
        model: The name of the model at its service, and of the first model of several; `None` if it
            is not known, as that of a function.
        provider: The provider of that model, by its name in the conventions of OpenTelemetry if
            they have one (`"openai"`, `"aws.bedrock"`, …); `"local"` for a model in this process;
            `None` if it is not known.
    """

    kind: ClassVar[EventKind] = "model_asked"
    turn: int
    model: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAttemptFailed(Event):
    """A request for a reply failed in `Retrying` or `Fallback`. Nothing of the reply was executed.

    Attributes:
        turn: The number of the turn.
        model: The name of the model.
        error: The error; `resting after …` for a model that `Fallback` has passed over.
        wait: Seconds until the next attempt; `None` if there is none with the same messages.
        dropped: Whether a part of the reply was streamed: discard it.
        usage: The usage of the attempt; `None` if the client does not report it.
    """

    kind: ClassVar[EventKind] = "model_attempt_failed"
    turn: int
    model: str
    error: str
    wait: float | None
    dropped: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryShortened(Event):
    """The conversation was too long for the model, which is shown less of it from this request on.

    Attributes:
        turn: The number of the turn.
        exchanges: How many of the oldest exchanges are left out, in all.
        results: How many of the oldest exchanges are left out or shown without loaded results.
        summary: The text in the place of the exchanges that are left out; `None` without one.
        result_bytes: The bytes of one result that are shown from now on, also in the last message,
            whose results did not fit; `None` if they did.
        error: Why the request before, or the summary, failed; `None` if neither did.
        usage: The usage of the summary; `None` without one.
    """

    kind: ClassVar[EventKind] = "history_shortened"
    turn: int
    exchanges: int
    results: int
    summary: str | None = None
    result_bytes: int | None = None
    error: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied(Event):
    """The model has replied.

    Attributes:
        turn: The number of the turn.
        text: The reply, as far as it was read. Of a native one, a line of JSON for each item,
            without what only the model's service reads.
        streamed: Whether it was read chunk by chunk.
        finish_reason: The reason for its end, as the client reports it; `"stop"` if the stream was
            stopped.
        usage: Its usage; `None` if the client does not report it.
        repairs: What was repaired in it: `code` and `span` of each repair.
        first_at: The time of its first text or reasoning, in Unix seconds; `None` if it was not
            streamed.
        certainty: The probability that the model gave to the name of the first tool that it calls,
            before the grammar; `None` if it is not known.
        model: The name of the model that wrote it, as in `ModelAttemptFailed`, if that is not the
            one in `ModelAsked`: another one of `Fallback`, or of an agent that has resumed the run.
        provider: The provider of that model; `None` if it is not known.
    """

    kind: ClassVar[EventKind] = "model_replied"
    turn: int
    text: str
    streamed: bool
    finish_reason: str
    usage: Usage | None
    repairs: list[dict[str, Any]]
    first_at: float | None = None
    certainty: float | None = None
    model: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Violated(Event):
    """The reply broke the protocol; nothing in it is executed.

    Attributes:
        turn: The number of the turn.
        violation: Its `code`, `message`, `span`, `hint` and so on, as JSON.
        narration: As in `Moved`, as far as it was read.
        thoughts: As in `Moved`, as far as they were read.
        answer: The answer that was refused, as in `Moved`; else `None`.
    """

    kind: ClassVar[EventKind] = "violated"
    turn: int
    violation: Json
    narration: str | None = None
    thoughts: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOffered(Event):
    """The model gave an answer that the program checks: `check_answer`, or validators of `returns`.

    Attributes:
        turn: The number of the turn.
        move: The answer, as in `Moved`.
        narration: As in `Moved`.
        thoughts: As in `Moved`.
        answer: As in `Moved`.
    """

    kind: ClassVar[EventKind] = "answer_offered"
    turn: int
    move: Json
    narration: str | None = None
    thoughts: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Event):
    """The reply asks for this move.

    The texts are those that a stream of the reply shows. They are `None` in logs of earlier
    versions, and in an event that `read_event` reads without the reply.

    Attributes:
        turn: The number of the turn.
        move: The move as JSON: `finish`, `call`, `delegate`, `await` or `load` with its content.
        narration: The text to the user before the calls (chatty); `None` without any.
        thoughts: Its thoughts; `None` without any.
        answer: Its final answer as text, or as the text of its JSON; `None` without one.
    """

    kind: ClassVar[EventKind] = "moved"
    turn: int
    move: Json
    narration: str | None = None
    thoughts: str | None = None
    answer: str | None = None
