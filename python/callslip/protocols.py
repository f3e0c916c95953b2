"""The protocols, which are the forms of replies."""

from __future__ import annotations

from typing import Final

from callslip._protocols import ProtocolName
from callslip._protocols.chatty import ChattyProtocol
from callslip._protocols.example import Example
from callslip._protocols.native import NativeProtocol
from callslip._protocols.protocol import Protocol
from callslip._protocols.react import ReactProtocol
from callslip._protocols.ticket import TicketProtocol
from callslip.errors import UsageError

__all__ = [
    "ChattyProtocol",
    "Example",
    "NativeProtocol",
    "Protocol",
    "ProtocolName",
    "ReactProtocol",
    "TicketProtocol",
]

_KINDS: Final[dict[str, type[Protocol]]] = {
    kind.name: kind for kind in (TicketProtocol, ChattyProtocol, ReactProtocol, NativeProtocol)
}


TEXT_AS_IT_IS: Final[Protocol] = NativeProtocol()
"""Whatever text comes is the answer, where there are no tools."""


def for_plain_text(protocol: Protocol) -> Protocol:
    """Return a protocol in which plain text is an answer, with the reasoning of another one."""
    return ChattyProtocol(
        reasoning_tags=protocol.reasoning_tags, think_prefilled=protocol.think_prefilled
    )


def find_protocol(protocol: Protocol | ProtocolName) -> Protocol:
    """Return a protocol, or the protocol of a name with its defaults.

    Raises:
        UsageError: There is no such protocol.
    """
    if isinstance(protocol, Protocol):
        return protocol
    kind = _KINDS.get(protocol) if isinstance(protocol, str) else None
    if kind is None:
        *others, last = map(repr, _KINDS)
        expected = f"expected protocol={', '.join(others)} or {last}, or a protocol object"
        if isinstance(protocol, type) and issubclass(protocol, Protocol):
            name = protocol.__name__
            raise UsageError(f"{expected}: got the class {name}; pass {name}()")
        raise UsageError(f"{expected}: got {protocol!r}; pass one of them")
    return kind()
