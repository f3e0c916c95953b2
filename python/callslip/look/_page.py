"""The document of a page: it stands alone, loads nothing, and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from callslip.look._head import head_of, left_out, legend, state_of
from callslip.look._markup import DOCTYPE, Markup, el, joined
from callslip.look._numbers import count, duration, moment
from callslip.look._rows import Opened, Rows
from callslip.look._selection import Selection
from callslip.look._style import page_style, policy_hash
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["page_of", "page_of_runs"]

_FOOTER = (
    "This file contains the prompts and results of the run. Do not pass it to anybody who must not "
    "read them."
)


def page_of(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> Markup:
    """Return the page of a trace.

    Args:
        trace: The run, with those below it.
        texts: How texts are shown.
        opened: The rows that are unfolded at first.
        images: Whether images are shown.
    """
    return _document(texts.line(trace.agent), _run(trace, texts, opened, images=images))


def page_of_runs(
    traces: Sequence[Trace], texts: Texts, opened: Opened, *, images: bool, more: int
) -> Markup:
    """Return the page of several runs, each folded under its row.

    Args:
        traces: The runs, with those below them.
        texts: How texts are shown.
        opened: The rows within a run that are unfolded at first.
        images: Whether images are shown.
        more: The number of runs that are not shown.
    """
    rows = [_folded(trace, texts, opened, images=images) for trace in traces]
    left = el("p", f"{count(more, 'run')} more in the store") if more else None
    title = count(len(traces), "run")
    return _document(title, joined(el("h1", title), rows, left))


def _folded(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> Markup:
    state = state_of(trace)
    kind = "soft" if state == "finished" else "wait" if trace.is_waiting else "bad"
    started = moment(trace.started_at) if trace.events else "not begun"
    badge = el("span", texts.line(state), class_=f"badge {kind}")
    line = el(
        "span", el("strong", texts.line(trace.agent)), " ", badge, " ", texts.line(trace.task)
    )
    times = el("span", started, class_="soft"), el("span", duration(trace.seconds))
    inside = el("div", _run(trace, texts, opened, images=images), class_="inside")
    return el("details", el("summary", line, times), inside)


def _run(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> Markup:
    selection = Selection(trace)
    rows = Rows(trace, texts, opened, selection=selection, images=images)
    title = el("h2", "Turns"), left_out(selection), legend()
    return joined(head_of(trace, texts), rows.task(trace), title, rows.run(trace))


def _document(title: str, main: Markup) -> Markup:
    style = page_style()
    policy = (
        f"default-src 'none'; style-src {policy_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", Markup(style)),
    )
    body = el("body", el("main", main), "\n", el("footer", _FOOTER))
    return joined(DOCTYPE, el("html", head, "\n", body, lang="en"), "\n")
