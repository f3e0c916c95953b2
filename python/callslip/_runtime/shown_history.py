"""The part of a run's messages that its model is shown, where no policy function chooses it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from callslip._base.failure import one_line
from callslip._core import longest_shown
from callslip._runtime.reported_usage import core_usage, reported_counts
from callslip._threads import pool
from callslip.errors import ModelError
from callslip.history._history import Cut, History, Transcript
from callslip.history._room import Plan, Room, reply_room
from callslip.history._summary import Summarize, summary_of
from callslip.models._context import TokenCounter, message_tokens
from callslip.models._direct import whole_reply
from callslip.models._parts import taken_messages

if TYPE_CHECKING:
    from callslip import _core
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip.models._reply import Messages
    from callslip.runs import Run

__all__ = ["ShownHistory", "policy_history"]

_NEAR = 0.9


class ShownHistory:
    """The messages of a run that fit the context of its model.

    Args:
        run: The run.
        agent: The agent that works on it.

    Attributes:
        count: Counts tokens.
    """

    __slots__ = ("_core", "_cut", "_model", "_room", "_run", "_summarize", "_transcript", "count")

    def __init__(self, run: Run, agent: DrivenAgent) -> None:
        self._run = run
        self._core = core = run._core
        model, history = agent._model, agent.history
        self._model = model
        self.count: TokenCounter = TokenCounter(model.count_tokens)
        self._transcript = Transcript(
            core.short,
            examples=core.examples,
            lists=agent.protocol.native.lists_tickets,
            count=self.count,
        )
        self._summarize = history if isinstance(history, Summarize) else None
        reply = agent._options.get("max_tokens")
        self._room = Room(
            self._transcript,
            self.count,
            context=model.context,
            longest=lambda: longest_shown(core),
            reply=reply if isinstance(reply, int) else None,
            summarize=self._summarize,
        )
        self._cut = _cut_of(run)

    def choose(self, messages: Messages) -> Messages:
        """Return the messages that the model is shown; `messages` itself if that is all."""
        messages = self._taken(messages)
        self._transcript.read(messages)
        if not self._cut.results:
            return messages
        return self._transcript.show(self._cut, self._transcript.exchange_of(self._core.said_at))

    def _taken(self, messages: Messages) -> Messages:
        return taken_messages(messages, self._model.parts) if self._core.has_parts else messages

    @property
    def is_ample(self) -> bool:
        """Whether nothing is to be left out now, as far as that is seen without counting."""
        return self._room.is_ample(self._taken(self._run._sent_messages))

    def is_near_limit(self, reply: int | None) -> bool:
        """Whether a request takes nine tenths of the context or more; false if that is not known.

        Args:
            reply: The tokens that a reply may have; `None` if that is not known.
        """
        context = self._model.context
        if context is None:
            return False
        shown = self.choose(self._run._sent_messages)
        tokens = sum(message_tokens(one, self.count) for one in shown)
        return tokens + reply_room(context, reply) >= _NEAR * context

    def plan(self, *, is_full: bool = False) -> Plan | None:
        """Return what is to be left out now; `None` if nothing is.

        Args:
            is_full: Whether the model has refused what is shown, because it is too long.
        """
        return self._room.plan(
            self._taken(self._run._sent_messages), self._cut, self._core.said_at, is_full=is_full
        )

    def leave_out(self, session: RunSession, plan: Plan, error: str | None = None) -> bool:
        """Carry out a plan without a summary. Returns whether the run has taken it.

        Args:
            session: The session of the run.
            plan: The plan.
            error: The failure that made it necessary, or that of the summary.
        """
        return self._record(session, plan.cut, result_bytes=plan.result_bytes, error=error)

    async def make_room(self, session: RunSession) -> None:
        """Leave out what does not fit the context of the model, before it is asked."""
        is_changed = False
        while True:
            # The model's own count may take a while.
            plan = await pool.in_thread(self.plan) if self.count.is_exact else self.plan()
            if plan is None:
                break
            is_changed = True
            if not plan.summarized:
                is_done = self.leave_out(session, plan)
            else:
                is_done = await self.summarize(session, plan)
            if not is_done:
                break
        if is_changed and session.commits is not None:
            await session.commits.written_async(self._core)

    def make_room_sync(
        self, session: RunSession, wait: Callable[[Coroutine[Any, Any, bool]], bool]
    ) -> bool:
        """Do as `make_room`. Returns whether there is something to be written down.

        Args:
            session: The session of the run.
            wait: Runs a coroutine on the private loop, and waits for its result.
        """
        is_changed = False
        while (plan := self.plan()) is not None:
            is_changed = True
            if not plan.summarized:
                is_done = self.leave_out(session, plan)
            else:
                is_done = wait(self.summarize(session, plan))
            if not is_done:
                break
        return is_changed

    async def summarize(self, session: RunSession, plan: Plan) -> bool:
        """Carry out a plan with a summary. If there is none, exchanges are left out all the same.

        Returns:
            Whether the run has taken it.
        """
        assert self._summarize is not None
        cut, turn = plan.cut, self._core.turn
        request = self._summarize.request(self._core.task, cut.summary, plan.summarized)
        error, usage = None, None
        try:
            reply = await whole_reply(self._summarize._call, request)
            usage = None if reply.usage is None else core_usage(reported_counts(reply.usage))
            summary = summary_of(reply.text)
            if not summary:
                raise ModelError(  # noqa: TRY301
                    "expected a summary: got an empty reply; pass another model to Summarize"
                )
        except Exception as failure:  # noqa: BLE001  # the run does not end because of it
            error = f"no summary: {one_line(session.requests.failure_words(failure))}"
        else:
            cut = replace(cut, summary=summary)
        # A time limit may have ended the turn.
        if not session.is_current_turn(turn):
            return False
        return self._record(session, cut, error=error, usage=usage)

    def _record(
        self,
        session: RunSession,
        cut: Cut,
        *,
        result_bytes: int | None = None,
        error: str | None = None,
        usage: _core.Usage | None = None,
    ) -> bool:
        session.publish_events(
            self._core.shorten_history(
                cut.exchanges,
                cut.results,
                session.now(),
                result_bytes=result_bytes,
                summary=cut.summary,
                error=error,
                usage=usage,
            )
        )
        if result_bytes is not None:
            self._run._reads.messages.forget_last()
            self._room.forget()
        # The run may have ended meanwhile.
        self._cut = _cut_of(self._run)
        return self._cut == cut


def policy_history(run: Run, agent: DrivenAgent) -> History:
    """Return the history of a run, whose messages a policy function chooses."""
    policy, core = agent.history, run._core
    assert callable(policy)
    lists = agent.protocol.native.lists_tickets
    return History(
        policy,
        core.short,
        examples=core.examples,
        tickets=core.ticket_list if lists else None,
        count=TokenCounter(agent._model.count_tokens),
    )


def _cut_of(run: Run) -> Cut:
    shortened = run._core.shortened
    if shortened is None:
        return Cut()
    return Cut(shortened.exchanges, shortened.results, shortened.summary)
