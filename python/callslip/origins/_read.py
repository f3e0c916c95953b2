"""Origins, read from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from callslip.origins import Origin, OriginKind, Place

__all__ = ["origins_of"]

_KINDS: Final = frozenset(get_args(OriginKind))


def origins_of(written: Mapping[str, Any]) -> dict[str, Origin]:
    """Return the origins of a call as the log has them, by the JSON pointers of its arguments."""
    return {pointer: _origin(items) for pointer, items in written.items()}


def _origin(written: Sequence[Any]) -> Origin:
    """Return an origin of the log: a list without trailing empty items."""
    items = [*written, *[None] * (7 - len(written))]
    kind, where, span, pointer, how, flags, others = items[:7]
    return Origin(
        kind=kind if kind in _KINDS else "unknown",
        where=where or "",
        span=_span(span),
        pointer=pointer,
        how=how or "",
        weak="w" in (flags or ""),
        untrusted="u" in (flags or ""),
        others=tuple(map(_place, others or ())),
    )


def _place(written: Sequence[Any]) -> Place:
    items = [*written, *[None] * (5 - len(written))]
    kind, where, span, pointer, flags = items[:5]
    return Place(
        kind if kind in _KINDS else "unknown",
        where or "",
        _span(span),
        pointer,
        untrusted="u" in (flags or ""),
    )


def _span(written: Sequence[int] | None) -> tuple[int, int] | None:
    return None if written is None else (written[0], written[1])
