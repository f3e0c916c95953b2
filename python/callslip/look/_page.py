"""The document of a page: it stands alone, loads nothing, and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from callslip.look._head import head_of, left_out, legend, state_of
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


def page_of(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> str:
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
) -> str:
    """Return the page of several runs, each folded under its row.

    Args:
        traces: The runs, with those below them.
        texts: How texts are shown.
        opened: The rows within a run that are unfolded at first.
        images: Whether images are shown.
        more: The number of runs that are not shown.
    """
    rows = "".join(_folded(trace, texts, opened, images=images) for trace in traces)
    left = f"<p>{count(more, 'run')} more in the store</p>" if more else ""
    title = count(len(traces), "run")
    return _document(title, f"<h1>{title}</h1>{rows}{left}")


def _folded(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> str:
    state = state_of(trace)
    kind = "soft" if state == "finished" else "wait" if trace.is_waiting else "bad"
    started = moment(trace.started_at) if trace.events else "not begun"
    line = (
        f"<strong>{texts.line(trace.agent)}</strong> "
        f'<span class="badge {kind}">{texts.line(state)}</span> {texts.line(trace.task)}'
    )
    return (
        f'<details><summary><span>{line}</span><span class="soft">'
        f"{started}</span><span>{duration(trace.seconds)}</span></summary>"
        f'<div class="inside">{_run(trace, texts, opened, images=images)}</div></details>'
    )


def _run(trace: Trace, texts: Texts, opened: Opened, *, images: bool) -> str:
    selection = Selection(trace)
    rows = Rows(trace, texts, opened, selection=selection, images=images)
    return (
        f"{head_of(trace, texts)}{rows.task(trace)}<h2>Turns</h2>"
        f"{left_out(selection)}{legend()}{rows.run(trace)}"
    )


def _document(title: str, main: str) -> str:
    style = page_style()
    policy = (
        f"default-src 'none'; style-src {policy_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style}</style></head>\n"
        f"<body><main>{main}</main>\n<footer>{_FOOTER}</footer></body></html>\n"
    )
