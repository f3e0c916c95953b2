"""The protocols, one file each, and the list of their names."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

__all__ = ["DEFAULT_PROTOCOL", "PROTOCOL_NAMES", "SERVED_PROTOCOLS", "ProtocolName"]

ProtocolName: TypeAlias = Literal["ticket", "chatty", "react", "native"]

PROTOCOL_NAMES: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)
DEFAULT_PROTOCOL: Final = "react"
SERVED_PROTOCOLS: Final[tuple[ProtocolName, ...]] = ("react", "chatty", "native")
"""The protocols in which one request is one turn."""
