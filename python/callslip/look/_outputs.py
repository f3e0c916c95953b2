"""Outputs of notebooks: each stands alone, runs no script, and is small enough for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from callslip._call_line import printable
from callslip.look._head import head_of, left_out
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
    return {"text/plain": plain, "text/html": output_of(head_of(trace, texts) + _HOW_TO_SEE_ALL)}


_HOW_TO_SEE_ALL = "<p>All of it: <code>run.to_html(&quot;trace.html&quot;)</code></p>"


def _trace_output(trace: Trace, most_rows: int, characters: int) -> str:
    texts = Texts(limit=characters, redact=None)
    selection = Selection(trace, rows=most_rows)
    # An image of 1 MiB would be in the notebook's file with each output.
    rows = Rows(trace, texts, "failed", selection=selection, images=False)
    more = "" if selection.is_whole else _HOW_TO_SEE_ALL
    return output_of(
        f"{head_of(trace, texts)}{rows.task(trace)}<h2>Turns</h2>{left_out(selection)}"
        f"{rows.run(trace)}{more}"
    )


def bundle_of_facts(title: str, facts: Iterable[tuple[str, str | None]], plain: str) -> Bundle:
    """Return a title with named texts as a notebook shows them.

    Args:
        title: The title.
        facts: Names, which are the library's own, and texts; without a text it is left out.
        plain: The whole as text.
    """
    texts = Texts(limit=_SIZES[0][1], redact=None)
    shown = [f"<dt>{name}</dt><dd>{texts.block(text)}</dd>" for name, text in facts if text]
    html = f'<h1>{texts.line(title)}</h1><dl class="fields">{"".join(shown)}</dl>'
    return {"text/plain": plain, "text/html": output_of(html)}


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
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{texts.line(cell)}</td>' for cell in row)}</tr>" for row in rows[:most]
    )
    more = f"<p>{len(rows) - most:,} more</p>" if len(rows) > most else ""
    plain = "\n".join("  ".join(printable(cell) for cell in row) for row in (names, *rows[:most]))
    html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    return {"text/plain": plain, "text/html": output_of(html)}


def output_of(markup: str) -> str:
    """Return an output: markup with its style sheet, since a notebook keeps each one alone."""
    return f'<div class="callslip"><style>\n{output_style()}</style>{markup}</div>'
