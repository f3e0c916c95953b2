"""The end of a reply's last call: services report it for a cut call too."""

from __future__ import annotations

from dataclasses import replace

from callslip.models._items import CallItem, Item
from callslip.models._piece import Piece

__all__ = ["LastCall"]


class LastCall:
    """Holds back that a call has ended, until something follows it or the reply ends well.

    The last call of a cut reply may be a part, even if its text is JSON.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: CallItem | None = None

    def held(self, items: tuple[Item, ...], piece: Piece) -> tuple[Item, ...]:
        """Return the items to pass on: those that have come, as far as they are not held back."""
        passed: list[Item] = []
        for item in items:
            if self._held is not None:
                passed.append(self._held)
                self._held = None
            if isinstance(item, CallItem) and item.is_whole:
                self._held = item
            else:
                passed.append(item)
        if self._held is not None and piece.finish_reason is not None:
            is_whole = piece.finish_reason == "stop"
            passed.append(replace(self._held, is_whole=is_whole))
            self._held = None
        return tuple(passed)
