"""What open pages receive: each change of what they show, from one look at the store for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip.console._access import Denied
from callslip.console._page import Piece
from callslip.errors import CallslipError
from callslip.web._messages import KEEP_ALIVE, RETRY, SILENCE, message

__all__ = ["Live", "Shown"]

_log = GuardedLogger("callslip.console")

_MOST_PAGES = 64
_EVERY = 0.25
"""Seconds between two looks at the store."""
_SHARE = 10
"""How many times longer than it takes to render a page it is left as it is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows.

    Attributes:
        sections: Its parts by name, each with its pieces.
        problem: Why nothing else can be shown; empty if all is well.
    """

    sections: dict[str, list[Piece]] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of(cls, sections: Mapping[str, Sequence[str]]) -> Self:
        """Return the page of some markup by the names of its parts."""
        return cls({name: [Piece.of(html) for html in parts] for name, parts in sections.items()})


class Live:
    """The streams of a console's open pages.

    Args:
        version: Returns what differs after each change of a run.
    """

    def __init__(self, version: Callable[[], object]) -> None:
        self._version = version
        self._views: dict[tuple[object, ...], _View] = {}
        self._pages = 0
        self._closed = False

    def close(self) -> None:
        """End all streams. Called on their event loop."""
        self._closed = True
        for view in self._views.values():
            view.news.set()

    def join(self, key: tuple[object, ...], render: Callable[[], Shown]) -> AsyncIterator[bytes]:
        """Return the stream of one page.

        Args:
            key: What the page shows: equal pages are rendered once.
            render: Renders it, in a thread.

        Raises:
            Denied: As many pages are open as may be.
        """
        if self._pages >= _MOST_PAGES:
            raise Denied(503, f"{_MOST_PAGES} pages are open: close one")
        return self._follow((id(asyncio.get_running_loop()), *key), render)

    async def _follow(
        self, key: tuple[object, ...], render: Callable[[], Shown]
    ) -> AsyncIterator[bytes]:
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = _View()
            view.task = asyncio.create_task(self._look(view, render))
        self._pages += 1
        view.pages += 1
        try:
            sent = _Sent()
            yield RETRY
            while not self._closed:
                news = view.news
                if view.shown is not None:
                    for event in sent.changes(view.shown):
                        yield event
                try:
                    await asyncio.wait_for(news.wait(), SILENCE)
                except TimeoutError:
                    yield KEEP_ALIVE
        finally:
            self._pages -= 1
            view.pages -= 1
            if not view.pages:
                del self._views[key]
                view.task.cancel()

    async def _look(self, view: _View, render: Callable[[], Shown]) -> None:
        """Render a view after each change."""
        version: object = None
        while True:
            began = time.monotonic()
            new = await asyncio.to_thread(self._current)
            if new is None or new != version:
                view.show(await asyncio.to_thread(_rendered, render))
                version = new
            await asyncio.sleep(max(_EVERY, _SHARE * (time.monotonic() - began)))

    def _current(self) -> object:
        """Return the version of the store; `None` if it cannot be read."""
        try:
            return self._version()
        except Exception:  # noqa: BLE001  # the page is rendered, and says why
            return None


class _View:
    """What one or more equal pages show.

    Attributes:
        shown: What it shows; `None` before it was rendered.
        news: Set when it shows something else; there is another one for what follows.
        pages: The number of pages.
        task: Renders it.
    """

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self.news = asyncio.Event()
        self.pages = 0
        self.task: asyncio.Task[None]

    def show(self, shown: Shown) -> None:
        if shown != self.shown:
            self.shown = shown
            news, self.news = self.news, asyncio.Event()
            news.set()


def _rendered(render: Callable[[], Shown]) -> Shown:
    try:
        return render()
    except CallslipError as error:
        return Shown(problem=str(error))
    except Exception:  # noqa: BLE001  # the page says so, and the log why
        _log.exception("a page of the console cannot be shown")
        return Shown(problem="this page cannot be shown: the program's log says why")


class _Sent:
    """The pieces that a page has received."""

    def __init__(self) -> None:
        self._digests: dict[str, list[str]] = {}
        self._problem = ""

    def changes(self, shown: Shown) -> Iterator[bytes]:
        """Yield an event for each part that differs."""
        if shown.problem:
            self._problem = shown.problem
            yield message("problem", to_json(shown.problem))
            return
        if self._problem:
            self._problem = ""
            yield message("problem", to_json(""))
        for name, pieces in shown.sections.items():
            digests = [piece.digest for piece in pieces]
            known = self._digests.get(name)
            if digests != known:
                self._digests[name] = digests
                yield message("pieces", to_json(_changed(name, pieces, known or [])))


def _changed(name: str, pieces: list[Piece], known: list[str]) -> dict[str, Any]:
    changed = {
        at: piece
        for at, piece in enumerate(pieces)
        if at >= len(known) or known[at] != piece.digest
    }
    return {"section": name, "count": len(pieces), "changed": changed}
