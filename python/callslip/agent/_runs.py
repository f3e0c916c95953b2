"""The methods of `Agent` that start, stream or resume runs, except `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from callslip._base.option_names import knows_names
from callslip._base.options import check_known, check_run_id
from callslip._runtime.background import start_task
from callslip._runtime.differences import check_run, check_store
from callslip._runtime.drive import drive_async, drive_sync
from callslip._runtime.handed_over import handed_over
from callslip._runtime.joined import begun_run
from callslip._runtime.kept_run import DrivenRun, open_left, open_or_follow
from callslip._runtime.keyed import begin_on_loop
from callslip._runtime.known import Known
from callslip._runtime.opening import open_in_thread
from callslip._runtime.questions import NOBODY, Askers
from callslip._runtime.resume_all import resume_all, resume_all_sync
from callslip._runtime.sessions import new_session, resumed_session, said_session
from callslip._runtime.sync_stream import SyncStream
from callslip._threads.current_loop import check_loop, is_in_loop, is_in_trio
from callslip.errors import UsageError
from callslip.parts import Content
from callslip.runs import Run, RunResult
from callslip.runs._conversation import check_message
from callslip.runs._result import AnswerT
from callslip.store import TicketStore
from callslip.tools._context import check_may_block, not_in_a_tool

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip._runtime.stream import RunStream
    from callslip.agent._agent import Agent
    from callslip.approval import Answerer, Approver
    from callslip.limits import Limits

__all__ = ["AgentRuns"]


class AgentRuns(Generic[AnswerT]):
    """The methods of `Agent` that start, stream and resume runs."""

    @property
    def _agent(self) -> Agent[AnswerT]:
        return cast("Agent[AnswerT]", self)

    def _refuses_next(self, run: Run[Any]) -> Exception | None:  # noqa: ARG002
        """Return why a run ends before its model is asked again: of `OneMoveAgent` alone."""
        return None

    @overload
    def start(
        self,
        task: Content,
        *,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        owner: str | None = None,
        key: str | None = None,
    ) -> Run[AnswerT]: ...

    @overload
    def start(
        self,
        *,
        run: str,
        say: Content | None = None,
        deps: object = None,
        key: str | None = None,
    ) -> Run[AnswerT]: ...

    @knows_names("start")
    def start(
        self,
        task: Content | None = None,
        *,
        run: str | None = None,
        say: Content | None = None,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        owner: str | None = None,
        key: str | None = None,
    ) -> Run[AnswerT]:
        """Start a run in a separate task, and return it immediately.

        The run works in the background, on the running event loop; you need not watch it.
        `await run` waits for its result, and `run.watch()` passes its events to any number of
        watchers. If the loop ends before the run, as with `asyncio.run`, a run without a store is
        cancelled; a stored run is left, and can be resumed.

        Args:
            task: The task of a new run: text, or a list of texts, images and files.
            run: The id of a run of the store, in place of a task. It is resumed, or takes the next
                turn of the conversation. If this process, another process with the same database,
                or a queue already has the run, it continues there and is followed here.
            say: A user message for that run. As with `Run.send`, the driver of the run receives it;
                if that driver leaves the run before it has read the message, the run continues
                here.
            deps: As for `run`.
            limits: As for `run`.
            messages: As for `run`.
            owner: As for `run`.
            key: As for `run`; if there is a run with this key, it is returned, and continues if it
                has not finished, or if its model failed. With `run=`, the key of the message: a
                message with a key that the run has is not added again.

        Raises:
            KeyTaken: As for `run`.
            UsageError: No event loop is running, an argument is of a wrong type, or this was called
                inside a tool; or as for `resume`.
            StoreError: The run cannot be written down; or as for `resume`.
        """
        _check_on_loop()
        not_in_a_tool("start", "run")
        known = Known(check_known("owner", owner), check_known("key", key))
        if _check_start(task, run, say, has_options=any((limits, messages, owner))):
            return self._start_kept(cast("str", run), say, deps, key)
        content = cast("Content", task)
        opened = partial(
            new_session, self._agent, content, deps=deps, limits=limits, messages=messages
        )
        if key is None:
            begun = opened(known=known)
            start_task(begun)
            return begun.run
        begin = partial(begin_on_loop, self._agent, content, known, opened)
        return begun_run(self._agent, begin, deps, NOBODY)

    def _start_kept(
        self, run_id: str, message: Content | None, deps: object, key: str | None = None
    ) -> Run[AnswerT]:
        """Start a run of the store, or send the message to the run that is in progress."""
        if key is not None and message is None:
            raise UsageError("expected key= of a task, or of say=…: got neither")
        said = None if message is None else check_message(message, key)
        opened = partial(said_session, self._agent, run_id, said, deps)
        found = open_or_follow(self._agent, run_id, said, deps, opened)
        if isinstance(found, DrivenRun):
            found.see_to_message()
        else:
            start_task(found)
        return found.run

    def _resumed(self, run_id: str, deps: object, askers: Askers) -> RunSession:
        store = self._agent._in_effect()._required_store()
        opened = partial(resumed_session, self._agent, run_id, deps, askers=askers)
        return open_left(store, run_id, opened)

    @overload
    def stream(
        self,
        task: Content,
        *,
        children: bool = False,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        approve: Approver | None = None,
        answer: Answerer | None = None,
        owner: str | None = None,
    ) -> RunStream[AnswerT]: ...

    @overload
    def stream(
        self,
        *,
        run: str,
        say: Content | None = None,
        children: bool = False,
        deps: object = None,
        approve: Approver | None = None,
        answer: Answerer | None = None,
    ) -> RunStream[AnswerT]: ...

    @knows_names("stream")
    def stream(
        self,
        task: Content | None = None,
        *,
        run: str | None = None,
        say: Content | None = None,
        children: bool = False,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        approve: Approver | None = None,
        answer: Answerer | None = None,
        owner: str | None = None,
    ) -> RunStream[AnswerT]:
        """Run a task and stream its events.

        Use it as `async with agent.stream(…) as run:` and then `async for event in run: …`. The
        items are the `Event`s of the log, `Delta`s of replies that are still arriving, and
        `Progress` that tools report. The iteration raises the exception of a run that failed. The
        stream applies backpressure. Leaving the block early cancels the run.

        Args:
            task: As for `start`.
            run: As for `start`. The earlier events of the run are not streamed. Leaving the block
                early doesn't stop the run if another driver works on it.
            say: As for `start`.
            children: Whether the events of child runs are streamed too, without deltas; see
                `Event.run_id`. Their tickets that are awaiting approval are streamed in any case.
            deps: As for `run`.
            limits: As for `run`.
            messages: As for `run`.
            approve: As for `run`; it is not called for a run that another driver has. Default:
                call `run.approve(…)` or `run.deny(…)`.
            answer: As for `approve`. Default: call `run.answer(…)`.
            owner: As for `run`.

        Raises:
            UsageError: An argument is of a wrong type; or as for `resume`, when it is entered.
            StoreError: The run cannot be written down; or as for `resume`, when it is entered.
        """
        from callslip._runtime.stream import RunStream

        askers = Askers.of(approve, answer)
        known = Known(check_known("owner", owner))
        if _check_start(task, run, say, has_options=any((limits, messages, owner))):
            said, run_id = None if say is None else check_message(say), cast("str", run)
            read = partial(said_session, self._agent, run_id, said, deps, askers=askers)
            found = partial(open_or_follow, self._agent, run_id, said, deps)
            return RunStream(lambda attach: found(lambda: attach(read())), children=children)
        session = new_session(
            self._agent,
            cast("Content", task),
            deps=deps,
            limits=limits,
            messages=messages,
            askers=askers,
            known=known,
        )
        return RunStream(session, children=children)

    @overload
    def stream_sync(
        self,
        task: Content,
        *,
        children: bool = False,
        deps: object = None,
        limits: Limits | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        approve: Approver | None = None,
        answer: Answerer | None = None,
        owner: str | None = None,
    ) -> SyncStream[AnswerT]: ...

    @overload
    def stream_sync(
        self,
        *,
        run: str,
        say: Content | None = None,
        children: bool = False,
        deps: object = None,
        approve: Approver | None = None,
        answer: Answerer | None = None,
    ) -> SyncStream[AnswerT]: ...

    def stream_sync(self, task: Content | None = None, **options: Any) -> SyncStream[AnswerT]:
        """Run a task and stream its events to synchronous code: `for event in …: …`.

        The arguments and the items are the same as for `stream`. The run works on an event loop in
        another thread. It begins with the first item, and is cancelled if the iteration is left
        early.

        Raises:
            UsageError: It was called inside a tool; or as for `stream`.
            StoreError: As for `stream`.
        """
        check_may_block("stream_sync", "stream")
        return SyncStream(self.stream(cast("Content", task), **options))

    async def resume(
        self,
        run_id: str,
        *,
        deps: object = None,
        approve: Approver | None = None,
        answer: Answerer | None = None,
    ) -> RunResult[AnswerT]:
        """Resume a run of the store, on the caller's event loop.

        Completed model and tool calls are not repeated. A call that was in progress when its
        process ended is treated according to the `effect` of its tool. The run keeps its prompt,
        its instructions and its limits. A cancelled run, and a run that ended because its model
        failed, continue too; for any other finished run the result is returned again.

        Args:
            run_id: The id of the run.
            deps: As for `run`. They are not kept with the run, so pass them again.
            approve: As for `run`.
            answer: As for `run`.

        Raises:
            UsageError: This agent has no store; or the run still has work to do, but its protocol,
                tools or `returns` differ from this agent's (see `hand_over`); or its answer is not
                of the type in `returns`.
            StoreError: There is no such run, it cannot be read, or another driver works on it.
            ProtocolError: As for `run`, like the other exceptions.
        """
        check_loop()
        opened = partial(self._resumed, run_id, deps, Askers.of(approve, answer))
        return await drive_async(await open_in_thread(opened))

    def resume_sync(
        self,
        run_id: str,
        *,
        deps: object = None,
        approve: Approver | None = None,
        answer: Answerer | None = None,
    ) -> RunResult[AnswerT]:
        """Resume a run of the store, in this thread. As `resume`.

        Raises:
            UsageError: It was called inside a tool; or as for `resume`.
        """
        check_may_block("resume_sync", "resume")
        return drive_sync(self._resumed(run_id, deps, Askers.of(approve, answer)))

    async def hand_over(
        self,
        run: Run[Any],
        *,
        say: Content | None = None,
        deps: object = None,
        limits: Limits | None = None,
    ) -> RunResult[AnswerT]:
        """Hand the conversation of a run over to this agent; protocol and tools may differ.

        A new run of this agent begins. It sees the other run's conversation as text, in order: user
        messages, calls with their outcomes, refused replies and answers. It does not see the
        thoughts of the model or the conversations of child runs, only their results. A result
        longer than `Limits.result_bytes` is truncated with a visible mark. The other run does not
        change, and may be in any state: a call without an outcome is shown as such, and is not made
        again. The new run has the owner of the other run, or inside a tool the owner of the calling
        run. To continue the same run with another model, call `resume`.

        Args:
            run: The run to hand over, of any agent; or one that was read from a store.
            say: The task of the new run. Default: the last message of the user.
            deps: As for `run`.
            limits: As for `run`.

        Raises:
            UsageError: `run` is no `Run`, or `say` is blank or not text; or it is not passed,
                and the run was compacted after a later message of the user; or as for `run`.
            ProtocolError: As for `run`, like the other exceptions.
        """
        check_loop()
        task, given = handed_over(self._agent, run, say, limits)
        return await self._agent.run(task, deps=deps, limits=limits, **given)

    def hand_over_sync(
        self,
        run: Run[Any],
        *,
        say: Content | None = None,
        deps: object = None,
        limits: Limits | None = None,
    ) -> RunResult[AnswerT]:
        """Hand the conversation of a run over to this agent, in this thread. As `hand_over`.

        Raises:
            UsageError: It was called inside a tool; or as for `hand_over`.
        """
        not_in_a_tool("hand_over_sync", "hand_over")
        task, given = handed_over(self._agent, run, say, limits)
        return self._agent.run_sync(task, deps=deps, limits=limits, **given)

    def check(self, run_or_store: Run[Any] | TicketStore, /) -> list[str]:
        """Return the reasons why this agent can't continue runs, as text. Runs are not changed.

        A run keeps the tools, the protocol and the type of the answer that it was started with.
        An agent can continue it if each call that those tools allow is valid and means the same
        with the agent's own. Call this before a deploy, with the new agent.

        Args:
            run_or_store: A run: each difference is returned, including differences of open child
                runs. Or a store: one text for each open run of this agent's name that cannot
                continue.

        Returns:
            The differences, each with a way out; empty if everything can go on.

        Raises:
            UsageError: It is neither a run nor a store.
            StoreError: The store cannot be read.
        """
        if isinstance(run_or_store, Run):
            return check_run(self._agent, run_or_store)
        if isinstance(run_or_store, TicketStore):
            return check_store(self._agent, run_or_store)
        raise UsageError(
            f"expected a run or a store to check: got {type(run_or_store).__name__}; pass "
            "store.run(run_id), or the store for all open runs"
        )

    async def resume_all(
        self, *, at_once: int = 32, deps: object = None
    ) -> dict[str, RunResult[AnswerT] | Exception]:
        """Resume all unfinished runs of this agent's name that no driver works on.

        Args:
            at_once: The number of concurrent runs, 1 or more.
            deps: As for `resume`, for each of the runs.

        Returns:
            For each run id, oldest first, the result or the exception of `resume`. A run that fails
            does not stop the others.

        Raises:
            UsageError: `at_once` is less than 1, or this agent has no store.
            StoreError: The store cannot be read.
        """
        return await resume_all(self._agent, deps, at_once)

    def resume_all_sync(self, *, deps: object = None) -> dict[str, RunResult[AnswerT] | Exception]:
        """Resume all unfinished runs in this thread, one after the other. As `resume_all`.

        Raises:
            UsageError: It was called inside a tool; or as for `resume_all`.
        """
        check_may_block("resume_all_sync", "resume_all")
        return resume_all_sync(self._agent, deps)


def _check_on_loop() -> None:
    """Check that a run can be started in a separate task.

    Raises:
        UsageError: No event loop of asyncio is running.
    """
    if is_in_trio():
        check_loop()
    if not is_in_loop():
        raise UsageError(
            "expected a running event loop: got none; call run_sync or stream_sync, or call "
            "start inside an async function"
        )


def _check_start(
    task: Content | None, run: str | None, say: Content | None, *, has_options: bool
) -> bool:
    """Whether a run of the store is to continue, and no new run is to be started.

    Raises:
        UsageError: The arguments are for both, or for neither.
    """
    if run is None:
        if task is None:
            raise UsageError("expected a task, or run=… with the id of a run: got neither")
        if say is not None:
            raise UsageError("expected say= with run=…: got a task; pass the message as the task")
        return False
    if task is not None:
        raise UsageError("expected a task or run=…: got both; pass a message to a run as say=…")
    if has_options:
        raise UsageError(
            "the run keeps its owner, limits and messages: pass limits and messages to a task"
        )
    check_run_id(run)
    if say is not None:
        check_message(say)
    return True
