"""The document of a page: it stands alone, loads nothing, and runs no script."""

from __future__ import annotations

import base64
import hashlib

from callslip.look._head import head_of, left_out, legend
from callslip.look._rows import Opened, Rows
from callslip.look._selection import Selection
from callslip.look._style import page_style
from callslip.look._text import Texts
from callslip.trace import Trace

__all__ = ["page_of"]

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
    style = page_style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    selection = Selection(trace)
    rows = Rows(trace, texts, opened, selection=selection, images=images)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{texts.line(trace.agent)}</title><style>{style}</style></head>\n"
        f"<body><main>{head_of(trace, texts)}{rows.task(trace)}<h2>Turns</h2>"
        f"{left_out(selection)}{legend()}{rows.run(trace)}</main>\n"
        f"<footer>{_FOOTER}</footer></body></html>\n"
    )
