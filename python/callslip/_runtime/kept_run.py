"""Runs of a store that are asked for by their id: opened to be driven, or followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from callslip._runtime.opening import open_reachable
from callslip.errors import DrivenElsewhere
from callslip.runs._conversation import check_driven_deps, send_to_driver
from callslip.runs._elsewhere import Told, tell, to_text
from callslip.runs._run import run_under_way

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip.agent import Agent
    from callslip.parts import Said
    from callslip.runs import Run
    from callslip.store import TicketStore

__all__ = ["DrivenRun", "open_or_follow"]


class DrivenRun(NamedTuple):
    """A run that another driver has.

    Attributes:
        run: The run.
        after: The `seq` of its last event before it was told the message.
    """

    run: Run
    after: int


def open_or_follow(
    agent: Agent,
    run_id: str,
    said: Said | None,
    deps: object,
    opened: Callable[[], RunSession],
) -> RunSession | DrivenRun:
    """Open a run to be driven here; or, where another driver has it, tell it the message.

    Args:
        agent: The agent, or the one that an override puts in its place.
        run_id: The id of the run.
        said: The message of the user; `None` for none.
        deps: For the tools.
        opened: Opens the run with the message.

    Raises:
        UsageError: `deps` is passed with a message to a run that a driver has; or as for `opened`.
        StoreError: The run cannot be read, or the message cannot be written down.
    """
    store = agent._in_effect()._required_store()
    under_way = run_under_way(run_id)
    if under_way is not None and under_way._is_in_store(store):
        after = under_way.seq
        if said is None or send_to_driver(under_way, said, deps) is not None:
            return DrivenRun(under_way, after)
    try:
        return open_reachable(store, run_id, opened)
    except DrivenElsewhere as error:
        if store._shared is None:
            raise
        return _follow(agent, store, run_id, said=said, deps=deps, why=error)


def _follow(
    agent: Agent,
    store: TicketStore,
    run_id: str,
    *,
    said: Said | None,
    deps: object,
    why: DrivenElsewhere,
) -> DrivenRun:
    run = store.run(run_id)
    after = run.seq
    if run._driver is None:
        # Its agent reads the answer, and does not continue it here.
        run._agent, run._left = agent, why
    if said is not None:
        check_driven_deps(deps)
        assert store._shared is not None
        tell(run, store._shared, Told("say", body=to_text(said)))
    return DrivenRun(run, after)
