"""Agents: a model, a protocol and tools, ready for any number of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from callslip import _core, _lazy
from callslip._agent_tool import AgentTool
from callslip._options import check_one_of, check_text
from callslip._runtime.children import check_tree, child_id, levels_left
from callslip._runtime.session import Session, begin, current_call, go_on
from callslip._runtime.setup import Offer
from callslip._runtime.start import drive_async, drive_sync
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError, TemplateError, ToolError, UsageError
from callslip.limits import Limits
from callslip.models._call import ModelCall
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.roles import Role
from callslip.runs import Run, RunResult, Ticket
from callslip.runs._conversation import turn
from callslip.tools import Tools
from callslip.tools._context import not_in_a_tool
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from callslip._runtime.stream import RunStream
    from callslip.history import HistoryPolicy
    from callslip.models._reply import Model
    from callslip.sandbox import PythonRunner
    from callslip.store import TicketStore

__all__ = ["Agent"]


class Agent:
    """A model, a protocol and tools, ready for any number of runs.

    Args:
        model: Any callable from messages to text: sync or async, whole or streamed. Client objects
            are wrapped with `as_model`.
        protocol: A protocol object, or the name of one for its defaults.
        tools: Functions, `Tool`s and sources of them, as `MCPServer`; or an `OpenAPI` document
            with its handlers.
        limits: How far a run may go.
        on_limit: `"answer"` grants one last turn without tools, `"raise"` raises `LimitExceeded`.
        on_open_tickets: At the end of a run, `"wait"` for calls in progress or `"cancel"` them.
        store: Where runs are kept: the path of an SQLite file, made where it is not there, or a
            `TicketStore`. Without one a run is kept in memory, by whoever holds it.
        name: Recorded with every run; `resume_all` resumes those of this name.
        delegate: Whether runs may give tasks to runs of their own, up to `Limits.depth` levels:
            `DELEGATE` in the ticket protocol, `spawn_agent` and `wait_for_agents` in chatty,
            `delegate_task` in react. Default: in ticket, and in chatty where there are `roles`.
        python: Whether the model may run scripts, by the tool `execute_python_code`: a
            `PythonRunner`, or `True` for one with its defaults.
        roles: Agents to take for the roles that a run spawns agents for (chatty): a `Role`, or
            an `Agent`. For any other role it is this agent.
        history: What of a long transcript the model is shown, for example `KeepLast(20)`; default
            all of it.
        grammar: Whether a model that takes a `grammar` is given that of what may be said now.
        seed: Offered to the model.
        max_tokens: Of one reply; offered to the model.
        stop: Stop sequences; offered to the model.

    Raises:
        UsageError: The model can't be called, or `roles`, `python` or `history` is none.
        IsolationUnavailable: `python` is `True`, and this machine can't keep scripts apart.
        ToolError: A tool can't be offered.
        TemplateError: The protocol's template lacks a placeholder or has an unknown one, or teaches
            `execute_python_code` or `spawn_agent` to an agent that does not offer it.
        StoreError: The file can't be opened or belongs to another process.
    """

    def __init__(
        self,
        model: Model,
        *,
        protocol: Protocol | ProtocolName = "react",
        tools: Tools = (),
        limits: Limits | None = None,
        on_limit: Literal["answer", "raise"] = "answer",
        on_open_tickets: Literal["wait", "cancel"] = "wait",
        store: TicketStore | str | os.PathLike[str] | None = None,
        name: str = "agent",
        delegate: bool | None = None,
        python: PythonRunner | bool = False,
        roles: Mapping[str, Agent | Role] | None = None,
        history: HistoryPolicy | None = None,
        grammar: bool = True,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
    ) -> None:
        check_one_of("on_limit", on_limit, ("answer", "raise"))
        check_one_of("on_open_tickets", on_open_tickets, ("wait", "cancel"))
        self._model = ModelCall(model)
        self.protocol = find_protocol(protocol)
        self._tools = Toolbox(tools)
        self.roles = _roles(roles)
        if history is not None:
            from callslip.history import check_policy

            check_policy(history)
        self.history = history
        if delegate is None:
            delegate = self.protocol.name == "ticket" or bool(self.roles)
        self.delegate = delegate
        self.python = self._python(python)
        if self.roles and not (delegate and self.protocol.name == "chatty"):
            raise UsageError(
                "roles are for agents that are spawned, which only the chatty protocol does: give "
                "other agents as tools, tools=[agent.as_tool()]"
            )
        check_text("name", name)
        self.name = name
        self.limits = limits or Limits()
        self.on_limit = on_limit
        self.on_open_tickets = on_open_tickets
        self._offer = Offer(self, delegates=delegate and self.limits.depth != 0, agents=True)
        if self.protocol.name == "react":
            for tool_name in self._tools.names:
                if tool_name.upper() == "FINISH":
                    raise ToolError(
                        f"a tool of the react protocol can't be named '{tool_name}', the word that "
                        "ends a run: use tool(name=…)"
                    )
        offered = {"seed": seed, "max_tokens": max_tokens, "stop": list(stop)}
        self._options: dict[str, Any] = {
            name: value
            for name, value in offered.items()
            if value not in (None, []) and name in self._model.accepts
        }
        if grammar and "grammar" in self._model.accepts:
            self._options["grammar"] = True
        self.system_prompt = self._offer.system_prompt
        self._check_template()
        self.store = _store(store)
        self._role_agents: dict[str, Agent] = {}
        self._more: dict[str, Any] = {
            "on_limit": on_limit,
            "on_open_tickets": on_open_tickets,
            "history": history,
            "grammar": grammar,
            **offered,
        }

    def _check_template(self) -> None:
        """Raise `TemplateError` where a template of the user teaches what is not offered."""
        if self.protocol.template is None:
            return
        options = {"execute_python_code": "python=True"}
        # Where no run may be below this one, the option has been given and is of no use.
        if not self.delegate:
            options["spawn_agent"] = "delegate=True"
        for name, option in options.items():
            if name in self.system_prompt and name not in self._offer.toolbox.names:
                raise TemplateError(
                    f"the template teaches '{name}', which this agent does not offer: pass {option}"
                )

    def _python(self, python: PythonRunner | bool) -> PythonRunner | None:  # noqa: FBT001  # private
        """Return what runs the scripts of the model, where it may write any."""
        if python is False:
            return None
        from callslip.sandbox._runner import runner_for

        return runner_for(python)

    async def run(self, task: str) -> RunResult:
        """Work on a task to its end, on the caller's event loop.

        Raises:
            UsageError: A tool needs approval, and nobody could give it.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled by `Run.cancel`.
            StoreError: The run could not be written down. What was, can be resumed.
        """
        from callslip._runtime.driver import drive

        self._check_approvals()
        # Not by `drive_async`: each coroutine costs at each step.
        with self._started(task) as session:
            await drive(session)
            return session.result()

    def run_sync(self, task: str) -> RunResult:
        """Work on a task to its end, in this thread. Works inside a running event loop too.

        Raises:
            UsageError: It was called inside a tool; or a tool needs approval, and nobody could
                give it.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled by `Run.cancel`.
            StoreError: The run could not be written down. What was, can be resumed.
            KeyboardInterrupt: Ctrl-C; the run so far is the exception's `.run`.
        """
        not_in_a_tool("run_sync", "run")
        self._check_approvals()
        return drive_sync(self._started(task))

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
        check_loop()
        # Reading a long log takes time, and waits for what is still to be written.
        return await drive_async(await _lazy.asyncio.to_thread(self._resumed, run_id))

    def resume_sync(self, run_id: str) -> RunResult:
        """Go on with a run of the store, in this thread. As `resume`."""
        not_in_a_tool("resume_sync", "resume")
        return drive_sync(self._resumed(run_id))

    async def resume_all(self, *, at_once: int = 32) -> dict[str, RunResult | Exception]:
        """Go on with all runs of this agent's name that are not over and not being worked on.

        Args:
            at_once: How many of them are worked on side by side.

        Returns:
            By run id, oldest first, what `resume` returns or raises: one that fails stops no other.

        Raises:
            UsageError: `at_once` is less than 1.
        """
        if at_once < 1:
            raise UsageError(f"expected at_once to be 1 or more: got {at_once}")
        check_loop()
        gate = _lazy.asyncio.Semaphore(at_once)

        async def one(run_id: str) -> RunResult | Exception | None:
            async with gate:
                try:
                    return await self.resume(run_id)
                except Exception as error:  # noqa: BLE001  # it is told with the others
                    return None if self._is_taken(run_id, error) else error

        run_ids = await _lazy.asyncio.to_thread(self._unfinished)
        async with _lazy.asyncio.TaskGroup() as group:
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

    def stream(self, task: str, *, children: bool = False) -> RunStream:
        """Work on a task and watch it.

        `async with agent.stream(…) as run:` and then `async for event in run: …`.
        The events are `Event`s of the log, `Delta`s of replies that are still arriving, and
        `Progress` of calls whose tools tell of it. The run goes on as far as its events are taken,
        and a little further. Leaving the block early cancels it.

        Args:
            task: What to do.
            children: Whether to give all events of the runs below it too, without their deltas;
                `Event.run_id` tells them apart. Of those that open a ticket which waits for
                approval, you are told in any case.
        """
        from callslip._runtime.stream import RunStream

        return RunStream(self._started(task), children=children)

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
        concurrency: int | None = None,
    ) -> AgentTool:
        """Return a tool for other agents, of any protocol, by which they give tasks to this one.

        Each call is a run of this agent below the run that calls. The call's result is the run's
        value; a run that fails is a failed call.

        Args:
            name: Default: the agent's.
            description: For the model; say what the agent is good for.
            needs_approval: As for `tool`.
            concurrency: Runs by this tool at once; `None` for no bound.

        Raises:
            ToolError: The agent's name is none for a tool.
        """
        return AgentTool(
            self,
            name=name,
            description=description,
            needs_approval=needs_approval,
            concurrency=concurrency,
        )

    @cached_property
    def _last_offer(self) -> Offer:
        """For the last level, whose runs start no others."""
        return Offer(self, delegates=False, agents=False)

    def _offer_at(self, levels: int | None) -> Offer:
        """What a run is offered that so many levels may be below."""
        return self._last_offer if levels == 0 else self._offer

    def _started(self, task: str) -> Session:
        if not isinstance(task, str):
            raise UsageError(f"expected the task as a string: got {type(task).__name__}")
        check_text("the task", task)
        call = current_call()
        parent = above = None
        levels = self.limits.depth
        run_id = os.urandom(8).hex()
        root = run_id
        if call is not None:
            parent, above = (call.session.run.id, call.ticket), call.session
            levels, root = levels_left(above.levels, self.limits.depth), above.root
        offer = self._offer_at(levels)
        core = _core.Run(
            offer.setup,
            run_id=run_id,
            agent=self.name,
            parent=parent,
            above=None if above is None else above.core,
            store=None if self.store is None else self.store._native,
        )
        run = Run(core, run_id, task, agent=self, store=self.store)
        if above is not None:
            above.run._adopt(run)
        return Session(run, self, offer, begin, store=self.store, levels=levels, root=root)

    def _resumed(self, run_id: str) -> Session:
        store = self._kept()
        offer = self._offer_at(self.limits.depth)
        with turn(store, run_id):
            core = _core.Run.resume(store._native, run_id, offer.setup)
        levels = self.limits.depth
        if levels is not None and core.depth:
            # Of a run below others there are as many left as if this agent had begun the first.
            levels = max(0, levels - core.depth)
            offer = self._offer_at(levels)
        run = Run(core, run_id, core.task, agent=self, store=store)
        try:
            check_tree(store, core, self, offer, levels)
            over = {ticket.id for ticket in run.tickets if _has_left(ticket)}
            if over:
                store.end_children(run_id, over)
        except BaseException:
            core.release()
            raise
        return Session(run, self, offer, go_on, store=store, levels=levels, root=run_id)

    def _unfinished(self) -> list[str]:
        store = self._kept()
        running = store.runs(status="running", agent=self.name)
        by_parent = {run.parent_run for run in running} - {None}
        under_way = set()
        if by_parent:
            tickets = store.tickets(status="IN_PROGRESS")
            under_way = {(ticket.run_id, ticket.id) for ticket in tickets}
        unfinished = []
        for run in reversed(running):
            if store._native.is_claimed(run.run_id):
                continue
            # What was started in a call under way is its run's to end, or to go on with.
            if (run.parent_run, run.parent_ticket) in under_way:
                continue
            if run.parent_run is not None and run.run_id == child_id(
                run.parent_run, int((run.parent_ticket or "T0")[1:])
            ):
                # Its process ended between the end of the run above it and its own.
                store.end_children(run.parent_run, {run.parent_ticket or ""})
                continue
            unfinished.append(run.run_id)
        return unfinished

    def _is_taken(self, run_id: str, error: Exception) -> bool:
        """Whether somebody else has begun to work on the run meanwhile."""
        return isinstance(error, StoreError) and self._kept()._native.is_claimed(run_id)

    def _kept(self) -> TicketStore:
        if self.store is None:
            raise UsageError(
                "this agent keeps no runs: make it with Agent(…, store='runs.sqlite') and they can "
                "be resumed"
            )
        return self.store

    def _reopened(self, run: Run, commands: list[_core.Command]) -> Session:
        """Return a run of this agent that nobody works on, to be driven; `commands` are due."""
        store = run._store
        if store is not None:
            with turn(store, run.id):
                run._core.claim(store._native)
        # As when it was begun: a run below others has fewer than its agent.
        levels = run._levels
        run._core.attend()
        return Session(
            run,
            self,
            self._offer_at(levels),
            # What is to be done was told to whoever said something before, and waited for nothing.
            (lambda _: commands) if commands else go_on,
            store=store,
            levels=levels,
            root=run.id,
        )

    async def _continue(self, run: Run, commands: list[_core.Command]) -> RunResult:
        session = self._reopened(run, commands)
        if run.finished:
            with session:
                return session.result()
        return await drive_async(session)

    def _continue_sync(self, run: Run, commands: list[_core.Command]) -> RunResult:
        return drive_sync(self._reopened(run, commands))

    def _for_role(self, role: str) -> Agent:
        """Return the agent that is taken for a role: the one prepared for it, or this one."""
        known = self._role_agents.get(role)
        if known is not None:
            return known
        prepared = self.roles.get(role)
        if prepared is None:
            return self
        if not isinstance(prepared, Agent):
            prepared = self._like(role, prepared)
        self._role_agents[role] = prepared
        return prepared

    def _like(self, role: str, prepared: Role) -> Agent:
        """Return the agent for a role, which has all that the role says nothing of as this one."""
        protocol = find_protocol(prepared.protocol or self.protocol)
        agent = Agent(
            self._model if prepared.model is None else prepared.model,
            protocol=protocol,
            tools=self._tools if prepared.tools is None else prepared.tools,
            limits=prepared.limits or self.limits,
            name=role,
            delegate=self.delegate,
            python=self.python or False,
            roles=self.roles if protocol.name == "chatty" else None,
            **self._more,
        )
        # An agent of a role may spawn others of any role.
        agent._role_agents = self._role_agents
        return agent

    def _check_approvals(self) -> None:
        if self.store is None and self._asks_for_approval:
            raise UsageError(
                f"the tool '{self._asks_for_approval}' needs approval, but nothing can approve it: "
                "use agent.stream(…) and call run.approve(ticket), or pass store=… to the agent, "
                "so that store.run(run_id).approve(ticket) can be called elsewhere"
            )

    @cached_property
    def _asks_for_approval(self) -> str | None:
        """A tool of this agent, or of one that it can start, that needs approval."""
        seen: set[int] = set()
        agents = [self]
        while agents:
            agent = agents.pop()
            if id(agent) in seen:
                continue
            seen.add(id(agent))
            agents.extend(agent._for_role(role) for role in agent.roles)
            for tool in agent._offer.toolbox:
                if tool.needs_approval:
                    return tool.name
                if isinstance(inner := getattr(tool, "agent", None), Agent):
                    agents.append(inner)
        return None

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, protocol={self.protocol.name!r})"


def _roles(roles: object) -> dict[str, Agent | Role]:
    if roles is None:
        return {}

    if not isinstance(roles, Mapping):
        raise UsageError(
            "expected roles={'Reviewer': Role(…)}, from words to a Role or an Agent each: got "
            f"{type(roles).__name__}"
        )
    for name, prepared in roles.items():
        if not isinstance(name, str) or not isinstance(prepared, Role | Agent):
            raise UsageError(
                f"expected a Role or an Agent for each word of roles: got {prepared!r} for {name!r}"
            )
    return dict(roles)


def _has_left(ticket: Ticket) -> bool:
    """Whether what was started by a ticket is to end when its run is gone on with.

    A call that was under way is made anew, or is in doubt. A task that was under way goes on.
    """
    return (ticket.kind == "task") == (ticket.status == "COMPLETED")


def _store(store: TicketStore | str | os.PathLike[str] | None) -> TicketStore | None:
    if store is None:
        return None
    from callslip.store import TicketStore

    return store if isinstance(store, TicketStore) else TicketStore(store)
