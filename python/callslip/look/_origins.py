"""Origins on pages: words next to the names of values, and marked places in results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from callslip._base.json import to_json
from callslip.events._json import fields_of
from callslip.look._markup import Markup, el, joined
from callslip.look._text import LeafMark, Texts
from callslip.origins import Origin
from callslip.origins._words import argument_of, few, influence_words, inside, words_of
from callslip.trace import TicketSpan, UsedPlace

__all__ = ["influence_line", "origin_labels", "origin_tags", "origins_as_json", "used_marks"]

_MOST_USES = 5
"""Arguments that the title of a marked place names."""


def origin_tags(
    origins: Mapping[str, Origin],
    line: Callable[[str], str],
    tools: Mapping[str, str] | None = None,
) -> Markup:
    """Return the origins of one value as markup.

    Args:
        origins: The origins by JSON pointers that begin in the value. Several different ones have
            the names of the values in it.
        line: Returns a text as the page shows it.
        tools: As for `words_of`.
    """
    groups = words_of(origins, tools)
    names = [f"{few(one.names)}: " if len(groups) > 1 else "" for one in groups]
    return joined(
        el(
            "small",
            " ",
            line(f"{name}{group.text}"),
            class_="from" if group.doubt is None else f"from {group.doubt}",
        )
        for name, group in zip(names, groups, strict=True)
    )


def origin_labels(ticket: TicketSpan, texts: Texts, tools: Mapping[str, str]) -> dict[str, Markup]:
    """Return the tags of each argument of the model by its name."""
    if not ticket.origins:
        return {}
    asked = ticket.approval
    replaced = None if asked is None else asked.replaced_arguments
    arguments = ticket.arguments if replaced is None else replaced
    return {
        name: origin_tags(inside(ticket.origins, name), texts.line, tools)
        for name in arguments or {}
    }


def influence_line(
    influenced: Sequence[str],
    line: Callable[[str], str],
    tools: Mapping[str, str] | None = None,
) -> Markup | None:
    """Return the line that names the untrusted texts the model had read; `None` without any.

    Args:
        influenced: As `Ticket.influenced`.
        line: As for `origin_tags`.
        tools: As for `words_of`.
    """
    if not influenced:
        return None
    names = influence_words(influenced, tools)
    return el("p", line(f"Untrusted texts that the model had read: {names}"), class_="soft")


def origins_as_json(ticket: TicketSpan, texts: Texts, row_id: str | None) -> Markup | None:
    """Return the origins of a call as JSON, folded; `None` without any."""
    if not ticket.origins:
        return None
    lines = (f"{to_json(at)}: {to_json(_fields(one))}" for at, one in ticket.origins.items())
    text = "{\n  " + ",\n  ".join(lines) + "\n}"
    summary = el("summary", el("span", "Origins as JSON"))
    return el("details", summary, texts.block(text), class_="json", id=row_id)


def _fields(origin: Origin) -> dict[str, object]:
    """Return the fields that have a value."""
    return {name: one for name, one in fields_of(origin).items() if one}


def used_marks(ticket: TicketSpan, tools: Mapping[str, str]) -> list[LeafMark]:
    """Return the marks of the places of a result that values of calls come from.

    Args:
        ticket: The ticket of the result.
        tools: The tools of the tickets of the run, by their ids.
    """
    kind = "used untrusted" if ticket.untrusted else "used"
    places = sorted(ticket.used, key=lambda one: (one.pointer, one.start, -one.end))
    return [
        LeafMark(pointer, start, end, kind, _label(uses, tools))
        for pointer, leaf in groupby(places, lambda one: one.pointer)
        for start, end, uses in _merged(leaf)
    ]


def _merged(places: Iterable[UsedPlace]) -> Iterator[tuple[int, int, list[UsedPlace]]]:
    """Yield places of one leaf in their order, those that overlap as one."""
    start = end = 0
    uses: list[UsedPlace] = []
    for place in places:
        if uses and place.start >= end:
            yield start, end, uses
            uses = []
        start, end = (start, max(end, place.end)) if uses else (place.start, place.end)
        uses.append(place)
    if uses:
        yield start, end, uses


def _label(uses: Iterable[UsedPlace], tools: Mapping[str, str]) -> str:
    names = dict.fromkeys(
        f"'{argument_of(one.argument)}' in {one.ticket_id} ({tools.get(one.ticket_id, '')})"
        for one in uses
    )
    return f"used as {few(names, _MOST_USES)}"
