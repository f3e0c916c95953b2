"""The calls of one reply that come in pieces, each with a number of its own."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass

from callslip.models._items import CallItem, Data

__all__ = ["CallTracks", "arguments_text"]


@dataclass(slots=True)
class _Track:
    number: int
    id: str
    tool: str


class CallTracks:
    """Numbers the calls of a reply. A key of the service may stand for several calls, in turn.

    Attributes:
        count: How many calls have come.
    """

    __slots__ = ("_ended", "_open", "count")

    def __init__(self) -> None:
        self._open: dict[Hashable, _Track] = {}
        self._ended = self.count = 0

    def piece(
        self,
        key: Hashable,
        told: tuple[str, str],
        arguments: str,
        data: Data | None = None,
        *,
        is_new: bool = False,
    ) -> CallItem:
        """Return a piece of a call, with its id and name where they come for the first time.

        Args:
            key: The service's index of the call. Under the key of an earlier call, another id or
                another name begins a new one. Services repeat both, or leave the id out.
            told: The id and the name that stand in the piece, each may be empty.
            arguments: More of the arguments.
            data: What the service needs back with the call.
            is_new: Whether it is known to begin a call.
        """
        name, tool = told
        track = self._open.get(key)
        if track is None or is_new or _differ(name, track.id) or _differ(tool, track.tool):
            track = self._open[key] = _Track(self.count, name, tool)
            self.count += 1
            return CallItem(track.number, name, tool, arguments, data)
        first_id, first_tool = ("" if track.id else name), ("" if track.tool else tool)
        track.id, track.tool = track.id or name, track.tool or tool
        return CallItem(track.number, first_id, first_tool, arguments, data)

    def ends(self, *, but_last: bool = False) -> tuple[CallItem, ...]:
        """Return the ends of the calls, once: some servers tell of the end of a reply twice.

        Args:
            but_last: Whether the last one is open, because the reply was cut. Default false.
        """
        numbers = range(self._ended, max(self._ended, self.count - but_last))
        self._ended = numbers.stop
        return tuple(CallItem(number, is_whole=True) for number in numbers)


def arguments_text(arguments: object) -> str:
    """Return arguments as text; some servers write an object where others write its text."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False, default=repr)


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other
