"""The agents that an agent can start: for its roles, and as tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from callslip._base.options import hint_of_class
from callslip._runtime.calls import enclosing_session
from callslip._runtime.questions import NOBODY, Askers
from callslip.agent._overrides import in_effect
from callslip.errors import UsageError
from callslip.protocols import find_protocol
from callslip.roles import Role

if TYPE_CHECKING:
    from callslip.agent._agent import Agent
    from callslip.approval import Answerer, Approver
    from callslip.protocols import Protocol

__all__ = [
    "Waiting",
    "agent_for_role",
    "agents_of_tree",
    "check_roles",
    "check_waiting",
    "checked_askers",
    "roles_of",
    "waiting_tools",
]


def roles_of(roles: object, agent_type: type[Agent[Any]]) -> dict[str, Agent[Any] | Role]:
    """Return the roles of an agent, which are checked.

    Raises:
        UsageError: They are not a mapping to a `Role` or an agent each.
    """
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise UsageError(
            "expected roles={'Reviewer': Role(…)}, a mapping to a Role or an Agent each: got "
            f"{type(roles).__name__}"
        )
    for name, prepared in roles.items():
        if not isinstance(name, str) or not isinstance(prepared, (Role, agent_type)):
            raise UsageError(
                f"expected a Role or an Agent for each role: got {prepared!r} for {name!r}"
                f"{hint_of_class(prepared) or '; pass Role(…) or Agent(…)'}"
            )
    return dict(roles)


def check_roles(roles: Mapping[str, object], protocol: Protocol, *, delegate: bool) -> None:
    """Raise `UsageError` if there are roles, and no way to spawn agents for them."""
    if roles and not (delegate and protocol.native.spawns_roles):
        raise UsageError(
            "roles are for the chatty protocol with delegation: pass other agents as tools, "
            "tools=[agent.as_tool()]"
        )


def agent_for_role(agent: Agent[Any], role: str) -> Agent[Any]:
    """Return the agent for a role: the one of `roles`, or this one."""
    prepared = agent.roles.get(role)
    if prepared is None:
        return agent
    if not isinstance(prepared, Role):
        return prepared._in_effect()
    known = agent._role_agents.get(role)
    if known is None:
        known = agent._role_agents[role] = _with_role(agent, role, prepared)
    return known


def _with_role(agent: Agent[Any], role: str, prepared: Role) -> Agent[Any]:
    """Return an agent with the settings of a role; this agent's settings are the defaults."""
    protocol = find_protocol(prepared.protocol or agent.protocol)
    spawned: Agent[Any] = agent.replace(
        model=agent.model if prepared.model is None else prepared.model,
        returns=None,
        check_answer=None,
        protocol=protocol,
        tools=agent._tools if prepared.tools is None else prepared.tools,
        limits=prepared.limits or agent.limits,
        store=None,
        name=role,
        delegate=agent.delegate,
        roles=agent.roles if protocol.native.spawns_roles else None,
    )
    # Its runs have the instructions of the run that spawns it.
    spawned._instructions = agent._instructions
    # The agent of a role may spawn agents for all roles.
    spawned._role_agents = agent._role_agents
    return spawned


class Waiting(NamedTuple):
    """The names of tools with calls that wait for a person, of an agent and of agents it can start.

    Attributes:
        approval: A tool that may need approval; `None` if there is none.
        result: A tool with results from outside; `None` if there is none.
    """

    approval: str | None
    result: str | None


def checked_askers(agent: Agent[Any], approve: Approver | None, answer: Answerer | None) -> Askers:
    """Return those who decide for a new run that nobody else can decide for.

    Raises:
        UsageError: It may wait for a decision and has no way to get it; or as for `Askers.of`.
    """
    check_waiting(agent, approve, answer)
    askers = Askers.of(approve, answer)
    # Whether a call with untrusted values needs approval is known only when it is made.
    is_alone = in_effect(agent).store is None and enclosing_session() is None
    return askers.alone() if is_alone else askers


def check_waiting(
    agent: Agent[Any], approve: Approver | None = None, answer: Answerer | None = None
) -> None:
    """Raise `UsageError` if a new run may wait for a decision and has no way to get it."""
    worker = in_effect(agent)
    if worker.store is not None or (approve is not None and answer is not None):
        return
    enclosing = enclosing_session()
    # The run that calls asks for its child runs too.
    above = NOBODY if enclosing is None else enclosing[0].askers
    waiting = worker._waits_for
    if waiting.approval is not None and (approve or above.approve) is None:
        raise UsageError(
            f"the tool '{waiting.approval}' needs approval, but nothing can approve it: pass "
            "approve=…, such as approve=at_terminal, or use agent.stream(…) and call "
            "run.approve(ticket), or pass store=… to the agent, so that "
            "store.run(run_id).approve(ticket) can be called elsewhere"
        )
    if waiting.result is not None and (answer or above.answer) is None:
        raise UsageError(
            f"the tool '{waiting.result}' is answered from outside, but nothing can answer it: "
            "pass answer=…, or use agent.stream(…) and call run.answer(ticket, value), or pass "
            "store=… to the agent, so that store.run(run_id).answer(ticket, value) can be called "
            "elsewhere"
        )


def waiting_tools(agent: Agent[Any]) -> Waiting:
    """Return the tools with calls that wait for a person: of an agent, and agents it can start."""
    tools = [tool for one in agents_of_tree(agent) for tool in one._setup.toolbox]
    return Waiting(
        next((tool.name for tool in tools if tool.needs_approval is not False), None),
        next((tool.name for tool in tools if tool.external), None),
    )


def agents_of_tree(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    """Return an agent and all that it can start, and those that they can start."""
    seen: set[int] = set()
    agents = [agent]
    while agents:
        one = agents.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        agents.extend(agent_for_role(one, role) for role in one.roles)
        for tool in one._setup.toolbox:
            inner: Agent[Any] | None = getattr(tool, "agent", None)
            if inner is not None:
                agents.append(inner._in_effect())
