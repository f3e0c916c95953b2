"""Agents: a model, a protocol and tools, ready for any number of runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from callslip import _core
from callslip._options import check_one_of
from callslip._session import Session, current_call
from callslip.errors import StoreError, ToolError, UsageError
from callslip.limits import Limits
from callslip.models._call import ModelCall
from callslip.protocols import (
    ChattyProtocol,
    Protocol,
    ProtocolName,
    TicketProtocol,
    find_protocol,
)
from callslip.runs import Run, RunResult
from callslip.tools import Toolbox, ToolLike

if TYPE_CHECKING:
    from callslip._stream import RunStream
    from callslip.models._reply import Model
    from callslip.openapi import OpenAPI
    from callslip.store import TicketStore

__all__ = ["Agent"]


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
        store: Where runs are kept: the path of an SQLite file, made where it is not there, or a
            `TicketStore`. Without one a run is kept in memory, by whoever holds it.
        name: Recorded with every run; `resume_all` resumes those of this name.
        grammar: Whether a model that takes a `grammar` is given that of what may be said now.
        seed: Offered to the model.
        max_tokens: Of one reply; offered to the model.
        stop: Stop sequences; offered to the model.

    Raises:
        UsageError: The model can't be called.
        ToolError: A tool can't be offered.
        TemplateError: The protocol's template lacks a placeholder or has an unknown one.
        StoreError: The file can't be opened or belongs to another process.
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
        store: TicketStore | str | os.PathLike[str] | None = None,
        name: str = "agent",
        grammar: bool = True,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
    ) -> None:
        check_one_of("on_limit", on_limit, ("answer", "raise"))
        check_one_of("on_open_tickets", on_open_tickets, ("wait", "cancel"))
        self._model = ModelCall(model)
        self.protocol = find_protocol(protocol)
        self._toolbox = Toolbox(tools)
        if self.protocol.name == "react":
            for tool_name in self._toolbox.tool_set.names():
                if tool_name.upper() == "FINISH":
                    raise ToolError(
                        f"a tool of the react protocol can't be named '{tool_name}', the word that "
                        "ends a run: use tool(name=…)"
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
        _check_text("name", name)
        self.name = name
        self.store = _store(store)

    async def run(self, task: str) -> RunResult:
        """Work on a task to its end, on the caller's event loop.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            StoreError: The run could not be written down. What was, can be resumed.
        """
        return await _drive(self._started(task))

    def run_sync(self, task: str) -> RunResult:
        """Work on a task to its end, in this thread. Works inside a running event loop too.

        Raises:
            UsageError: It was called inside a tool.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            StoreError: The run could not be written down. What was, can be resumed.
            KeyboardInterrupt: Ctrl-C; the run so far is the exception's `.run`.
        """
        _not_in_a_tool("run_sync", "run")
        return _drive_sync(self._started(task))

    async def resume(self, run_id: str) -> RunResult:
        """Go on with a run of the store, on the caller's event loop.

        What was done is not done again: replies that came and calls that ended stand as they are.
        A call that was under way when its process ended is treated as its tool's `effect` says.
        The run keeps the prompt and the limits that it was started with. A run that was cancelled,
        or whose model failed, goes on too; any other that is over gives its result once more.

        Raises:
            UsageError: This agent has no store, or its protocol or tools are not those of the run.
            StoreError: There is no such run, it can't be read, or it is being worked on.
            ProtocolError: As for `run`; so for the others.
        """
        import asyncio

        # Reading a long log takes time, and waits for what is still to be written.
        return await _drive(await asyncio.to_thread(self._resumed, run_id))

    def resume_sync(self, run_id: str) -> RunResult:
        """Go on with a run of the store, in this thread. As `resume`."""
        _not_in_a_tool("resume_sync", "resume")
        return _drive_sync(self._resumed(run_id))

    async def resume_all(self, *, at_once: int = 32) -> dict[str, RunResult | Exception]:
        """Go on with all runs of this agent's name that are not over and not being worked on.

        Args:
            at_once: How many of them are worked on side by side.

        Returns:
            By run id, oldest first, what `resume` returns or raises: one that fails stops no other.

        Raises:
            ValueError: `at_once` is less than 1.
        """
        import asyncio

        if at_once < 1:
            raise ValueError(f"expected at_once to be 1 or more: got {at_once}")
        gate = asyncio.Semaphore(at_once)

        async def one(run_id: str) -> RunResult | Exception | None:
            async with gate:
                try:
                    return await self.resume(run_id)
                except Exception as error:  # noqa: BLE001  # it is told with the others
                    return None if self._is_taken(run_id, error) else error

        run_ids = await asyncio.to_thread(self._unfinished)
        async with asyncio.TaskGroup() as group:
            tasks = {run_id: group.create_task(one(run_id)) for run_id in run_ids}
        results = {run_id: task.result() for run_id, task in tasks.items()}
        return {run_id: result for run_id, result in results.items() if result is not None}

    def resume_all_sync(self) -> dict[str, RunResult | Exception]:
        """Go on with all of them in this thread, one after the other. As `resume_all`."""
        results: dict[str, RunResult | Exception] = {}
        for run_id in self._unfinished():
            try:
                results[run_id] = self.resume_sync(run_id)
            except Exception as error:  # noqa: BLE001  # it is told with the others
                if not self._is_taken(run_id, error):
                    results[run_id] = error
        return results

    def stream(self, task: str) -> RunStream:
        """Work on a task and watch it.

        `async with agent.stream(…) as run:` and then `async for event in run: …`.
        The events are `Event`s of the log and `Delta`s of replies that are still arriving. Leaving
        the block early cancels the run.
        """
        from callslip._stream import RunStream

        return RunStream(self._started(task))

    def _started(self, task: str) -> Session:
        if not isinstance(task, str):
            raise UsageError(f"expected the task as a string: got {type(task).__name__}")
        _check_text("the task", task)
        run_id = os.urandom(8).hex()
        native = None if self.store is None else self.store.native
        core = _core.Run(
            self._setup, run_id=run_id, agent=self.name, parent=current_call(), store=native
        )
        return self._session(Run(core, run_id, task), begins=True)

    def _resumed(self, run_id: str) -> Session:
        store = self._kept()
        core = _core.Run.resume(store.native, run_id, self._setup)
        run = Run(core, run_id, core.task)
        # Calls that were under way are made anew or in doubt, and so is what was started in them.
        under_way = {ticket.id for ticket in run.tickets if ticket.status == "IN_PROGRESS"}
        try:
            if under_way:
                store.end_children(run_id, under_way)
            return self._session(run, begins=False)
        except BaseException:
            core.release()
            raise

    def _unfinished(self) -> list[str]:
        store = self._kept()
        runs = store.runs(status="running", agent=self.name)
        under_way = {(ticket.run_id, ticket.id) for ticket in store.tickets(status="IN_PROGRESS")}
        return [
            run.run_id
            for run in reversed(runs)
            # What was started in a call under way is its run's to end, and to start anew.
            if (run.parent_run, run.parent_ticket) not in under_way
            and not store.native.is_claimed(run.run_id)
        ]

    def _is_taken(self, run_id: str, error: Exception) -> bool:
        """Whether somebody else has begun to work on the run meanwhile."""
        return isinstance(error, StoreError) and self._kept().native.is_claimed(run_id)

    def _kept(self) -> TicketStore:
        if self.store is None:
            raise UsageError(
                "this agent keeps no runs: make it with Agent(…, store='runs.sqlite') and they can "
                "be resumed"
            )
        return self.store

    def _session(self, run: Run, *, begins: bool) -> Session:
        protocol = self.protocol
        return Session(
            run,
            begins=begins,
            commits=None if self.store is None else self.store.commits,
            model=self._model,
            toolbox=self._toolbox,
            options=self._options,
            grace=protocol.grace if isinstance(protocol, TicketProtocol) else 0.0,
            thoughts=protocol.thoughts,
        )


async def _drive(session: Session) -> RunResult:
    from callslip._drive import drive

    with session:
        await drive(session)
        return RunResult.of(session)


def _drive_sync(session: Session) -> RunResult:
    from callslip._drive_sync import drive

    with session:
        drive(session)
        return RunResult.of(session)


def _not_in_a_tool(called: str, instead: str) -> None:
    if current_call() is not None:
        raise UsageError(
            f"{called} was called inside a tool, where it would hold the run's own thread: make "
            f"the tool async and await agent.{instead}(…)"
        )


def _store(store: TicketStore | str | os.PathLike[str] | None) -> TicketStore | None:
    if store is None:
        return None
    from callslip.store import TicketStore

    return store if isinstance(store, TicketStore) else TicketStore(store)


def _check_text(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} holds half of a surrogate pair at {error.start}, which is no character: "
            "decode it anew"
        ) from None
