"""Deltas that are copied and pickled: for a queue between processes, for example."""

from __future__ import annotations

import copyreg
from typing import Any

from callslip._core import Delta

__all__ = ["register_deltas"]

_KINDS: tuple[type[Delta], ...] = (
    Delta.Thoughts,
    Delta.Reasoning,
    Delta.Text,
    Delta.Answer,
    Delta.CallId,
    Delta.Tool,
    Delta.Arguments,
    Delta.CallReady,
    Delta.TicketId,
)


def register_deltas() -> None:
    """Let `copy` and `pickle` take deltas apart, which they cannot do with classes of Rust."""
    for kind in _KINDS:
        copyreg.pickle(kind, _reduced)


def _reduced(delta: Any) -> tuple[Any, ...]:
    kind = type(delta)
    values = (getattr(delta, name) for name in kind.__match_args__)
    return _unpickled, (kind.__name__, *values)


def _unpickled(name: str, *values: Any) -> Delta:
    delta: Delta = getattr(Delta, name)(*values)
    return delta
