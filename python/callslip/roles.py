"""Roles: the settings of agents that are spawned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip._base.option_names import knows_names_of_class
from callslip.limits import check_limits
from callslip.models._call import ModelCall
from callslip.protocols import find_protocol
from callslip.tools._toolbox import Toolbox

if TYPE_CHECKING:
    from callslip.limits import Limits
    from callslip.models._reply import Model
    from callslip.openapi import OpenAPI
    from callslip.protocols import Protocol, ProtocolName

__all__ = ["Role"]


@knows_names_of_class(
    {
        "instructions": "an Agent(…, instructions=…) in place of the Role",
        "name": "the name as the key in roles={…}",
        "prompt": "an Agent(…, instructions=…) in place of the Role",
        "system_prompt": "an Agent(…, instructions=…) in place of the Role",
    }
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The settings of an agent that is spawned for a role (chatty).

    The spawning agent's settings replace those that are `None`, and its instructions apply.

    Attributes:
        model: The model.
        protocol: The protocol.
        tools: The tools.
        limits: The limits of each run.

    Raises:
        UsageError: A setting is of a wrong type.
        ToolError: A tool cannot be offered to the model.
    """

    model: Model | None = None
    protocol: Protocol | ProtocolName | None = None
    tools: Sequence[object] | OpenAPI | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            ModelCall(self.model)
        if self.protocol is not None:
            find_protocol(self.protocol)
        if self.tools is not None:
            Toolbox(self.tools)
        if self.limits is not None:
            check_limits(self.limits)
