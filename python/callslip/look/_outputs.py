"""Outputs of notebooks: each stands alone, runs no script, and is small enough for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from callslip._base.call_line import printable
from callslip.look._head import head_of, left_out
from callslip.look._markup import Content, Markup, el
from callslip.look._rows import Rows
from callslip.look._selection import Selection
from callslip.look._style import output_style
from callslip.look._terminal import summary_lines
from callslip.look._text import Texts
from callslip.trace import Trace

if TYPE_CHECKING:
    from callslip._core import Violation

__all__ = [
    "Bundle",
    "bundle_of_facts",
    "bundle_of_table",
    "bundle_of_trace",
    "bundle_of_violation",
    "output_of",
]

Bundle = dict[str, Any]
"""What a notebook shows of a value: a text for each media type."""

_MOST_CHARACTERS = 150_000
_SIZES = ((200, 2_000), (100, 500), (20, 200))
"""The number of rows and of the characters of a text, from what is shown at best."""


def bundle_of_trace(trace: Trace) -> Bundle:
    """Return a run as a notebook shows it.

    Of a run of more than 200 turns and tickets, the first and the last of them are shown, and of a
    text the first 2,000 characters. An output has at most some 150,000 characters.
    """
    plain = "\n".join(summary_lines(trace))
    for rows, characters in _SIZES:
        html = _trace_output(trace, rows, characters)
        if len(html) <= _MOST_CHARACTERS:
            return {"text/plain": plain, "text/html": html}
    texts = Texts(limit=_SIZES[-1][1], redact=None)
    return {"text/plain": plain, "text/html": output_of(head_of(trace, texts), _HOW_TO_SEE_ALL)}


_HOW_TO_SEE_ALL = el("p", "All of it: ", el("code", 'run.to_html("trace.html")'))


def _trace_output(trace: Trace, most_rows: int, characters: int) -> Markup:
    texts = Texts(limit=characters, redact=None)
    selection = Selection(trace, rows=most_rows)
    # An image of 1 MiB would be in the notebook's file with each output.
    rows = Rows(trace, texts, "failed", selection=selection, images=False)
    more = None if selection.is_whole else _HOW_TO_SEE_ALL
    title = el("h2", "Turns"), left_out(selection)
    return output_of(head_of(trace, texts), rows.task(trace), title, rows.run(trace), more)


def bundle_of_facts(title: str, facts: Iterable[tuple[str, str | None]], plain: str) -> Bundle:
    """Return a title with named texts as a notebook shows them.

    Args:
        title: The title.
        facts: Names, which are the library's own, and texts; without a text it is left out.
        plain: The whole as text.
    """
    texts = Texts(limit=_SIZES[0][1], redact=None)
    shown = [(el("dt", name), el("dd", texts.block(text))) for name, text in facts if text]
    html = output_of(el("h1", texts.line(title)), el("dl", shown, class_="fields"))
    return {"text/plain": plain, "text/html": html}


def bundle_of_violation(violation: Violation) -> Bundle:
    """Return a breach of the protocol as a notebook shows it."""
    place = None if violation.line is None else f"line {violation.line}, column {violation.column}"
    facts = [
        ("message", violation.message),
        ("place", place),
        ("expected", violation.expected),
        ("found", violation.found),
        ("hint", violation.hint),
    ]
    plain = printable(f"{violation.code}: {violation.message}")
    return bundle_of_facts(f"violation: {violation.code}", facts, plain)


def bundle_of_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Bundle:
    """Return a table as a notebook shows it, with its first 200 rows.

    Args:
        names: The names of the columns, which are the library's own.
        rows: The texts of the cells, row by row.
    """
    most, characters = _SIZES[0]
    texts = Texts(limit=characters, redact=None)
    head = el("thead", el("tr", (el("th", name) for name in names)))
    cells = (el("tr", (el("td", texts.line(cell)) for cell in row)) for row in rows[:most])
    more = el("p", f"{len(rows) - most:,} more") if len(rows) > most else None
    plain = "\n".join("  ".join(printable(cell) for cell in row) for row in (names, *rows[:most]))
    table = el("table", head, el("tbody", cells))
    return {"text/plain": plain, "text/html": output_of(table, more)}


def output_of(*content: Content) -> Markup:
    """Return an output: content with its style sheet, since a notebook keeps each one alone."""
    style = el("style", Markup(f"\n{output_style()}"))
    return el("div", style, content, class_="callslip")
