"""Roles: what agents that are spawned for a role have of their own."""

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
    """What an agent of this role has of its own. What is `None` it has as the one that spawns it.

    Attributes:
        model: Its model.
        protocol: Its protocol.
        tools: Its tools.
        limits: How far its runs may go.
    """

    model: Model | None = None
    protocol: Protocol | ProtocolName | None = None
    tools: Sequence[ToolLike] | OpenAPI | None = None
    limits: Limits | None = None
