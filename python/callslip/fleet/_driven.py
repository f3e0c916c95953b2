"""One run that a worker drives, from its claim to its end or its rest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from callslip._base.log import GuardedLogger
from callslip._runtime.drive import drive_async
from callslip._runtime.opening import open_in_thread
from callslip._runtime.sessions import new_session, resumed_session
from callslip._runtime.shared.inbox import Inbox, InboxMessage
from callslip._runtime.shared.remote_children import new_child
from callslip._runtime.shared.tree_position import Place, child_id
from callslip._runtime.start import resume, resume_after_rest
from callslip.errors import NoLease, RunFailed, StoreError, TakenOver, UsageError
from callslip.fleet._agents import Misfit
from callslip.fleet._given import given_from_text
from callslip.runs._feed import feed_of

if TYPE_CHECKING:
    from callslip import _core
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.session import RunSession
    from callslip._runtime.shared.remote_calls import Elsewhere
    from callslip.fleet._agents import KnownAgents
    from callslip.fleet._relay import Relay
    from callslip.parts import Content
    from callslip.runs import Run

__all__ = ["AGAIN", "Claim", "Driven", "ForRuns", "reason_lost"]

_log = GuardedLogger("callslip.fleet")

AGAIN = 10.0
"""Seconds until a run is tried again that a worker could not drive."""

_IN_VAIN = 5
"""Claims in a row that led to nothing, after which a run ends: it may kill its workers."""

_MISFITS = 1_000
"""Runs that are remembered because no agent here can go on with them."""

_SUSPECT = 2
"""The same, after which a worker drives no other such run beside it."""


class Claim(NamedTuple):
    """A run that was claimed.

    Attributes:
        run_id: Its id.
        epoch: Of the claim: a later one of the same run has another.
        agent: The name of its agent.
        given: With what it begins; `None` for a run that has begun.
        claims: Claims in a row that led to nothing, with this one.
        is_over: Whether it has finished.
        shape: That of its protocol and tools; `None` for a run that has not begun.
        above: The place of a child run that is driven apart from the run above it; else `None`.
        at: When a worker claimed it from a queue, in seconds of the monotonic clock.
    """

    run_id: str
    epoch: int
    agent: str
    given: str | None
    claims: int
    is_over: bool
    shape: str | None
    above: str | None
    at: float = 0.0

    @property
    def is_suspect(self) -> bool:
        """Whether it may have ended its workers: two claims before this one led to nothing."""
        return self.claims > _SUSPECT

    def let_go(self, shared: _core.SharedRuns) -> None:
        """Leave the run, unless it was opened: then its session has it."""
        shared.let_go(self.run_id, self.epoch)


class ForRuns(NamedTuple):
    """What the program has for the runs that it drives.

    Attributes:
        deps: For their tools.
        relay: Is passed what their logs do not have; `None` without one.
        spreads: Whether their child runs are given to all workers.
    """

    deps: object
    relay: Relay | None
    spreads: bool


def reason_lost(shared: _core.SharedRuns, run_id: str) -> str:
    """Return why a run that was driven here is lost to it."""
    return shared.why_lost(run_id) or f"another process may have run {run_id} by now"


class Driven:
    """One run that is driven here.

    Args:
        shared: The shared store.
        agents: The agents.
        claim: The run.
        program: What the program has for the run.
    """

    def __init__(
        self,
        shared: _core.SharedRuns,
        agents: KnownAgents,
        claim: Claim,
        program: ForRuns,
    ) -> None:
        self._shared = shared
        self._agents = agents
        self._program = program
        self.claim = claim
        self._begins_at = 0
        self._place = None if claim.above is None else Place.from_text(claim.above)
        self.inbox: Inbox | None = None
        self.run: Run[Any] | None = None
        # The worker sets one of these when it cancels the task.
        self.rests = False
        self.was_lost = False
        self.was_refused = False
        # Why it was left before its end, for those who drive one run.
        self.left: Exception | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it was left for a reason that may be there again at once, and is in no log.

        A function of the program has raised something, or another process drives a child run.
        """
        return not (self.left is None or self.was_refused or self.was_lost)

    @property
    def is_suspect(self) -> bool:
        """Whether the claims before this one led to nothing, and this one has not so far."""
        return self.claim.is_suspect and (
            self.run is None or self.run._core.event_count <= self._begins_at + 1
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is under way here, so that the run may rest."""
        run, inbox = self.run, self.inbox
        return run is not None and inbox is not None and is_at_rest(run, inbox.elsewhere)

    @property
    def is_calling(self) -> bool:
        """Whether a call of a tool is under way here."""
        return self.inbox is not None and is_calling(self.run, self.inbox.elsewhere)

    async def drive(self, after: asyncio.Task[None] | None = None) -> None:
        """Drive the run until it is over, rests or is left, and log what a person should know.

        Args:
            after: An earlier driver of the run in this process, which ends first.
        """
        run_id = self.claim.run_id
        try:
            if after is not None:
                await asyncio.wait([after])
            session = await open_in_thread(self._opened)
            if session is None:
                return
            # Whoever watches in this process is told of the present reply from its beginning.
            feed = feed_of(session.run)
            if self._program.relay is not None:
                feed.relay = self._program.relay
                feed.want_children()
            self.run = session.run
            self._begins_at = session.run._core.event_count
            await drive_async(session)
        except RunFailed:
            # It stands in the log, for those who wait for the result.
            return
        except StoreError as error:
            if not self.rests:
                self.left = error
                self.was_lost = isinstance(error, TakenOver | NoLease)
                _log.warning("run %s was left: %s", run_id, error)
        except Exception as error:  # noqa: BLE001  # of the program's own functions; other runs go on
            self.left = error
            _log.exception("run %s was left before its end", run_id)

    def _opened(self) -> RunSession | None:
        try:
            return self._open()
        except StoreError as error:
            if not isinstance(error, TakenOver | NoLease):
                # A log of a later version, or a damaged one: another worker may be able to read it.
                self._give_back(error)
            raise
        finally:
            # What was not opened would have its lease lengthened for ever.
            self.claim.let_go(self._shared)

    def _open(self) -> RunSession | None:
        """Return the session of the run; `None` if there is nothing to drive.

        Raises:
            StoreError: The run cannot be read, or is lost.
        """
        claim = self.claim
        messages = [InboxMessage(*row) for row in self._shared.inbox(claim.run_id)]
        if claim.is_over and not any(_reopens(message, claim.run_id) for message in messages):
            # It has ended, and its worker has died before it said so; or it was told too late.
            self._agents.store._end_children(claim.run_id)
            self._shared.drop_messages([message.number for message in messages])
            return None
        found = self._fitting_agent()
        if found is None:
            # By its shape: later runs of it are not claimed here any more.
            is_left_alone = self._agents.refuses(claim.agent, claim.shape)
            self._refuse(delay=0.0 if is_left_alone else AGAIN)
            self.left = UsageError(
                f"expected an agent that can go on with run {claim.run_id}: got agents that do not "
                f"take all calls of {claim.agent!r} as it was; pass the earlier one in accept="
            )
            _log.warning("run %s was given back: %s", claim.run_id, self.left)
            return None
        try:
            session = self._session(*found)
        except UsageError as error:
            if claim.given is not None:
                raise
            # A run below it is of another shape than the agents here: others of its own are not.
            self.left = error
            if not self._give_back(error):
                _log.warning("run %s was given back: %s", claim.run_id, error)
            return None
        self._agents.misfits.pop(claim.run_id, None)
        self.inbox = session.beginning.inbox = Inbox(self._shared, claim.run_id, messages)
        self.inbox.is_of_worker = True
        self.inbox.elsewhere.spreads = self._program.spreads
        self.inbox.elsewhere.has_children = claim.above is not None
        # A worker that leaves a run leaves it to others.
        session.kept_while = lambda: True
        return session

    def _give_back(self, why: Exception) -> bool:
        """Give a run back that may fit later. Returns whether it was given back before."""
        misfits, run_id = self._agents.misfits, self.claim.run_id
        is_known = misfits.pop(run_id, None) is not None
        misfits[run_id] = Misfit(str(why), is_known)
        if len(misfits) > _MISFITS:
            # Another worker may have taken it.
            del misfits[next(iter(misfits))]
        self._refuse(delay=AGAIN)
        return is_known

    def _refuse(self, *, delay: float) -> None:
        self.was_refused = True
        self._shared.refuse(self.claim.run_id, self.claim.epoch, delay)

    def _fitting_agent(self) -> tuple[DrivenAgent, int | None] | None:
        """Return the agent, and for a child run the levels that may be below it."""
        claim, agents, place = self.claim, self._agents, self._place
        if place is not None and claim.shape is None:
            return agents.at(place, claim.agent)
        if place is not None and claim.shape is not None:
            return agents.fitting_at(place, claim.run_id, claim.agent, claim.shape)
        if claim.shape is None:
            agent = agents.find(claim.agent)
        else:
            agent = agents.fitting(claim.agent, claim.run_id, claim.shape)
        return None if agent is None else (agent, None)

    def _session(self, agent: DrivenAgent, levels: int | None) -> RunSession:
        claim, store = self.claim, self._agents.store
        at = None if self._place is None else (self._place, levels)
        if claim.given is not None and at is not None:
            session = new_child(agent, claim.run_id, claim.given, at=at, store=store)
            session.run._deps = self._program.deps
            return session
        if claim.given is not None:
            said, limits, known = given_from_text(claim.given)
            task = cast("Content", said if said.parts else said.text)
            return new_session(
                agent,
                task,
                deps=self._program.deps,
                limits=limits,
                known=known._replace(run_id=claim.run_id),
            )
        session = resumed_session(
            agent,
            claim.run_id,
            self._program.deps,
            goes_on=claim.is_over,
            at=at,
            store=store,
        )
        if claim.claims > _IN_VAIN:
            session.beginning.first_commands = _give_up
        elif claim.is_over:
            # It continues with what it was told.
            session.beginning.first_commands = lambda _: []
        else:
            session.beginning.first_commands = resume_after_rest
        return session


def _reopens(message: InboxMessage, run_id: str) -> bool:
    return message.kind in {"say", "resume"} and message.run_id == run_id


def _give_up(session: RunSession) -> list[_core.Command]:
    message = (
        f"{_IN_VAIN} workers in a row ended while they worked on this run, and none of them wrote "
        "anything: look at their logs, then call agent.resume(…)"
    )
    commands = resume(session)
    return commands + session.core.model_failed(message, session.core.turn, session.now())


def is_at_rest(run: Run[Any], elsewhere: Elsewhere) -> bool:
    """Whether nothing is under way here but calls that are awaiting approval.

    Calls and child runs that other workers have are not under way here. Child runs that are driven
    with the run rest too, then.
    """
    under_way = run._core.under_way
    if under_way is None:
        return False
    children = {child.id: child for child in run._children}
    for ticket, is_task in under_way:
        if elsewhere.is_waiting(run.id, ticket):
            continue
        child = children.get(child_id(run.id, ticket)) if is_task else None
        if child is None or child._driver is None or not is_at_rest(child, elsewhere):
            return False
    return True


def is_calling(run: Run[Any] | None, elsewhere: Elsewhere) -> bool:
    """Whether a call of a tool is under way here, in a run or in one of its child runs."""
    if run is None or run.finished:
        return False
    children = {child.id: child for child in run._children}
    for ticket, is_task in run._core.under_way or ():
        if elsewhere.is_waiting(run.id, ticket):
            continue
        if not is_task or is_calling(children.get(child_id(run.id, ticket)), elsewhere):
            return True
    return False
