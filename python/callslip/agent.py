"""Agents and their runs: what people import."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip import _core
from callslip._messages import Messages, Transcript
from callslip._session import Session, calling
from callslip.errors import (
    LimitExceeded,
    ModelError,
    ProtocolError,
    RunCancelled,
    ToolError,
    UsageError,
)
from callslip.events import Event
from callslip.limits import Limits
from callslip.models._call import ModelCall
from callslip.protocols import (
    ChattyProtocol,
    Protocol,
    ProtocolName,
    TicketProtocol,
    find_protocol,
)
from callslip.tools import Context, Toolbox, ToolLike

if TYPE_CHECKING:
    from callslip._stream import RunStream
    from callslip.models._reply import Model
    from callslip.openapi import OpenAPI

__all__ = ["Agent", "Run", "RunResult", "StopReason", "Ticket", "Usage"]

StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run's replies cost, as the model client reports it.

    Attributes:
        input_tokens: Tokens of the messages.
        output_tokens: Tokens of the replies.
        cached_tokens: Those of the input that came from the client's cache.
        cost: In the client's own currency; 0.0 where it does not say.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float


@dataclass(frozen=True, slots=True)
class Ticket:
    """The record of one tool call.

    Attributes:
        id: `T1`, `T2`, … in the order of opening.
        description: What it is for: the model's words, or the call itself.
        status: `"IN_PROGRESS"` or `"COMPLETED"`.
        tool: The tool called.
        call_id: The model's own name for the call (chatty).
        outcome: `"ok"`, `"error"`, `"cancelled"`, or `None` while it is in progress.
        result: The result as JSON values; `None` where there is none.
        error: What the model was told of a failure.
        opened_at: Unix seconds.
        completed_at: Unix seconds.
    """

    id: str
    description: str
    status: Literal["IN_PROGRESS", "COMPLETED"]
    tool: str
    call_id: str | None
    outcome: Literal["ok", "error", "cancelled"] | None
    result: Any
    error: str | None
    opened_at: float
    completed_at: float | None


class Run:
    """One agent working on one task: its transcript, its tickets, its log.

    Attributes:
        id: Unique among runs.
        task: What the user asked for.
    """

    id: str
    task: str

    def __init__(self, core: _core.Run, run_id: str, task: str) -> None:
        self._core = core
        self._transcript = Transcript(core)
        self.id = run_id
        self.task = task

    @property
    def messages(self) -> Messages:
        """The transcript as it is now; the model is given the same."""
        return self._transcript.now()

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets, oldest first."""
        return [_ticket(row) for row in self._core.tickets()]

    @property
    def log(self) -> list[Event]:
        """Everything that has happened: the run is the fold of these events."""
        return [Event.from_json(text) for text in self._core.records()]

    @property
    def usage(self) -> Usage:
        """What the replies cost so far."""
        return Usage(*self._core.usage)

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

    def context(self, ticket: int, tool: str) -> Context:
        """Return what a tool of this run is told about its call."""
        return Context(run_id=self.id, ticket_id=f"T{ticket}", tool=tool)

    def __repr__(self) -> str:
        state = self.stop_reason or "running"
        return f"Run({self.id!r}, {state}, turns={self.turns}, tickets={len(self._core.tickets())})"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Attributes:
        value: What the model finished with: any JSON value in the ticket protocol, text in the
            others.
        success: What a react reply said of its own success; `True` in the other protocols.
        stop_reason: `"finished"`, or `"limit"` where the model answered in its last turn.
        run: The run: transcript, tickets, log.
    """

    value: Any
    success: bool
    stop_reason: StopReason
    run: Run = field(repr=False)

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets of the run, oldest first."""
        return self.run.tickets

    @property
    def messages(self) -> Messages:
        """The transcript."""
        return self.run.messages

    @property
    def usage(self) -> Usage:
        """What the replies cost."""
        return self.run.usage


