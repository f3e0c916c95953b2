"""Views of runs: one HTML file, which `run.to_html` writes too, and a run that is shown live.

run.to_html("trace.html")
result = await show(agent.stream("How is Oslo?"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from callslip._base.options import (
    check_called_with,
    check_flag,
    check_new_file,
    check_one_of,
    check_whole,
)
from callslip._base.options import shown as short
from callslip.errors import UsageError
from callslip.look._page import page_of, page_of_runs
from callslip.look._rows import Opened
from callslip.look._show import Shown, show
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["Opened", "Shown", "runs_to_html", "show", "to_html"]


def to_html(
    trace: Trace,
    path: str | os.PathLike[str] | None = None,
    *,
    images: bool = True,
    texts: int = 20_000,
    open: Opened = "failed",  # noqa: A002  # the word for it, as `Run.to_html` has it
    redact: Callable[[str], str] | None = None,
) -> str:
    """Return the page of a trace: one self-contained HTML file without scripts.

    Credentials in well-known formats are masked.

    Args:
        trace: The run, with its child runs.
        path: The file to write the page to, as UTF-8.
        images: Whether the page embeds images of up to 1 MiB. Otherwise it shows their names.
        texts: The largest number of characters of one text. The page says how many more there are.
        open: The rows that start expanded: `"failed"` for failures and calls that await approval,
            `"all"` or `"none"`.
        redact: Called with each text before truncation; the page shows its return value. Images
            are not passed to it.

    Raises:
        UsageError: An option has a wrong value, or `redact` does not return text.
        OSError: The file cannot be written.
    """
    _check_trace(trace)
    shown = _checked(texts, open, redact, images, path)
    return _written(page_of(trace, shown, open, images=images), path)


def runs_to_html(
    traces: Sequence[Trace],
    path: str | os.PathLike[str] | None = None,
    *,
    images: bool = True,
    texts: int = 20_000,
    open: Opened = "failed",  # noqa: A002  # as above
    redact: Callable[[str], str] | None = None,
    more: int = 0,
) -> str:
    """Return the page of several runs, each collapsed under its row. `store.to_html` calls it.

    Args:
        traces: The runs, with their child runs.
        path: As for `to_html`.
        images: As for `to_html`.
        texts: As for `to_html`.
        open: As for `to_html`.
        redact: As for `to_html`.
        more: The number of further runs, shown on the page.

    Raises:
        UsageError: As for `to_html`.
        OSError: The file cannot be written.
    """
    if isinstance(traces, str) or not isinstance(traces, Sequence):
        raise UsageError(f"expected a list of traces: got {short(traces)}; pass [run.trace()]")
    for trace in traces:
        _check_trace(trace)
    check_whole("more", more)
    shown = _checked(texts, open, redact, images, path)
    return _written(page_of_runs(traces, shown, open, images=images, more=more), path)


def _check_trace(trace: object) -> None:
    if not isinstance(trace, Trace):
        hint = "run.trace()" if hasattr(trace, "trace") or hasattr(trace, "run") else "a Trace"
        raise UsageError(f"expected a trace: got {short(trace)}; pass {hint}")


def _checked(
    texts: int,
    opened: Opened,
    redact: Callable[[str], str] | None,
    images: bool,  # noqa: FBT001  # an option
    path: object,
) -> Texts:
    check_one_of("open", opened, ("failed", "all", "none"))
    check_whole("texts", texts, 1)
    check_flag("images", images)
    if redact is not None:
        check_called_with("redact", redact, "a text")
    if path is not None:
        check_new_file("path", path)
    return Texts(limit=texts, redact=redact)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _written(page: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        # A new page is the user's alone; one that is there keeps its mode.
        with open(path, "w", encoding="utf-8", newline="\n", opener=_private) as file:
            file.write(page)
    return page
