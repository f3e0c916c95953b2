"""Images and files of messages: which of them a model takes, and what it is sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast, get_args

from callslip._base.options import shown
from callslip.errors import UsageError
from callslip.models._reply import Message, Messages
from callslip.parts import PartKind

__all__ = ["check_parts", "kinds_of", "parts_of", "taken_messages"]

_KINDS: frozenset[PartKind] = frozenset(get_args(PartKind)) - {"file"}


def check_parts(parts: object) -> frozenset[PartKind]:
    """Return the kinds of images and files that a model takes.

    Raises:
        UsageError: They are not such kinds.
    """
    if (
        isinstance(parts, str)
        or not isinstance(parts, Collection)
        or not all(isinstance(kind, str) and kind in _KINDS for kind in parts)
    ):
        known = ", ".join(repr(kind) for kind in sorted(_KINDS))
        raise UsageError(f"expected parts= as a tuple with some of {known}: got {shown(parts)}")
    return cast("frozenset[PartKind]", frozenset(parts))


def parts_of(model: object) -> frozenset[PartKind]:
    """Return the kinds that a model declares in its attribute `parts`; none without one."""
    declared = getattr(model, "parts", None)
    # An attribute of that name may be anything.
    if isinstance(declared, str) or not isinstance(declared, Collection):
        return frozenset()
    return frozenset(kind for kind in _KINDS if kind in declared)


def kinds_of(messages: Messages) -> frozenset[PartKind]:
    """Return the kinds of the parts of messages."""
    return frozenset(part.kind for message in messages for part in message.get("parts", ()))


def taken_messages(messages: Messages, kinds: frozenset[PartKind]) -> Messages:
    """Return messages with those parts only that a model takes; `messages` itself if it can be."""
    has_parts: bool | None = getattr(messages, "has_parts", None)
    if has_parts is None:
        has_parts = any("parts" in message for message in messages)
    return [_taken(message, kinds) for message in messages] if has_parts else messages


def _taken(message: Message, kinds: frozenset[PartKind]) -> Message:
    parts = message.get("parts")
    if parts is None:
        return message
    taken = [part for part in parts if part.kind in kinds]
    kept = {name: value for name, value in message.items() if name != "parts"}
    return {**kept, "parts": taken} if taken else kept
