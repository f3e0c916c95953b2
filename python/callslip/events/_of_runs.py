"""Events of a run as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from callslip.events._event import Event, EventKind, Json, ticket_id
from callslip.limits import limit_message, limit_name

__all__ = ["Compacted", "Noted", "RunFinished", "RunStarted", "UserSaid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The run began.

    Attributes:
        task: The task, as the user has written it.
        agent: The name of the agent.
        owner: Whose data the run is; `None` for nobody's.
        key: What its caller calls the run; `None` without a key.
        version: The version of the log.
        setup: The prompt, the tools and the settings, as JSON.
        parent_run: The id of the parent run; `None` for a run without one.
        parent_ticket: The id of the ticket in the parent run.
        depth: The number of runs above it.
        limits: The limits of the run, if they are not those of `setup`, as JSON.
        instructions: The instructions that a function returned, as JSON: their `text`; `inserted`
            replaces `removed` bytes of the prompt in `setup` from the byte `at` on. Instructions
            that are text are in `setup`.
        messages: The earlier conversation that was passed as `messages=`, with `parts` as below in
            those messages that have them.
        untrusted: Whether its task, or the conversation before it, was written by a model that had
            read untrusted results; see `Ticket.untrusted`.
        traceparent: The trace in which the run began, as the header of that name in
            https://www.w3.org/TR/trace-context/; `None` without telemetry.
        parts: The images and files of the task: `label`, `media_type`, `bytes` (how many), `sha256`
            and, if they are known, `name`, `width` and `height` of each. The bytes themselves are
            in `Run.parts`.
    """

    kind: ClassVar[EventKind] = "run_started"
    task: str
    agent: str
    version: int
    setup: Json
    owner: str | None = None
    key: str | None = None
    parent_run: str | None = None
    parent_ticket: str | None = None
    depth: int = 0
    limits: Json | None = None
    instructions: Json | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    untrusted: bool = False
    traceparent: str | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        # Whoever has it makes seals.
        data.pop("seal_key", None)
        parent = data.pop("parent", None)
        if parent is not None:
            data["parent_run"] = parent["run_id"]
            data["parent_ticket"] = ticket_id(parent["ticket"])
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid(Event):
    """A message of the user came, by `Run.send`.

    Attributes:
        text: The message.
        parts: The images and files of the message, as in `RunStarted`.
        key: What its sender calls the message; `None` without a key.
    """

    kind: ClassVar[EventKind] = "user_said"
    text: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """A decision of the runtime.

    Attributes:
        note: `"last_turn"`, `"exhausted"` (a limit of this run or of one above is reached by the
            runs below it), `"resumed"`, `"more_approval"` (the agent that continues the run asks
            for more approval than the run did), or `"paused"` (nothing worked on the run or on
            the runs below it right before, which `Limits(seconds=)` leaves out).
        limit: The field of `Limits`; `None` unless a limit was reached.
        approval: What the tools ask for from the next call on, by their names: `"needed"`, or
            `"checked"` if a function decides. Empty unless it is more than before.
        seconds: How long the run was paused; `None` unless it was.
    """

    kind: ClassVar[EventKind] = "noted"
    note: Literal["last_turn", "exhausted", "resumed", "more_approval", "paused"]
    limit: str | None = None
    approval: dict[str, Literal["checked", "needed"]] = field(default_factory=dict)
    seconds: float | None = None

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        note = data["note"]
        if isinstance(note, dict):
            ((data["note"], about),) = note.items()
            if data["note"] == "more_approval":
                data["approval"] = about
            elif data["note"] == "paused":
                data["seconds"] = about
            else:
                data["limit"] = limit_name(about)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The run ended.

    Attributes:
        reason: As `Run.stop_reason`.
        value: The answer as JSON values; `None` without one.
        success: Whether the task was successful, according to the model (react).
        error: The error that ended the run; `None` without one.
        limit: The field of `Limits` that was reached; `None` without one.
    """

    kind: ClassVar[EventKind] = "run_finished"
    reason: Literal["finished", "limit", "violations", "model_error", "cancelled"]
    value: Any
    success: bool | None
    error: str | None
    limit: str | None

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        if data["limit"] is not None:
            data["limit"] = limit_name(data["limit"])
        # The limit of a run that failed in its last turn is in the note on that turn alone.
        if data["reason"] == "limit" and data["error"] is not None:
            data["error"] = limit_message(data["error"])
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Event):
    """The events so far were folded into this one by `TicketStore.compact`.

    Whoever reads a log or watches a run receives it in place of those events.

    Attributes:
        start: The fields of `run_started`, as JSON.
        hash: SHA-256 of the lines that it replaces.
        sum: SHA-256 of `state`.
        state: The state of the run, as JSON.
    """

    kind: ClassVar[EventKind] = "compacted"
    start: Json
    hash: str
    sum: str
    state: Json

    @classmethod
    def _fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        # As in `RunStarted`.
        data["start"].pop("seal_key", None)
        return data
