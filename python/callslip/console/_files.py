"""The images and files of a run, to be saved."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from callslip._base.file_names import safe_name
from callslip.console._addresses import key_of
from callslip.look._markup import Markup, el
from callslip.look._text import Texts
from callslip.parts import File
from callslip.runs import Run
from callslip.trace import Trace

__all__ = ["download", "links_to_files", "part_of"]


def links_to_files(trace: Trace, base: str, texts: Texts) -> Markup | None:
    """Return links to the images and files of a run and of the runs below it.

    Args:
        trace: The run.
        base: The beginning of the addresses of all pages.
        texts: How texts are shown.
    """
    links: list[str] = []
    for run in trace.walk():
        address = f"{base}/runs/{key_of(run.run_id)}/files/"
        for label, part in run.parts.items():
            words = texts.line(f"{label}: {_name_of(part)}")
            links += (el("a", words, href=address + quote(label, safe="")), " ")
    return el("p", "Files: ", links) if links else None


def part_of(run: Run, label: str) -> tuple[bytes, str] | None:
    """Return the bytes and the name of an image or file; `None` if the run has none of this label.

    Raises:
        StoreError: Its bytes cannot be read.
    """
    part = run.parts.get(label)
    return None if part is None else (part.data, _name_of(part))


def download(data: bytes, name: str) -> Response:
    """Return an answer that a browser saves as a file, whatever it is, and does not show."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(
        data,
        media_type="application/octet-stream",
        headers={"Content-Disposition": disposition},
    )


def _name_of(part: File) -> str:
    return safe_name(part.name, part.label or "file", part.media_type)
