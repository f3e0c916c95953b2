"""Agents: a model, a protocol and tools, ready for any number of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, overload

from callslip import _core
from callslip._base.attribute_names import OF_AGENTS, knows_attributes
from callslip._base.option_names import knows_names
from callslip._base.options import check_flag, check_known, check_one_of, check_text
from callslip._protocols import DEFAULT_PROTOCOL
from callslip._runtime.drive import drive_async, drive_sync
from callslip._runtime.joined import join, join_sync
from callslip._runtime.keyed import begin_on_loop, begin_sync
from callslip._runtime.known import Known
from callslip._runtime.sessions import continued_session, new_session
from callslip._runtime.setup import RunSetup
from callslip._threads.current_loop import check_loop
from callslip.agent._answers import AnswerCheck, Answers
from callslip.agent._copies import agent_of_options, deep_copy, options_to_pickle
from callslip.agent._deps import needed_deps
from callslip.agent._instructions import Instructions
from callslip.agent._options import (
    AnyRunner,
    accepted_options,
    check_takes_tools,
    check_template,
    check_tool_names,
    checked_model,
    checked_task_check,
    history_of,
    no_model,
    requested_options,
    runner_of,
    store_of,
)
from callslip.agent._overrides import in_effect, is_any_in_effect, overridden
from callslip.agent._roles import (
    Waiting,
    agent_for_role,
    check_roles,
    checked_askers,
    roles_of,
    waiting_tools,
)
from callslip.agent._runs import AgentRuns
from callslip.agent._script import python_tool
from callslip.agent._tool import AgentTool
from callslip.errors import UsageError
from callslip.limits import Limits, check_limits
from callslip.parts import Content
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.roles import Role
from callslip.runs import Run, RunResult
from callslip.runs._result import AnswerT
from callslip.tools import Tools
from callslip.tools._context import check_may_block
from callslip.tools._levels import checked_level
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Unpack

    from callslip.agent._instructions import InstructionsOption
    from callslip.agent._options import AgentOptions, OverrideOptions, RunnerOption, TaskCheck
    from callslip.approval import Answerer, Approver
    from callslip.history import HistoryPolicy, Summarize
    from callslip.models._reply import Model
    from callslip.store import TicketStore
    from callslip.tools import NeedsApproval, ValueLevel

__all__ = ["Agent"]

T = TypeVar("T")


@knows_attributes(OF_AGENTS)
class Agent(AgentRuns[AnswerT]):
    """A model, a protocol and tools, ready for any number of runs.

    Args:
        model: Any callable from messages to text: sync or async, whole or streamed. Pass client
            objects through `as_model`. `None` for an agent that gets its model by `override`.
        protocol: A protocol object, or the name of one for its defaults. Default: `"react"`.
        instructions: The part of the prompt that is about this agent: text, or a function from the
            `Context` of a run to text, sync or async. The function is called once for each new run,
            and the run keeps the text. The prompt has it after the tools, or at `instructions` in
            the protocol's template. Child runs of this agent have the same text.
        returns: The type of the answer: a pydantic model, dataclass, `TypedDict`, union, list,
            `Literal`, `int` and so on; or a dict with a JSON Schema, for a value of plain JSON. An
            answer of another type is the violation `invalid_answer`, and the model has to answer
            again. Default: text, or any JSON value in the ticket protocol.
        check_task: Called with the task of each run that the program starts, and a `Context`,
            before the model is called or anything is logged. It may be async. Its exceptions
            propagate to the caller, and the run does not begin. Tasks that a model delegates are
            not checked.
        check_answer: Called with each answer, as a value of `returns`, and a `Context` before the
            run ends with it. It may be async. It returns `None`, or raises `Retry` with the reason
            that the model reads. Any other exception ends the run, and is raised.
        tools: Functions, `Tool`s and sources of them, such as `MCPServer`; or an `OpenAPI` document
            with its handlers.
        limits: The limits of each run. Default: `Limits()`.
        on_limit: `"answer"` (default) grants one last turn without tools; `"raise"` raises
            `LimitExceeded`.
        on_open_tickets: At the end, `"wait"` (default) for calls in progress, or `"cancel"` them.
        store: The store of the runs: a `TicketStore`, the path of an SQLite file, which is created
            if it does not exist, or the URL of a database. Without a store, a run is only an object
            in memory.
        name: Recorded with every run. `resume_all` resumes the runs of this name.
        delegate: Whether a run may start child runs, up to `Limits.depth` levels: by `DELEGATE` in
            the ticket protocol, `spawn_agent` and `wait_for_agents` in chatty, `delegate_task` in
            react. Default: `True` in the ticket protocol and with `roles`, else `False`.
        python: Whether the model may run scripts, by the tool `execute_python_code`: a
            `PythonRunner`, or `True` for one with its defaults.
        roles: A `Role` or an `Agent` for each role that the model may spawn agents for (chatty).
            For any other role, it is this agent.
        history: Chooses the messages that the model is shown, such as `KeepLast(20)`. Default: all
            of them, and fewer once they fill its context (`history_shortened` in the log).
        grammar: Whether a model that accepts `grammar` is passed a grammar of the valid replies.
        seed: Passed to a model that accepts `seed`.
        max_tokens: Output tokens of one reply, at most. Passed to a model that accepts it.
        stop: Stop sequences, passed likewise.
        values: The `ValueLevel` of calls whose tools have none. Default: `"strict"` for
            `LocalModel` and tools with an effect, else `"any"`.

    Attributes:
        system_prompt: The system prompt of runs, without instructions that a function returns.

    Raises:
        UsageError: The model cannot be called; an option is of a wrong type, or a function that
            takes other arguments; or `returns` cannot be described as JSON.
        IsolationUnavailable: `python` is `True`, and there is no sandbox on this machine.
        ToolError: A tool cannot be offered to the model.
        TemplateError: The protocol's template lacks a placeholder or has an unknown one, or teaches
            `execute_python_code` or `spawn_agent` to an agent that does not offer it.
        StoreError: The file cannot be opened, or another process writes to it.
    """

    # Of `OneMoveAgent` alone.
    _ends_at_call: ClassVar[bool] = False

    @overload
    def __init__(
        self, model: Model | None, *, returns: type[AnswerT], **options: Unpack[AgentOptions]
    ) -> None: ...

    @overload
    def __init__(
        self, model: Model | None, *, returns: object = None, **options: Unpack[AgentOptions]
    ) -> None: ...

    @knows_names("Agent")
    def __init__(
        self,
        model: Model | None,
        *,
        protocol: Protocol | ProtocolName = DEFAULT_PROTOCOL,
        instructions: InstructionsOption | None = None,
        returns: object = None,
        check_task: TaskCheck | None = None,
        check_answer: AnswerCheck | None = None,
        tools: Tools = (),
        limits: Limits | None = None,
        on_limit: Literal["answer", "raise"] = "answer",
        on_open_tickets: Literal["wait", "cancel"] = "wait",
        store: TicketStore | str | os.PathLike[str] | None = None,
        name: str = "agent",
        delegate: bool | None = None,
        python: RunnerOption = False,
        roles: Mapping[str, Agent[Any] | Role] | None = None,
        history: HistoryPolicy | Summarize | None = None,
        grammar: bool = True,
        seed: int | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        values: ValueLevel | None = None,
    ) -> None:
        given = dict(locals())
        del given["self"]
        check_one_of("on_limit", on_limit, ("answer", "raise"))
        check_one_of("on_open_tickets", on_open_tickets, ("wait", "cancel"))
        self._requested: dict[str, Any] = requested_options(grammar, seed, max_tokens, stop)
        self._model = checked_model(model)
        self.protocol: Protocol = find_protocol(protocol)
        self._tools, self._answers = Toolbox(tools), Answers(returns, check_answer)
        self._instructions = Instructions(instructions)
        self._check_task: TaskCheck | None = checked_task_check(check_task)
        self.roles: dict[str, Agent[Any] | Role] = roles_of(roles, Agent)
        self.history: HistoryPolicy | Summarize | None = history_of(history)
        if delegate is not None:
            check_flag("delegate", delegate)
        else:
            delegate = self.protocol.native.delegates or bool(self.roles)
        self.delegate = delegate
        self.python: AnyRunner | None = runner_of(python)
        check_roles(self.roles, self.protocol, delegate=delegate)
        check_text("name", name)
        self.name = name
        self.limits: Limits = Limits() if limits is None else check_limits(limits)
        self.on_limit, self.on_open_tickets = on_limit, on_open_tickets
        self.values: ValueLevel | None = checked_level(values)
        self._setup = RunSetup(self, delegates=delegate and self.limits.depth != 0, agents=True)
        check_takes_tools(self._model, self.protocol)
        check_tool_names(self.protocol, self._tools)
        self._options = accepted_options(self._model, self._requested, self.protocol)
        self.system_prompt: str = self._setup.system_prompt
        check_template(self.protocol, self._setup, delegate=delegate, depth=self.limits.depth)
        self.store: TicketStore | None = store_of(store)
        # Agents made by `replace` share the open store, the loaded tools and the runner.
        own = {"tools": self._tools, "store": self.store, "python": self.python or False}
        self._given = {**given, **own, "roles": self.roles or None, "stop": self._requested["stop"]}
        self._role_agents: dict[str, Agent[Any]] = {}

    @property
    def model(self) -> Model | None:
        """The model, as it was passed."""
        return None if self._model.model is no_model else cast("Model", self._model.model)

    @overload
    def replace(
        self, *, returns: type[T], model: Model | None = ..., **options: Unpack[AgentOptions]
    ) -> Agent[T]: ...

    @overload
    def replace(
        self, *, returns: object, model: Model | None = ..., **options: Unpack[AgentOptions]
    ) -> Agent[Any]: ...

    @overload
    def replace(
        self, *, model: Model | None = ..., **options: Unpack[AgentOptions]
    ) -> Agent[AnswerT]: ...

    @knows_names("replace")
    def replace(self, **options: Any) -> Agent[Any]:
        """Return a new agent like this one, with other options.

        The options are the same as for `Agent`. An option that is not passed is as it was passed to
        this agent. The agents share the store, the tools and the runner of scripts.

        Raises:
            TypeError: There is no such option.
            UsageError: As for `Agent`, like the other exceptions.
        """
        return type(self)(**{**self._given, **options})

    @knows_names("override")
    def override(self, **options: Unpack[OverrideOptions]) -> AbstractContextManager[None]:
        """Replace options of this agent in a `with` block, for all that is started inside of it.

        Use it to test a program that has an agent: `with agent.override(model=ScriptedModel(…)):`.
        New, resumed and continued runs have the options, even if this agent is a tool or has a
        role. They are stored in a context variable, which threads and tasks inherit, so parallel
        tests do not affect each other. Runs that are in progress and the attributes of the agent do
        not change. Nested blocks are merged.

        Args:
            options: The options of `replace`, except `returns`.

        Raises:
            TypeError: There is no such option.
            UsageError: As for `Agent`, like the other exceptions.
        """
        return overridden(self, options)

    @knows_names("run")
    async def run(
        self,
        task: Content,
        *,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        approve: Approver | None = None,
        answer: Answerer | None = None,
        owner: str | None = None,
        key: str | None = None,
    ) -> RunResult[AnswerT]:
        """Run a task to its end, on the caller's event loop.

        Args:
            task: The task, for the first user message: text, or a list of texts, images and files,
                such as `["What is this?", Image("cat.png")]`.
            deps: An object for the tools of this run and of its child runs: `Context.deps`. It is
                never stored. Default: inside a tool, the `deps` of the calling run; else `None`.
            limits: The limits of this run, instead of the agent's limits. They are stored with it.
            messages: An earlier conversation, which the model reads before the task: mappings with
                `role`, `"user"` or `"assistant"`, and `content`, like a task.
            approve: Decides on calls that are awaiting approval, of this run and its child runs: a
                function of a `Ticket`, such as `at_terminal`, that returns an `ApprovalDecision`.
                A sync function is called in a thread, for one call at a time.
            answer: Answers calls of tools with `external=True`, of this run and its child runs: a
                function of a `Ticket` that returns the result, sync or async; see `Answerer`.
            owner: The owner of the run's data: text of 1 to 200 characters, which never changes.
                Child runs have the same owner. The model does not see it. Default: no owner.
            key: Your own name for the run, such as a request id: text of 1 to 200 characters. In
                a store, the same key of the same owner and agent gives the same run: if there is
                one, no other begins, and this returns its result. It continues if it was left or
                its model failed, and outlives the task that awaits this: `Run.cancel` ends it.

        Raises:
            UsageError: The task is blank, an argument is of a wrong type, a tool needs approval or
                an answer that the run can't get, or `key` is passed without a store.
            KeyTaken: The run with this key has another task.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled by `Run.cancel`.
            StoreError: The log could not be written. The written part can be resumed.
        """
        from callslip._runtime.driver import drive

        check_loop()
        askers = checked_askers(self, approve, answer)
        known = Known(check_known("owner", owner), check_known("key", key))
        opened = partial(
            new_session, self, task, deps=deps, limits=limits, messages=messages, askers=askers
        )
        if key is not None:
            return await join(self, partial(begin_on_loop, self, task, known, opened), deps, askers)
        # Not by `drive_async`: every coroutine in between costs time at every await.
        with opened(known=known) as session:
            await drive(session)
            return session.result()

    @knows_names("run_sync")
    def run_sync(
        self,
        task: Content,
        *,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        approve: Approver | None = None,
        answer: Answerer | None = None,
        owner: str | None = None,
        key: str | None = None,
    ) -> RunResult[AnswerT]:
        """Run a task to its end, in this thread. Use `await agent.run(…)` in async functions.

        A running event loop in this thread stops meanwhile. Outside of notebooks, this
        emits a `RuntimeWarning`.

        The arguments are the same as for `run`. A sync `approve` or `answer` is called in this
        thread, unless the run or the tool has a time limit.

        Raises:
            UsageError: It was called inside a tool; or as for `run`.
            ProtocolError: As for `run`, like the other exceptions.
            KeyboardInterrupt: Ctrl-C was pressed. The exception carries the run as `.run`. A run
                with a key can continue, any other is cancelled.
        """
        check_may_block("run_sync", "run")
        askers = checked_askers(self, approve, answer)
        known = Known(check_known("owner", owner), check_known("key", key))
        opened = partial(
            new_session, self, task, deps=deps, limits=limits, messages=messages, askers=askers
        )
        if key is not None:
            return join_sync(self, partial(begin_sync, self, task, known, opened), deps, askers)
        return drive_sync(opened(known=known))

    def as_tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: NeedsApproval = False,
        concurrency: int | None = None,
    ) -> AgentTool:
        """Return a tool with which other agents, of any protocol, delegate tasks to this one.

        Each call is a child run of this agent. The result of the call is the value of that run; a
        run that fails is a failed call.

        Args:
            name: The name of the tool. Default: the name of the agent.
            description: The description for the model: the kind of tasks that the agent is for.
            needs_approval: As for `tool`.
            concurrency: The number of concurrent child runs of this tool; `None` for no limit.

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

    _python_tool = cached_property(lambda self: python_tool(self, Agent))

    @cached_property
    def _last_setup(self) -> RunSetup:
        """The setup at the last level, without tools that start child runs."""
        return RunSetup(self, delegates=False, agents=False)

    @cached_property
    def _first_setup(self) -> RunSetup:
        """The setup with tools that start child runs, although the agent's limits admit none."""
        return RunSetup(self, delegates=self.delegate, agents=True)

    def _setup_at(self, levels: int | None) -> RunSetup:
        """Return the setup of a run with so many levels of child runs; `None` for no limit."""
        if levels == 0:
            return self._last_setup
        return self._first_setup if self.limits.depth == 0 else self._setup

    def _in_effect(self) -> Agent[AnswerT]:
        """Return the agent that an override puts in the place of this one; this one without."""
        return in_effect(self)

    @cached_property
    def _for_tasks(self) -> Agent[Any]:
        """The agent for tasks that a run of this one delegates: their answers have no type."""
        if self._answers.schema is None and not self._answers.are_checked:
            return self
        twin: Agent[Any] = copy(self)
        for name in ("_last_setup", "_first_setup", "_for_tasks", "_own_waiting", "_own_deps"):
            twin.__dict__.pop(name, None)
        twin._answers = Answers()
        twin._setup = RunSetup(
            twin, delegates=self.delegate and self.limits.depth != 0, agents=True
        )
        twin.system_prompt = twin._setup.system_prompt
        return twin

    def _required_store(self) -> TicketStore:
        if self.store is None:
            raise UsageError(
                "this agent has no store to resume runs from: pass one, as in "
                "Agent(…, store='runs.sqlite')"
            )
        return self.store

    def _check_continues(self, run: Run) -> None:
        """Check that this agent can take the next turn of a run that no driver works on.

        Raises:
            UsageError: This agent does not take all calls of the run.
        """
        run._core.adopt(self._in_effect()._setup_at(run._levels).native, goes_on=True)

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
        return agent_for_role(self, role)

    @property
    def _waits_for(self) -> Waiting:
        """The tools with calls that wait for a person: of this agent, or agents it can start."""
        return waiting_tools(self) if is_any_in_effect() else self._own_waiting

    @cached_property
    def _own_waiting(self) -> Waiting:
        return waiting_tools(self)

    @property
    def _needs_deps(self) -> str | None:
        """Which function needs the deps of a run: of this agent, or agents it can start."""
        return needed_deps(self) if is_any_in_effect() else self._own_deps

    @cached_property
    def _own_deps(self) -> str | None:
        return needed_deps(self)

    @property
    def _passed(self) -> dict[str, Any]:
        """The options as the program has passed them, to this agent or to one like it."""
        return {**self._given, "tools": self._tools.given}

    def __copy__(self) -> Agent[AnswerT]:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Agent[AnswerT]:
        return deep_copy(self, self._passed, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return agent_of_options, (type(self), options_to_pickle(self._passed))

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, protocol={self.protocol.name!r})"