class Agent:
    """A model, a protocol and tools, ready for any number of runs.

    Args:
        model: Any callable from messages to text: sync or async, whole or streamed. Client objects
            are wrapped with `as_model`.
        protocol: A protocol object, or the name of one for its defaults.
        tools: Functions, `Tool`s, or an `OpenAPI` document with its handlers.
        limits: How far a run may go.
        on_limit: `"answer"` grants one last turn without tools, `"raise"` raises `LimitExceeded`.
        on_open_tickets: At the end of a run, `"wait"` for calls in progress or `"cancel"` them.
        grammar: Whether a model that takes a `grammar` is given that of what may be said now.
        seed: Offered to the model.
        max_tokens: Of one reply; offered to the model.
        stop: Stop sequences; offered to the model.

    Raises:
        UsageError: The model can't be called.
        ToolError: A tool can't be offered.
        TemplateError: The protocol's template lacks a placeholder or has an unknown one.
    """

    def __init__(
        self,
        model: Model,
        *,
        protocol: Protocol | ProtocolName = "react",
        tools: Sequence[ToolLike] | OpenAPI = (),
        limits: Limits | None = None,
        on_limit: Literal["answer", "raise"] = "answer",
        on_open_tickets: Literal["wait", "cancel"] = "wait",
        grammar: bool = True,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
    ) -> None:
        _one_of("on_limit", on_limit, ("answer", "raise"))
        _one_of("on_open_tickets", on_open_tickets, ("wait", "cancel"))
        self._model = ModelCall(model)
        self.protocol = find_protocol(protocol)
        self._toolbox = Toolbox(tools)
        if self.protocol.name == "react":
            for name in self._toolbox.tool_set.names():
                if name.upper() == "FINISH":
                    raise ToolError(
                        f"a tool of the react protocol can't be named '{name}', the word that ends "
                        "a run: use tool(name=…)"
                    )
        self.limits = limits or Limits()
        self.on_limit = on_limit
        self.on_open_tickets = on_open_tickets
        offered = {"seed": seed, "max_tokens": max_tokens, "stop": list(stop) or None}
        self._options: dict[str, Any] = {
            name: value
            for name, value in offered.items()
            if value is not None and name in self._model.accepts
        }
        if grammar and "grammar" in self._model.accepts:
            self._options["grammar"] = True
        self.system_prompt = self.protocol.native.system_prompt(self._toolbox.tool_set)
        self._setup = _core.Setup(
            self.protocol.native,
            self._toolbox.tool_set,
            prompt=self.system_prompt,
            limits=self.limits.to_json(),
            raise_on_limit=on_limit == "raise",
            cancel_open=on_open_tickets == "cancel",
            call_first=self.protocol.first_move == "call",
            early_stop=self.protocol.early_stop,
            early_start=isinstance(self.protocol, ChattyProtocol) and self.protocol.early_start,
        )

    async def run(self, task: str) -> RunResult:
        """Work on a task to its end, on the caller's event loop.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
        """
        from callslip._drive import drive

        session = self._session(task)
        await drive(session, task)
        return _result(session)

    def run_sync(self, task: str) -> RunResult:
        """Work on a task to its end, in this thread. Works inside a running event loop too.

        Raises:
            UsageError: It was called inside a tool.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            KeyboardInterrupt: Ctrl-C; the run so far is the exception's `.run`.
        """
        if calling.get():
            raise UsageError(
                "run_sync was called inside a tool, where it would hold the run's own thread: make "
                "the tool async and await agent.run(…)"
            )
        from callslip._drive_sync import drive

        session = self._session(task)
        drive(session, task)
        return _result(session)

    def stream(self, task: str) -> RunStream:
        """Work on a task and watch it.

        `async with agent.stream(…) as run:` and then `async for event in run: …`.
        The events are `Event`s of the log and `Delta`s of replies that are still arriving. Leaving
        the block early cancels the run.
        """
        from callslip._stream import RunStream

        return RunStream(self._session(task), task)

    def _session(self, task: str) -> Session:
        if not isinstance(task, str):
            raise UsageError(f"expected the task as a string: got {type(task).__name__}")
        run_id = os.urandom(8).hex()
        protocol = self.protocol
        core = _core.Run(self._setup, run_id=run_id, agent="agent")
        return Session(
            Run(core, run_id, task),
            model=self._model,
            toolbox=self._toolbox,
            options=self._options,
            grace=protocol.grace if isinstance(protocol, TicketProtocol) else 0.0,
            thoughts=protocol.thoughts,
        )


def _result(session: Session) -> RunResult:
    run = session.run
    ending = session.core.ending
    assert ending is not None
    reason, value, success, error, limit = ending
    if error is None:
        return RunResult(value, success is not False, reason, run)
    match reason:
        case "limit":
            raise LimitExceeded(error, run, limit or "")
        case "violations":
            raise ProtocolError(error, run)
        case "cancelled":
            raise RunCancelled(error, run)
    if isinstance(session.error, ModelError) and session.error.run is None:
        session.error.run = run
        raise session.error
    raise ModelError(f"the model failed in turn {run.turns}: {error}", run) from session.error


def _ticket(row: _core.TicketRow) -> Ticket:
    ticket_id, description, status, tool, call_id, outcome, opened_at, completed_at = row
    word, text = (None, None) if outcome is None else outcome
    result = None
    if word == "ok" and text is not None:
        import json

        result = json.loads(text)
    return Ticket(
        id=ticket_id,
        description=description,
        status=status,
        tool=tool,
        call_id=call_id,
        outcome=word,
        result=result,
        error=None if word == "ok" else text,
        opened_at=opened_at,
        completed_at=completed_at,
    )


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        expected = " or ".join(repr(word) for word in allowed)
        raise ValueError(f"expected {name}={expected}: got {value!r}")
