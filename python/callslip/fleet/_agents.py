"""The agents that a worker drives runs with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from callslip import _core
from callslip._runtime.run_options import refuse_deps
from callslip._runtime.shared.remote_calls import call_name
from callslip._runtime.shared.remote_children import agent_at
from callslip.agent import Agent
from callslip.agent._roles import agents_of_tree
from callslip.errors import UsageError

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent
    from callslip._runtime.shared.tree_position import Place
    from callslip.store import TicketStore
    from callslip.tools import Tool

__all__ = ["KnownAgents", "Misfit"]


class Misfit(NamedTuple):
    """Why a run was given back.

    Attributes:
        why: The reason.
        is_known: Whether it was given back here before.
    """

    why: str
    is_known: bool


class KnownAgents:
    """Agents by their names, and which begun runs none of them can go on with.

    Args:
        store: The shared store.
        agents: The agents, of different names.
        accept: Earlier versions of them, for the runs that those have begun.

    Attributes:
        store: The shared store.
        refused: Names and shapes of begun runs that none of them can go on with.
        misfits: Runs that were given back, by their ids, the latest last: none of them can go on
            with a run below, or a log cannot be read. These are tried again: the run below may be
            over by then.
        failed: The ids of runs that an exception of the program's functions has left here.

    Raises:
        UsageError: One is no agent, or two have the same name.
    """

    def __init__(
        self, store: TicketStore, agents: Iterable[Agent[Any]], accept: Iterable[Agent[Any]]
    ) -> None:
        self.store = store
        self._agents: dict[str, list[Agent[Any]]] = {}
        for name, given in (("agents", agents), ("accept", accept)):
            if not isinstance(given, Iterable):
                raise UsageError(
                    f"expected {name} as a list of agents: got {given!r}; pass it in a list"
                )
        for agent in agents:
            self._check(agent)
            if agent.name in self._agents:
                raise UsageError(
                    f"expected agents of different names: got two of {agent.name!r}; pass name= to "
                    "Agent, or pass the earlier version in accept="
                )
            self._agents[agent.name] = [self._on_store(agent)]
        for agent in accept:
            self._check(agent)
            if agent.name not in self._agents:
                raise UsageError(
                    f"expected accept= with earlier versions of agents: got {agent.name!r}, which "
                    "is none of agents="
                )
            self._agents[agent.name].append(self._on_store(agent))
        self._fitting: dict[tuple[str, str], Agent[Any]] = {}
        self._calls: dict[str, Tool[..., Any]] = {}
        for present, *_ in self._agents.values():
            self._add_calls(present)
        for _, *earlier in self._agents.values():
            for agent in earlier:
                self._add_calls(agent, is_earlier=True)
        self.refused: set[str] = set()
        self.misfits: dict[str, Misfit] = {}
        self.failed: set[str] = set()

    def _add_calls(self, agent: Agent[Any], *, is_earlier: bool = False) -> None:
        for one in agents_of_tree(agent._in_effect()):
            for tool in one._setup.toolbox:
                if tool.queue is None:
                    continue
                known = self._calls.setdefault(call_name(one.name, tool.name), tool)
                if known is not tool and not is_earlier:
                    raise UsageError(
                        f"expected agents of different names: got two of {one.name!r} with a tool "
                        f"{tool.name!r} for other workers; pass name= to Agent"
                    )

    @staticmethod
    def _check(agent: Agent[Any]) -> None:
        if not isinstance(agent, Agent):
            raise UsageError(f"expected agents: got {type(agent).__name__}; pass Agent(…)")

    def _on_store(self, agent: Agent[Any]) -> Agent[Any]:
        return agent if agent.store is self.store else agent.replace(store=self.store)

    @property
    def names(self) -> list[str]:
        """The names of all agents."""
        return list(self._agents)

    @property
    def known(self) -> list[str]:
        """What this process can take: runs by the names of their agents, and calls of tools."""
        return [*self._agents, *self._calls]

    def check_deps(self, deps: object, queues: Iterable[str] = ()) -> None:
        """Check that there are deps, if a function of an agent or a call of a queue needs them.

        Raises:
            UsageError: There are none.
        """
        if deps is not None:
            return
        taken = frozenset[str | None](queues)
        for versions in self._agents.values():
            for agent in versions:
                if (needing := agent._in_effect()._needs_deps) is not None:
                    refuse_deps(needing, "Fleet")
        for tool in self._calls.values():
            if tool._needs_deps is not None and tool.queue in taken:
                refuse_deps(f"the tool '{tool.name}', which takes {tool._needs_deps}", "Fleet")

    def tool(self, agent: str, tool: str) -> Tool[..., Any] | None:
        """Return a tool whose calls are made here, of an agent or of one below it."""
        return self._calls.get(call_name(agent, tool))

    def at(self, place: Place, agent: str) -> tuple[DrivenAgent, int | None] | None:
        """Return the agent of a new child run, and the levels that may be below it.

        Args:
            place: The place of the child run.
            agent: The name of its agent.
        """
        top = self.find(place.agent)
        return None if top is None else _below(top, place, agent)

    def fitting_at(
        self, place: Place, run_id: str, agent: str, shape: str
    ) -> tuple[DrivenAgent, int | None] | None:
        """Return an agent that can go on with a begun child run, as `fitting`.

        Args:
            place: The place of the child run.
            run_id: Its id.
            agent: The name of its agent.
            shape: That of its protocol and tools.

        Raises:
            StoreError: The run cannot be read.
        """
        if self.refuses(agent, shape):
            return None
        core = _core.Run.load(self.store._native, run_id)
        for top in self._agents.get(place.agent, []):
            if (found := _below(top, place, agent)) is None:
                continue
            worker, levels = found
            try:
                core.adopt(worker._setup_at(levels).native, goes_on=True)
            except UsageError:
                continue
            return found
        self.refused.add(f"{agent} {shape}")
        return None

    def refuses(self, name: str, shape: str | None) -> bool:
        """Whether none of the agents can go on with begun runs of this name and shape."""
        return f"{name} {shape}" in self.refused

    def find(self, name: str) -> Agent[Any] | None:
        """Return the agent of a name; `None` if there is none."""
        found = self._agents.get(name)
        return None if found is None else found[0]

    def version_of(self, name: str, core: _core.Run) -> Agent[Any] | None:
        """Return the version of an agent that a run of it fits; else the present one."""
        versions = self._agents.get(name, [])
        return next((one for one in versions if _fits(one, core)), self.find(name))

    def fitting(self, name: str, run_id: str, shape: str) -> Agent[Any] | None:
        """Return an agent that can go on with a begun run; `None` if there is none.

        Args:
            name: The name of its agent.
            run_id: The id of the run.
            shape: That of its protocol and tools: runs of one shape are alike in this.

        Raises:
            StoreError: The run cannot be read.
        """
        key = name, shape
        if key not in self._fitting and not self.refuses(name, shape):
            core = _core.Run.load(self.store._native, run_id)
            for agent in self._agents.get(name, []):
                if _fits(agent, core):
                    self._fitting[key] = agent
                    break
        found = self._fitting.get(key)
        if found is None:
            self.refused.add(f"{name} {shape}")
        return found


def _fits(agent: Agent[Any], core: _core.Run) -> bool:
    """Whether an agent can go on with a run."""
    try:
        core.adopt(agent._in_effect()._setup_at(core.levels).native, goes_on=True)
    except UsageError:
        return False
    return True


def _below(top: Agent[Any], place: Place, agent: str) -> tuple[DrivenAgent, int | None] | None:
    """Return the agent of this name in a place below another one; `None` if that has another."""
    try:
        found = agent_at(top._in_effect(), place)
    except UsageError:
        return None
    # Another version of the agent at the top may have another agent in that place.
    return found if found[0].name == agent else None
