"""Agents: a model, a protocol and tools, ready for any number of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from callslip import _core, _lazy
from callslip._agent_options import history_of, store_of
from callslip._agent_tool import AgentTool
from callslip._answers import AnswerCheck, Answers
from callslip._options import check_one_of, check_text
from callslip._runtime.drive import drive_async, drive_sync
from callslip._runtime.sessions import (
    continued_session,
    new_session,
    resumed_session,
    unfinished_runs,
)
from callslip._runtime.setup import RunSetup
from callslip._threads.current_loop import check_loop
from callslip.errors import StoreError, TemplateError, ToolError, UsageError
from callslip.limits import Limits
from callslip.models._call import ModelCall
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.roles import Role
from callslip.runs import Run, RunResult
from callslip.runs._result import AnswerT
from callslip.tools import Tools
from callslip.tools._context import not_in_a_tool
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from typing import Unpack

    from callslip._agent_options import AgentOptions
    from callslip._runtime.stream import RunStream
    from callslip.history import HistoryPolicy, Summarize
    from callslip.models._reply import Model
    from callslip.sandbox import PythonRunner
    from callslip.store import TicketStore

__all__ = ["Agent"]


class Agent(Generic[AnswerT]):
    """A model, a protocol and tools, ready for any number of runs.

    Args:
        model: Any callable from messages to text: sync or async, whole or streamed. Pass client
            objects through `as_model`.
        protocol: A protocol object, or the name of one for its defaults.
        returns: The type of the answer: a pydantic model, dataclass, `TypedDict`, union, list,
            `Literal`, `int` and so on. An answer of another type is the violation `invalid_answer`,
            and the model is asked again. Default: text, or any JSON value in the ticket protocol.
        check_answer: Called with each answer, as a value of `returns`, and a `Context` before the
            run ends with it. It may be async. It returns `None`, or raises `Retry` with the reason
            that the model reads. Any other exception ends the run, and is raised.
        tools: Functions, `Tool`s and sources of them, such as `MCPServer`; or an `OpenAPI` document
            with its handlers.
        limits: The limits of each run. Default: those of `Limits()`.
        on_limit: At a limit, `"answer"` grants one last turn without tools, and `"raise"` raises
            `LimitExceeded`.
        on_open_tickets: At the end of a run, `"wait"` for calls in progress or `"cancel"` them.
        store: The store of the runs: a `TicketStore`, or the path of an SQLite file, which is
            created if it does not exist. Without a store, a run is only an object in memory.
        name: Recorded with every run. `resume_all` resumes the runs of this name.
        delegate: Whether a run may start child runs for tasks, up to `Limits.depth` levels: by
            `DELEGATE` in the ticket protocol, `spawn_agent` and `wait_for_agents` in chatty, and
            `delegate_task` in react. Default: `True` in the ticket protocol and in chatty with
            `roles`, else `False`.
        python: Whether the model may run scripts, by the tool `execute_python_code`: a
            `PythonRunner`, or `True` for one with its defaults.
        roles: A `Role` or an `Agent` for each role that the model may spawn agents for (chatty).
            For any other role, it is this agent.
        history: Chooses the messages that the model is shown, for example `KeepLast(20)` or
            `Summarize(model)`. Default: all messages, and fewer once they fill the context of the
            model (`history_shortened` in the log).
        grammar: Whether a model that accepts `grammar` is passed a grammar of the valid replies.
        seed: Passed to a model that accepts `seed`.
        max_tokens: Output tokens of one reply, at most. Passed to a model that accepts it.
        stop: Stop sequences. Passed to a model that accepts `stop`.

    Raises:
        UsageError: The model cannot be called; `roles`, `python`, `history` or `check_answer` is of
            a wrong type; or `returns` cannot be described as JSON.
        IsolationUnavailable: `python` is `True`, and there is no sandbox on this machine.
        ToolError: A tool cannot be offered to the model.
        TemplateError: The protocol's template lacks a placeholder or has an unknown one, or teaches
            `execute_python_code` or `spawn_agent` to an agent that does not offer it.
        StoreError: The file cannot be opened, or another process writes to it.
    """

    @overload
    def __init__(
        self, model: Model, *, returns: type[AnswerT], **options: Unpack[AgentOptions]
    ) -> None: ...

    @overload
    def __init__(
        self, model: Model, *, returns: object = None, **options: Unpack[AgentOptions]
    ) -> None: ...

    def __init__(
        self,
        model: Model,
        *,
        protocol: Protocol | ProtocolName = "react",
        returns: object = None,
        check_answer: AnswerCheck | None = None,
        tools: Tools = (),
        limits: Limits | None = None,
        on_limit: Literal["answer", "raise"] = "answer",
        on_open_tickets: Literal["wait", "cancel"] = "wait",
        store: TicketStore | str | os.PathLike[str] | None = None,
        name: str = "agent",
        delegate: bool | None = None,
        python: PythonRunner | bool = False,
        roles: Mapping[str, Agent[Any] | Role] | None = None,
        history: HistoryPolicy | Summarize | None = None,
        grammar: bool = True,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
    ) -> None:
        check_one_of("on_limit", on_limit, ("answer", "raise"))
        check_one_of("on_open_tickets", on_open_tickets, ("wait", "cancel"))
        self._model = ModelCall(model)
        self.protocol: Protocol = find_protocol(protocol)
        self._tools, self._answers = Toolbox(tools), Answers(returns, check_answer)
        self.roles: dict[str, Agent[Any] | Role] = _roles(roles)
        self.history: HistoryPolicy | Summarize | None = history_of(history)
        if delegate is None:
            delegate = self.protocol.name == "ticket" or bool(self.roles)
        self.delegate = delegate
        self.python: PythonRunner | None = self._python(python)
        if self.roles and not (delegate and self.protocol.name == "chatty"):
            raise UsageError(
                "roles are for the chatty protocol with delegation: pass other agents as tools, "
                "tools=[agent.as_tool()]"
            )
        check_text("name", name)
        self.name = name
        self.limits: Limits = limits or Limits()
        self.on_limit = on_limit
        self.on_open_tickets = on_open_tickets
        self._setup = RunSetup(self, delegates=delegate and self.limits.depth != 0, agents=True)
        self._check_tool_names()
        self._requested: dict[str, Any] = {
            "grammar": grammar,
            "seed": seed,
            "max_tokens": max_tokens,
            "stop": list(stop),
        }
        self._options: dict[str, Any] = {
            name: value
            for name, value in self._requested.items()
            if name in self._model.accepts and value is not False and value not in (None, [])
        }
        self.system_prompt: str = self._setup.system_prompt
        self._check_template()
        self.store: TicketStore | None = store_of(store)
        self._role_agents: dict[str, Agent[Any]] = {}

    def _check_tool_names(self) -> None:
        if self.protocol.name != "react":
            return
        for name in self._tools.names:
            if name.upper() == "FINISH":
                raise ToolError(
                    f"a tool of the react protocol can't be named '{name}', the word that ends a "
                    "run: use tool(name=…)"
                )

    def _check_template(self) -> None:
        """Raise `TemplateError` if the user's template teaches a tool that is not offered."""
        if self.protocol.template is None:
            return
        options = {"execute_python_code": "python=True"}
        # With depth=0 the option may have been passed, and has no effect.
        if not self.delegate:
            options["spawn_agent"] = "delegate=True"
        for name, option in options.items():
            if name in self.system_prompt and name not in self._setup.toolbox.names:
                raise TemplateError(
                    f"the template teaches '{name}', which this agent does not offer: pass {option}"
                )

    def _python(self, python: PythonRunner | bool) -> PythonRunner | None:  # noqa: FBT001  # private
        if python is False:
            return None
        from callslip.sandbox._runner import runner_for

        return runner_for(python)

    async def run(self, task: str) -> RunResult[AnswerT]:
        """Run a task to its end, on the caller's event loop.

        Args:
            task: The task, for the first user message.

        Raises:
            UsageError: A tool needs approval, and nothing can approve its calls.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled by `Run.cancel`.
            StoreError: The log could not be written down. The run can be resumed from the part
                that was.
        """
        from callslip._runtime.driver import drive

        self._check_approvals()
        # Not by `drive_async`: every coroutine in between costs time at every await.
        with new_session(self, task) as session:
            await drive(session)
            return session.result()

    def run_sync(self, task: str) -> RunResult[AnswerT]:
        """Run a task to its end, in this thread. A running event loop in it is blocked meanwhile.

        Args:
            task: The task, for the first user message.

        Raises:
            UsageError: It was called inside a tool; or a tool needs approval, and nothing can
                approve its calls.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled by `Run.cancel`.
            StoreError: The log could not be written down. The run can be resumed from the part
                that was.
            KeyboardInterrupt: Ctrl-C was pressed. The exception carries the run as `.run`.
        """
        not_in_a_tool("run_sync", "run")
        self._check_approvals()
        return drive_sync(new_session(self, task))

    async def resume(self, run_id: str) -> RunResult[AnswerT]:
        """Resume a run of the store, on the caller's event loop.

        Completed model and tool calls are not repeated. A call that was in progress when its
        process ended is treated according to the `effect` of its tool. The run keeps its prompt and
        its limits. A run that was cancelled, or whose model failed, continues too; the result of
        any other finished run is returned again.

        Args:
            run_id: The id of the run.

        Raises:
            UsageError: This agent has no store, or its protocol or tools are not those of the run.
            StoreError: There is no such run, it cannot be read, or another driver works on it.
            ProtocolError: As for `run`, and so are the other exceptions.
        """
        check_loop()
        # Reading a long log takes time, and waits until the store has written earlier events.
        return await drive_async(await _lazy.asyncio.to_thread(resumed_session, self, run_id))

    def resume_sync(self, run_id: str) -> RunResult[AnswerT]:
        """Resume a run of the store, in this thread. As `resume`.

        Raises:
            UsageError: It was called inside a tool; or as for `resume`.
        """
        not_in_a_tool("resume_sync", "resume")
        return drive_sync(resumed_session(self, run_id))

    async def resume_all(self, *, at_once: int = 32) -> dict[str, RunResult[AnswerT] | Exception]:
        """Resume all unfinished runs of this agent's name that no driver works on.

        Args:
            at_once: The number of runs in progress at once, 1 or more.

        Returns:
            For each run id, oldest first, the result or the exception of `resume`. A run that fails
            does not stop the others.

        Raises:
            UsageError: `at_once` is less than 1, or this agent has no store.
            StoreError: The store cannot be read.
        """
        if at_once < 1:
            raise UsageError(f"expected at_once to be 1 or more: got {at_once}")
        check_loop()
        gate = _lazy.asyncio.Semaphore(at_once)

        async def one(run_id: str) -> RunResult[AnswerT] | Exception | None:
            async with gate:
                try:
                    return await self.resume(run_id)
                except Exception as error:  # noqa: BLE001  # it is returned with the others
                    return None if self._is_claimed(run_id, error) else error

        run_ids = await _lazy.asyncio.to_thread(unfinished_runs, self)
        async with _lazy.asyncio.TaskGroup() as group:
            tasks = {run_id: group.create_task(one(run_id)) for run_id in run_ids}
        results = {run_id: task.result() for run_id, task in tasks.items()}
        return {run_id: result for run_id, result in results.items() if result is not None}

    def resume_all_sync(self) -> dict[str, RunResult[AnswerT] | Exception]:
        """Resume all unfinished runs in this thread, one after the other. As `resume_all`."""
        results: dict[str, RunResult[AnswerT] | Exception] = {}
        for run_id in unfinished_runs(self):
            try:
                results[run_id] = self.resume_sync(run_id)
            except Exception as error:  # noqa: BLE001  # it is returned with the others
                if not self._is_claimed(run_id, error):
                    results[run_id] = error
        return results

    def stream(self, task: str, *, children: bool = False) -> RunStream[AnswerT]:
        """Run a task and stream its events.

        Use it as `async with agent.stream(…) as run:` and then `async for event in run: …`. The
        items are the `Event`s of the log, `Delta`s of replies that are still arriving, and
        `Progress` that tools report. The stream applies backpressure. Leaving the block early
        cancels the run.

        Args:
            task: The task, for the first user message.
            children: Whether the events of child runs are streamed too, without deltas; see
                `Event.run_id`. Their tickets that are awaiting approval are streamed in any case.

        Raises:
            UsageError: The task is not text.
            StoreError: The run cannot be written down.
        """
        from callslip._runtime.stream import RunStream

        return RunStream(new_session(self, task), children=children)

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
        concurrency: int | None = None,
    ) -> AgentTool:
        """Return a tool with which other agents, of any protocol, delegate tasks to this one.

        Each call is a child run of this agent. The result of the call is the value of that run; a
        run that fails is a failed call.

        Args:
            name: The name of the tool. Default: the name of the agent.
            description: The description for the model: the kind of tasks that the agent is for.
            needs_approval: As for `tool`.
            concurrency: Child runs of this tool at once; `None` for no bound.

        Raises:
            ToolError: The name of the agent is not valid for a tool.
        """
        return AgentTool(
            self,
            name=name,
            description=description,
            needs_approval=needs_approval,
            concurrency=concurrency,
        )

    @cached_property
    def _last_setup(self) -> RunSetup:
        """The setup at the last level, without tools that start child runs."""
        return RunSetup(self, delegates=False, agents=False)

    def _setup_at(self, levels: int | None) -> RunSetup:
        """Return the setup of a run with so many levels of child runs; `None` for no limit."""
        return self._last_setup if levels == 0 else self._setup

    @cached_property
    def _for_tasks(self) -> Agent[Any]:
        """The agent for tasks that a run of this one delegates: their answers have no type."""
        if self._answers.schema is None and not self._answers.are_checked:
            return self
        twin: Agent[Any] = copy(self)
        for name in ("_last_setup", "_for_tasks", "_asks_for_approval"):
            twin.__dict__.pop(name, None)
        twin._answers = Answers()
        twin._setup = RunSetup(
            twin, delegates=self.delegate and self.limits.depth != 0, agents=True
        )
        twin.system_prompt = twin._setup.system_prompt
        return twin

    def _is_claimed(self, run_id: str, error: Exception) -> bool:
        """Whether the error is that another driver works on the run."""
        return isinstance(error, StoreError) and self._required_store()._native.is_claimed(run_id)

    def _required_store(self) -> TicketStore:
        if self.store is None:
            raise UsageError(
                "this agent has no store to resume runs from: pass one, as in "
                "Agent(…, store='runs.sqlite')"
            )
        return self.store

    async def _continue(self, run: Run, commands: list[_core.Command]) -> RunResult[AnswerT]:
        session = continued_session(self, run, commands)
        if run.finished:
            with session:
                return session.result()
        return await drive_async(session)

    def _continue_sync(self, run: Run, commands: list[_core.Command]) -> RunResult[AnswerT]:
        return drive_sync(continued_session(self, run, commands))

    def _for_role(self, role: str) -> Agent[Any]:
        """Return the agent for a role: the one of `roles`, or this one."""
        known = self._role_agents.get(role)
        if known is not None:
            return known
        prepared = self.roles.get(role)
        if prepared is None:
            return self
        if not isinstance(prepared, Agent):
            prepared = self._with_role(role, prepared)
        self._role_agents[role] = prepared
        return prepared

    def _with_role(self, role: str, prepared: Role) -> Agent[Any]:
        """Return an agent with the settings of a role, and those of this agent otherwise."""
        protocol = find_protocol(prepared.protocol or self.protocol)
        agent: Agent[Any] = Agent(
            self._model if prepared.model is None else prepared.model,
            protocol=protocol,
            tools=self._tools if prepared.tools is None else prepared.tools,
            limits=prepared.limits or self.limits,
            name=role,
            delegate=self.delegate,
            python=self.python or False,
            roles=self.roles if protocol.name == "chatty" else None,
            on_limit=self.on_limit,
            on_open_tickets=self.on_open_tickets,
            history=self.history,
            **self._requested,
        )
        # The agent of a role may spawn agents for all roles.
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
        """The name of a tool that needs approval, of this agent or of one that it can start."""
        seen: set[int] = set()
        agents: list[Agent[Any]] = [self]
        while agents:
            agent = agents.pop()
            if id(agent) in seen:
                continue
            seen.add(id(agent))
            agents.extend(agent._for_role(role) for role in agent.roles)
            for tool in agent._setup.toolbox:
                if tool.needs_approval:
                    return tool.name
                if isinstance(inner := getattr(tool, "agent", None), Agent):
                    agents.append(inner)
        return None

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, protocol={self.protocol.name!r})"


def _roles(roles: object) -> dict[str, Agent[Any] | Role]:
    if roles is None:
        return {}

    if not isinstance(roles, Mapping):
        raise UsageError(
            "expected roles={'Reviewer': Role(…)}, a mapping to a Role or an Agent each: got "
            f"{type(roles).__name__}"
        )
    for name, prepared in roles.items():
        if not isinstance(name, str) or not isinstance(prepared, Role | Agent):
            raise UsageError(
                f"expected a Role or an Agent for each role: got {prepared!r} for {name!r}"
            )
    return dict(roles)
