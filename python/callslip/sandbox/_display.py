"""Results of scripts in notebooks: output is shown as text or images, never as markup."""

from __future__ import annotations

import base64
import csv
import html
import io
import itertools
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip.parts import MOST_PIXELS, has_too_many_pixels
from callslip.sandbox._text import strip_invisible

if TYPE_CHECKING:
    from callslip.sandbox._result import Artifact, ScriptResult

__all__ = ["artifact_html", "live_kernel", "result_html", "result_text", "show_artifact"]

# A browser runs no scripts in an `img`, not even of an SVG.
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
_LARGEST_IMAGE = 8 << 20
_ROWS, _COLUMNS, _CELL = 20, 20, 200
_LARGEST_TABLE = 1 << 20
_PRE = "white-space:pre-wrap;margin:0.3em 0"


def result_text(result: ScriptResult) -> str:
    """Return a result as plain text."""
    parts = [
        strip_invisible(result.stdout).rstrip("\n"),
        strip_invisible(result.stderr).rstrip("\n"),
    ]
    if not result.ok:
        parts.append(_ending(result))
    parts += [f"{one.path} ({one.size} bytes, {one.mime})" for one in result.artifacts]
    parts += [f"hint: {strip_invisible(hint)}" for hint in result.hints]
    return "\n".join(part for part in parts if part)


def result_html(result: ScriptResult) -> str:
    """Return a result as HTML: its output as text, then its artifacts."""
    parts = []
    for text, style in ((result.stdout, ""), (result.stderr, ";color:#a00")):
        if text:
            parts.append(f'<pre style="{_PRE}{style}">{html.escape(strip_invisible(text))}</pre>')
    if not result.ok:
        parts.append(f"<p><b>{html.escape(_ending(result))}</b></p>")
    parts += [artifact_html(artifact) for artifact in result.artifacts]
    parts += [f"<p><i>{html.escape(strip_invisible(hint))}</i></p>" for hint in result.hints]
    return "\n".join(parts) or "<p><i>the script printed nothing</i></p>"


def artifact_html(artifact: Artifact) -> str:
    """Return an artifact as HTML: an image, a table, or its name."""
    name = html.escape(f"{artifact.path} ({artifact.size} bytes)")
    try:
        if artifact.mime in _IMAGES and artifact.size <= _LARGEST_IMAGE:
            content = artifact.read_bytes()
            if has_too_many_pixels(_core.Part(content, artifact.mime, None)):
                return f"<p>{name}: not shown, more than {MOST_PIXELS:,} pixels</p>"
            source = f"data:{artifact.mime};base64,{base64.b64encode(content).decode()}"
            return f'<img src="{source}" alt="{name}" title="{name}" style="max-width:100%">'
        if artifact.mime == "text/csv":
            return f"<p>{name}</p>{_table(artifact)}"
    except OSError:
        return f"<p>{name}: the file is gone</p>"
    return f"<p>{name}</p>"


def live_kernel() -> Any:
    """Return the Jupyter kernel of this process; `None` outside of Jupyter."""
    ipython = sys.modules.get("IPython")
    if ipython is None or "ipykernel" not in sys.modules:
        return None
    return getattr(ipython.get_ipython(), "kernel", None)


def show_artifact(artifact: Artifact) -> None:
    """Show an image in the running cell, if there is one."""
    if artifact.mime in _IMAGES and live_kernel() is not None:
        import_module("IPython.display").display(artifact)


def _ending(result: ScriptResult) -> str:
    if result.signal is not None:
        return f"{result.status}, signal {result.signal}"
    return f"{result.status}, exit code {result.exit_code}"


def _table(artifact: Artifact) -> str:
    with artifact.file.open("rb") as file:
        text = file.read(_LARGEST_TABLE).decode("utf-8", "replace")
    try:
        rows = list(itertools.islice(csv.reader(io.StringIO(text)), _ROWS + 2))
    except csv.Error:
        return ""
    lines = []
    for number, row in enumerate(rows[: _ROWS + 1]):
        tag = "td" if number else "th"
        cells = "".join(f"<{tag}>{html.escape(_cell(cell))}</{tag}>" for cell in row[:_COLUMNS])
        lines.append(f"<tr>{cells}</tr>")
    more = "<p>…</p>" if len(rows) > _ROWS + 1 or len(text) == _LARGEST_TABLE else ""
    return f"<table>{''.join(lines)}</table>{more}"


def _cell(text: str) -> str:
    text = strip_invisible(text)
    return f"{text[:_CELL]}…" if len(text) > _CELL else text
