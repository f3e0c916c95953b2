"""Traits of operations that the document does not contain, for the core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callslip.tools import NeedsApproval, Tool
from callslip.tools._approval import approval_traits, either

if TYPE_CHECKING:
    from callslip.openapi import Handler

__all__ = ["all_traits"]


def all_traits(
    names: Sequence[str],
    found: Mapping[str, Handler],
    asked: Mapping[str, NeedsApproval],
    chosen: tuple[Collection[str], Collection[str]],
) -> dict[str, dict[str, Any]]:
    """Return the traits of operations by name, where they have any.

    Args:
        names: The operations.
        found: Those with a handler.
        asked: Those whose calls may need approval.
        chosen: Those whose calls may be repeated, and those whose results are untrusted.
    """
    repeated, untrusted = chosen
    traits = {
        name: _traits(
            found.get(name),
            asks=asked.get(name, False),
            repeats=name in repeated,
            untrusted=name in untrusted,
        )
        for name in names
    }
    return {name: value for name, value in traits.items() if value}


def _traits(
    handler: Handler | None, *, asks: NeedsApproval, repeats: bool, untrusted: bool
) -> dict[str, Any]:
    """Return the traits of an operation that the document does not contain, for the core."""
    traits: dict[str, Any] = {}
    if isinstance(handler, Tool):
        traits = {
            "effect": handler.effect,
            "readonly": handler.readonly,
            "repeatable": handler.repeatable,
        }
        asks = either(asks, handler.needs_approval)
    if handler is None:
        if untrusted:
            traits["untrusted"] = True
    elif isinstance(handler, Tool) and handler.untrusted:
        # The results of other functions of the program are trusted.
        traits["untrusted"] = True
    if repeats:
        traits["repeatable"] = True
    return traits if asks is False else {**traits, **approval_traits(asks)}
