"""Roles: the settings of agents that are spawned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callslip.limits import Limits
    from callslip.models._reply import Model
    from callslip.openapi import OpenAPI
    from callslip.protocols import Protocol, ProtocolName
    from callslip.tools import ToolLike

__all__ = ["Role"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The settings of an agent that is spawned for a role (chatty).

    Anything that is `None` is inherited from the spawning agent, and so are its instructions.

    Attributes:
        model: The model.
        protocol: The protocol.
        tools: The tools.
        limits: The limits of each run.
    """

    model: Model | None = None
    protocol: Protocol | ProtocolName | None = None
    tools: Sequence[ToolLike] | OpenAPI | None = None
    limits: Limits | None = None
