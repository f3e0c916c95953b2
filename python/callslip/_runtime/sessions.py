"""Sessions for the runs of an agent: new runs, runs of the store, and runs that are continued."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from callslip import _core
from callslip._base.options import check_run_id
from callslip._runtime.calls import enclosing_session
from callslip._runtime.children import check_tree, end_outlived, levels_left, said_below
from callslip._runtime.known import Known, check_root
from callslip._runtime.questions import NOBODY, Askers
from callslip._runtime.run_options import check_deps, check_messages
from callslip._runtime.session import RunSession
from callslip._runtime.shared.inbox import Inbox, InboxMessage
from callslip._runtime.shared.tree_position import Place, new_seal_key
from callslip._runtime.start import resume, start
from callslip.errors import UsageError
from callslip.limits import check_limits
from callslip.parts import Content, Said, read_content
from callslip.runs import Run
from callslip.runs._conversation import run_lock
from callslip.runs._elsewhere import naming
from callslip.runs._feed import feed_of
from callslip.runs._origin import keep_origin
from callslip.runs._refused import naming_unknown
from callslip.runs._told import ToldMessages

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip.limits import Limits
    from callslip.store import TicketStore

__all__ = [
    "continued_session",
    "new_run_id",
    "new_session",
    "resumed_session",
    "said_session",
    "unfinished_session",
]


_UNKNOWN = Known()

_askers: WeakKeyDictionary[Run[Any], Askers] = WeakKeyDictionary()
"""What decides on the calls of runs of this process and answers them, also in their next turns."""


def _keep_askers(session: RunSession, askers: Askers) -> None:
    session.askers = _askers[session.run] = askers
    _core.set_can_ask(session.core, askers.can_approve)


def new_run_id() -> str:
    """Return an id for a run, unique among runs."""
    return os.urandom(8).hex()


def new_session(
    agent: DrivenAgent,
    task: Content,
    *,
    deps: object = None,
    limits: Limits | None = None,
    messages: Sequence[Mapping[str, Any]] = (),
    askers: Askers = NOBODY,
    known: Known = _UNKNOWN,
) -> RunSession:
    """Return the session of a new run. Inside a tool call it is a child of the run that calls.

    Args:
        agent: The agent, or the one that an override puts in its place.
        task: The task.
        deps: For the tools. Default: those of the run that calls.
        limits: The limits. Default: those of the agent.
        messages: An earlier conversation.
        askers: Decide on calls and answer them. Default: as the run that calls.
        known: By what it is known. A child run has the owner of the run that calls.

    Raises:
        UsageError: An argument is of a wrong type, or a child run is given an owner or a key.
        KeyTaken: The store has a run with this key.
        StoreError: The run cannot be written down.
    """
    said, worker = read_content("the task", task), agent._in_effect()
    parent, above, run_id = None, None, known.run_id or new_run_id()
    levels = depth = worker.limits.depth if limits is None else check_limits(limits).depth
    root = run_id
    if (enclosing := enclosing_session()) is not None:
        above, parent = enclosing[0], (enclosing[0].run.id, enclosing[1])
        check_root(known)
        levels, root = levels_left(above.levels, depth), above.root
        deps = above.run._deps if deps is None else deps
        said, askers = said_below(above, said), askers.or_else(above.askers)
    check_deps(worker, deps)
    setup, store = worker._setup_at(levels), worker.store
    core = _core.Run(
        setup.native,
        run_id=run_id,
        agent=worker.name,
        owner=known.owner,
        key=known.key,
        seal_key=new_seal_key(),
        parent=parent,
        above=None if above is None else above.core,
        store=None if store is None else store._native,
        limits=None if limits is None else limits._to_json(),
        messages=check_messages(messages) if messages else None,
        untrusted=isinstance(messages, ToldMessages) and messages.untrusted,
    )
    run = Run(core, run_id, said.text, agent=agent, store=store, deps=deps)
    keep_origin(run, known.owner, known.key)
    session = RunSession(run, worker, setup, start, levels=levels, root=root)
    _stand_below(session, enclosing)
    _keep_askers(session, askers)
    session.beginning.said, session.beginning.inbox = said, _inbox_of(session, above)
    session.beginning.unchecked_task = None if worker._check_task is None else task
    return session


def _stand_below(session: RunSession, enclosing: tuple[RunSession, int] | None) -> None:
    """Put a new run below the calling run, if there is one, and tell its watchers."""
    if enclosing is None:
        return
    above, ticket = enclosing
    above.run._add_child(session.run)
    session.beginning.stand_below(above, ticket)
    feed = above.run._feed
    asks = any(session.agent._waits_for)
    if feed is not None and (feed.wants_children or asks):
        feed_of(session.run).tell(feed)


def _inbox_of(session: RunSession, above: RunSession | None) -> Inbox | None:
    """Return what a new run is told from elsewhere: by the inbox of the run that drives it."""
    store = session.store
    if store is None or store._shared is None:
        return None
    if above is not None and above.store is store:
        return above.beginning.inbox
    return Inbox(store._shared, session.run.id)


def resumed_session(
    agent: DrivenAgent,
    run_id: str,
    deps: object = None,
    *,
    goes_on: bool = False,
    askers: Askers = NOBODY,
    at: tuple[Place, int | None] | None = None,
    store: TicketStore | None = None,
) -> RunSession:
    """Return the session of a run in the agent's store.

    Args:
        agent: The agent.
        run_id: The id of the run.
        deps: For the tools.
        goes_on: Whether the run goes on even if it has finished.
        askers: Decide on calls and answer them. Default: others do.
        at: Where a child run stands that is driven apart from the run above it, and how many levels
            may be below it.
        store: The store. Default: that of the agent.

    Raises:
        UsageError: The agent has no store, or does not take all calls of the run.
        UnknownRun: There is no such run.
        StoreError: The run cannot be read, or another process works on it.
    """
    check_run_id(run_id)
    worker = agent._in_effect()
    store = store or worker._required_store()
    with run_lock(store, run_id), naming_unknown(store._native, run_id):
        core = _core.Run.open(store._native, run_id)
    # Like its other limits, the number of levels is the one that the run was started with.
    levels = core.levels if at is None else at[1]
    core.adopt(worker._setup_at(levels).native, goes_on=goes_on)
    misfit = _misfit(core, worker._setup_at(levels).native)
    if at is not None:
        above = at[0].above
        core.join_apart(len(above), [limits for _, limits in above])
    elif levels is not None:
        # A child run has as many levels left as if this agent had started the run at the top.
        levels = max(0, levels - core.depth)
    setup = worker._setup_at(levels)
    run = Run(core, run_id, core.task, agent=agent, store=store, deps=deps)
    try:
        if goes_on or not core.finished:
            check_deps(worker, deps)
        check_tree(store, core, worker, setup, levels)
        end_outlived(run)
    except BaseException:
        core.release()
        raise
    root = run_id if at is None else at[0].above[-1][0]
    session = RunSession(run, worker, setup, resume, levels=levels, root=root)
    _keep_askers(session, askers)
    session.beginning.place = None if at is None else at[0]
    _take_messages(session, store, misfit)
    return session


def unfinished_session(agent: DrivenAgent, run_id: str, deps: object) -> RunSession | None:
    """Return the session of a run to resume, unless it has ended: it may have been cancelled.

    Raises:
        UsageError: As for `resumed_session`.
        StoreError: As for `resumed_session`.
    """
    session = resumed_session(agent, run_id, deps)
    if not session.core.finished:
        return session
    session.core.release()
    return None


def _take_messages(session: RunSession, store: TicketStore, misfit: UsageError | None) -> None:
    """Take what waits for a run that is resumed: nothing if the agent cannot continue it.

    Raises:
        UsageError: A message of the user waits, and the agent cannot continue the run.
    """
    run_id, shared = session.run.id, store._shared
    messages = [] if shared is None else [InboxMessage(*row) for row in shared.inbox(run_id)]
    if misfit is None:
        if shared is not None:
            session.beginning.inbox = Inbox(shared, run_id, messages)
        return
    if any(message.run_id == run_id and message.kind == "say" for message in messages):
        raise misfit
    session.beginning.only_reads = True
    session.close_if_finished()


def _misfit(core: _core.Run, setup: _core.Setup) -> UsageError | None:
    """Return why an agent cannot continue a finished run, of which it may read the result."""
    if not core.finished:
        return None
    try:
        core.adopt(setup, goes_on=True)
    except UsageError as error:
        return error
    return None


def said_session(
    agent: DrivenAgent,
    run_id: str,
    said: Said | None,
    deps: object = None,
    *,
    askers: Askers = NOBODY,
) -> RunSession:
    """Return the session of a run in the agent's store that continues, with a message or without.

    A run that has finished takes the next turn of the conversation.

    Raises:
        UsageError: As for `resumed_session`.
        StoreError: As for `resumed_session`.
    """
    session = resumed_session(agent, run_id, deps, goes_on=said is not None, askers=askers)
    if said is not None:
        session.beginning.first_commands = partial(_say, said)
    return session


def _say(said: Said, session: RunSession) -> list[_core.Command]:
    core, now = session.core, session.now()
    commands = [] if core.finished else core.resume(now)
    with naming(session.run):
        return commands + core.send(said.text, now, said.parts, said.key)


def continued_session(agent: DrivenAgent, run: Run, commands: list[_core.Command]) -> RunSession:
    """Return the session of a run of this agent that no driver works on.

    Args:
        agent: The agent.
        run: The run.
        commands: The commands that are due because of a message; none to resume the run.

    Raises:
        StoreError: Another process works on the run.
    """
    store = run._store
    if store is not None:
        with run_lock(store, run.id):
            run._core.claim(store._native)
    # A child run keeps its own number of levels, which is smaller than that of its agent.
    levels = run._levels
    run._core.attend()
    worker = agent._in_effect()
    session = RunSession(
        run,
        worker,
        worker._setup_at(levels),
        (lambda _: commands) if commands else resume,
        levels=levels,
        root=run.id,
    )
    _keep_askers(session, _askers.get(run, NOBODY))
    return session
