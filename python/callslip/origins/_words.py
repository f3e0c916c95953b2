"""Origins in words, for views of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from callslip._base.json_pointer import pointer_step, pointer_steps
from callslip.origins import Origin

__all__ = [
    "Doubt",
    "OriginWords",
    "argument_of",
    "few",
    "influence_words",
    "inside",
    "words_of",
]

Doubt = Literal["untrusted", "nowhere"]


class OriginWords(NamedTuple):
    """An origin in words, with the values that have it.

    Attributes:
        text: The words, such as `from T3 (read_mail), untrusted`.
        names: The names of the values, as `argument_of` returns them.
        doubt: The reason to look at the values twice; `None` without one.
    """

    text: str
    names: tuple[str, ...]
    doubt: Doubt | None

    @property
    def is_task(self) -> bool:
        """Whether the values stand in the task as they are."""
        return self.text == "from the task"


def words_of(
    origins: Mapping[str, Origin], tools: Mapping[str, str] | None = None
) -> list[OriginWords]:
    """Return each origin of some values once, in words. Values that need no origin are left out.

    Args:
        origins: The origins by JSON pointers.
        tools: The tools of the tickets of the run, by their ids: their names follow the ids.
    """
    names: dict[tuple[str, Doubt | None], list[str]] = {}
    for pointer, origin in origins.items():
        if text := _text(origin, tools or {}):
            names.setdefault((text, _doubt(origin)), []).append(argument_of(pointer))
    return [OriginWords(text, tuple(some), doubt) for (text, doubt), some in names.items()]


def argument_of(pointer: str) -> str:
    """Return the name of the argument at a JSON pointer, such as `items.0.id`."""
    return ".".join(pointer_steps(pointer))


def inside(origins: Mapping[str, Origin], name: str) -> dict[str, Origin]:
    """Return the origins of one argument, by JSON pointers that begin in it."""
    start = pointer_step(name)
    return {
        pointer[len(start) :]: origin
        for pointer, origin in origins.items()
        if pointer == start or pointer.startswith(f"{start}/")
    }


def _text(origin: Origin, tools: Mapping[str, str]) -> str:
    text = str(origin)
    tool = tools.get(origin.where)
    return text if tool is None else text.replace(origin.where, f"{origin.where} ({tool})", 1)


def influence_words(influenced: Iterable[str], tools: Mapping[str, str] | None = None) -> str:
    """Return the untrusted texts that a model had read, in words.

    Args:
        influenced: As `Ticket.influenced`.
        tools: As for `words_of`.
    """
    known = tools or {}
    return few(
        "the task" if one == "T0" else f"{one} ({known[one]})" if one in known else one
        for one in influenced
    )


def few(names: Iterable[str], most: int = 10) -> str:
    """Return some names in a row. Those beyond the first are counted."""
    known = list(names)
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def _doubt(origin: Origin) -> Doubt | None:
    """Return the reason to look at a value twice; `None` without one."""
    if origin.untrusted:
        return "untrusted"
    return None if origin.is_stated else "nowhere"
