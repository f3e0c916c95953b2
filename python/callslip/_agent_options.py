"""The options of an agent, and the checks of some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from callslip._answers import AnswerCheck
    from callslip.agent import Agent
    from callslip.history import HistoryPolicy, Summarize
    from callslip.limits import Limits
    from callslip.protocols import Protocol, ProtocolName
    from callslip.roles import Role
    from callslip.sandbox import PythonRunner
    from callslip.store import TicketStore
    from callslip.tools import Tools

__all__ = ["AgentOptions", "history_of", "store_of"]


class AgentOptions(TypedDict, total=False):
    """The options of `Agent` beside `returns`, on which its own type depends."""

    protocol: Protocol | ProtocolName
    check_answer: AnswerCheck | None
    tools: Tools
    limits: Limits | None
    on_limit: Literal["answer", "raise"]
    on_open_tickets: Literal["wait", "cancel"]
    store: TicketStore | str | os.PathLike[str] | None
    name: str
    delegate: bool | None
    python: PythonRunner | bool
    roles: Mapping[str, Agent[Any] | Role] | None
    history: HistoryPolicy | Summarize | None
    grammar: bool
    seed: int | None
    max_tokens: int | None
    stop: Sequence[str]


def history_of(policy: HistoryPolicy | Summarize | None) -> HistoryPolicy | Summarize | None:
    """Return a history policy, which is checked."""
    if policy is not None:
        from callslip.history._history import check_policy

        check_policy(policy)
    return policy


def store_of(store: TicketStore | str | os.PathLike[str] | None) -> TicketStore | None:
    """Return a store, or the store in the file of a path."""
    if store is None:
        return None
    from callslip.store import TicketStore

    return store if isinstance(store, TicketStore) else TicketStore(store)
