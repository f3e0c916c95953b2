"""Images and files of results, placed inside of the results that they came with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip.models._part_shapes import Shapes
from callslip.models.native._turns import Result, Turn

__all__ = ["placed_parts"]


def placed_parts(
    turn: Turn, shapes: Shapes, text: Callable[[str], Any]
) -> tuple[dict[str, list[Any]], list[Any]]:
    """Return the blocks of a turn's images and files.

    The text of a result names its images in lines such as `[image 640x480, 24 KB, T3]`. A part
    stands inside of the one result with such a line. If there are none or several, it stands behind
    all results. So does the part of an error, because services take errors as text alone.

    Args:
        turn: A turn of the user.
        shapes: The shapes of the service.
        text: Returns the service's block of a text.

    Returns:
        The blocks to put inside of results, by the id of the call, and those behind them.
    """
    inside: dict[str, list[Any]] = {}
    behind: list[Any] = []
    results = [item for item in turn.items if isinstance(item, Result)]
    for part in turn.message.get("parts", ()):
        shape = shapes[part.kind](part)
        if shape is None:
            continue
        named = [one for one in results if part.label and f", {part.label}]" in one.content]
        is_inside = len(named) == 1 and not named[0].error
        place = inside.setdefault(named[0].id, []) if is_inside else behind
        if part.label is not None:
            # Which of them the text speaks of.
            place.append(text(f"{part.label}:"))
        place.append(shape)
    return inside, behind
