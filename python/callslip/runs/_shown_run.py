"""How a run is shown: its trace, its page, and what notebooks and terminals make of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from callslip.runs._view_imports import import_views

if TYPE_CHECKING:
    from callslip.look import Opened
    from callslip.trace import Trace

__all__ = ["ShownRun"]


class ShownRun:
    """The part of a `Run` that shows it."""

    __slots__ = ()

    def trace(self) -> Trace:
        """Return the run as it is shown: its turns, their tickets, and the runs below them.

        It is what the log says now, in any state of the run, and does not change.

        Raises:
            StoreError: The store cannot be read.
        """
        trace: Trace = import_views().trace_of(self)
        return trace

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        images: bool = True,
        texts: int = 20_000,
        open: Opened = "failed",  # noqa: A002  # the rows that are open
        redact: Callable[[str], str] | None = None,
    ) -> str:
        """Return the trace as one HTML file, and write it to `path`. As `callslip.look.to_html`.

        Raises:
            StoreError: The store cannot be read.
            UsageError: An option has a wrong value.
            OSError: The file cannot be written.
        """
        page: str = import_views().to_html(
            self.trace(), path, images=images, texts=texts, open=open, redact=redact
        )
        return page

    def __str__(self) -> str:
        return str(self._repr_mimebundle_()["text/plain"])

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = import_views().bundle_of_trace(self.trace())
        return bundle

    def __rich_console__(self, *_: object) -> Iterator[object]:
        yield from import_views().lines_for_rich(self.trace())
