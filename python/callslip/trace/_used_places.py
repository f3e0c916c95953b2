"""Places of results that values of calls come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from callslip._base.json import from_json, to_json
from callslip._base.json_pointer import value_at
from callslip.origins import Origin, Place
from callslip.trace._positions import characters_at
from callslip.trace._tickets import UsedPlace

__all__ = ["ResultText", "used_places"]


class ResultText(NamedTuple):
    """The outcome of a ticket, as values were looked up in it.

    Attributes:
        text: JSON text, or the message of a failure.
        is_result: Whether it is JSON text.
    """

    text: str
    is_result: bool


class _Use(NamedTuple):
    ticket_id: str
    argument: str
    pointer: str
    span: tuple[int, int]


def used_places(
    origins: Mapping[str, Mapping[str, Origin]], outcomes: Mapping[str, ResultText]
) -> dict[str, tuple[UsedPlace, ...]]:
    """Return the places of each result that values of calls come from.

    Args:
        origins: The origins of each call, by the id of its ticket.
        outcomes: The outcomes by the ids of their tickets.
    """
    uses: dict[str, list[_Use]] = {}
    for ticket_id, own in origins.items():
        for argument, origin in own.items():
            # The user's words count first: a result that repeats them is no origin.
            if origin.kind != "result":
                continue
            places: tuple[Origin | Place, ...] = (origin, *origin.others)
            for place in places:
                if place.kind == "result" and place.span is not None:
                    use = _Use(ticket_id, argument, place.pointer or "", place.span)
                    uses.setdefault(place.where, []).append(use)
    return {
        source: tuple(_places(outcomes[source], some))
        for source, some in uses.items()
        if source in outcomes
    }


def _places(outcome: ResultText, uses: list[_Use]) -> Iterator[UsedPlace]:
    text = outcome.text
    characters = characters_at(text, (offset for use in uses for offset in use.span))
    leaves = _Leaves(text) if outcome.is_result else None
    for use in uses:
        start, end = (characters[offset] for offset in use.span)
        span = (start, end) if leaves is None else leaves.place(use.pointer, start, end)
        if span is not None and span[0] < span[1]:
            yield UsedPlace(
                pointer="" if leaves is None else use.pointer,
                start=span[0],
                end=span[1],
                ticket_id=use.ticket_id,
                argument=use.argument,
            )


class _Leaves:
    """The leaves of a result, which is JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._value = from_json(text)
        # A long text may have many escaped quotes before each place in it.
        self._openings: dict[str, int] = {}

    def place(self, pointer: str, start: int, end: int) -> tuple[int, int] | None:
        """Return the place inside of the leaf at a JSON pointer.

        Args:
            pointer: The JSON pointer.
            start: The position of the first character in the JSON text.
            end: The position after the last character in the JSON text.

        Returns:
            `None` if the place is in no leaf, such as the key of an object.
        """
        leaf = value_at(self._value, pointer)
        try:
            if isinstance(leaf, str):
                return self._in_text(leaf, pointer, start, end)
            is_whole = from_json(self._text[start:end]) == leaf
        except ValueError:
            return None
        return (0, len(to_json(leaf))) if is_whole else None

    def _in_text(self, leaf: str, pointer: str, start: int, end: int) -> tuple[int, int] | None:
        if pointer not in self._openings:
            self._openings[pointer] = _opening(self._text, start)
        before = _decoded(self._text[self._openings[pointer] : start])
        piece = _decoded(self._text[start:end])
        found = (len(before), len(before) + len(piece))
        return found if leaf[slice(*found)] == piece else None


def _opening(text: str, place: int) -> int:
    """Return the position after the quote that opens the JSON string around a place."""
    while True:
        quote = place = text.rfind('"', 0, place)
        if quote < 0:
            return 0
        while text[place - 1 : place] == "\\":
            place -= 1
        if (quote - place) % 2 == 0:
            return quote + 1


def _decoded(piece: str) -> str:
    """Return the text of a part of a JSON string.

    Raises:
        ValueError: The part ends inside of an escape.
    """
    return str(from_json(f'"{piece}"')) if "\\" in piece else piece
