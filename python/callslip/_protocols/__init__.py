"""The protocols, one file each, and the list of their names."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

__all__ = ["DEFAULT_PROTOCOL", "PROTOCOL_NAMES", "ProtocolName"]

ProtocolName: TypeAlias = Literal["ticket", "chatty", "react", "native"]

PROTOCOL_NAMES: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
DEFAULT_PROTOCOL: Final = "react"
