"""Agents that take the place of others, in one context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from callslip.errors import UsageError

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["in_effect", "is_any_in_effect", "overridden"]

_stand_ins: ContextVar[Mapping[Agent[Any], Agent[Any]] | None] = ContextVar(
    "callslip_overrides", default=None
)
"""The agents that take the place of others, by those."""


def in_effect(agent: Agent[Any]) -> Agent[Any]:
    """Return the agent that takes the place of this one here; this one if none does."""
    stand_ins = _stand_ins.get()
    return agent if stand_ins is None else stand_ins.get(agent, agent)


def is_any_in_effect() -> bool:
    """Whether any agent takes the place of another here."""
    return bool(_stand_ins.get())


@contextmanager
def overridden(agent: Agent[Any], options: Mapping[str, Any]) -> Iterator[None]:
    """Let an agent with other options take the place of this one, in this context.

    Raises:
        UsageError: `returns` is one of the options.
        TypeError: There is no such option.
    """
    if "returns" in options:
        raise UsageError(
            "override can't change returns, which the agent's callers rely on: use "
            "agent.replace(returns=…)"
        )
    stand_in = in_effect(agent).replace(**options)
    token = _stand_ins.set({**(_stand_ins.get() or {}), agent: stand_in})
    try:
        yield
    finally:
        _stand_ins.reset(token)
