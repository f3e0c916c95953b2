"""A run that is shown while it works: in one output of a notebook's cell, or line by line."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
import warnings
from collections.abc import AsyncIterator, Generator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from callslip._base.call_line import call_line
from callslip._base.options import shown
from callslip.errors import UsageError
from callslip.events import (
    Delta,
    Event,
    ModelAsked,
    Progress,
    TicketCompleted,
    TicketOpened,
    Violated,
)
from callslip.look._event_lines import event_line
from callslip.look._markup import Content, el
from callslip.look._outputs import Bundle, bundle_of_trace, output_of
from callslip.look._text import Texts

if TYPE_CHECKING:
    from typing import Protocol as TypingProtocol

    from callslip._runtime.stream import RunStream
    from callslip.runs import Run, RunResult, Waiting

    class _Display(TypingProtocol):
        def show(self, item: Event | Delta | Progress | Waiting) -> None: ...

        def update(self) -> None: ...

        def end(self, run: Run[Any]) -> None: ...


__all__ = ["Shown", "show"]

AnswerT = TypeVar("AnswerT")

_INTERVAL = 0.2
"""Seconds between two updates of an output."""

_TAIL = 600
"""Characters of the text that is arriving."""


def show(source: RunStream[AnswerT] | Run[AnswerT]) -> Shown[AnswerT]:
    """Show a run while it works.

    `result = await show(agent.stream(task))`.

    In a notebook, one output of the cell is updated 5 times a second, and shows the whole run at
    its end, as the run itself does. Elsewhere its events are printed, one a line, to standard
    error.

    `async for event in show(…)` passes on each event, as the stream or `run.watch()` gives it.
    Leaving that loop leaves the stream, which ends its run, or the watching, which does not.

    Args:
        source: A stream that is not entered yet, or a run, which is watched.

    Raises:
        UsageError: `source` is something else.
    """
    return Shown(source)


class Shown(Generic[AnswerT]):
    """A run that is shown while it works. Made by `show`. It is awaited or iterated, once."""

    def __init__(self, source: RunStream[AnswerT] | Run[AnswerT]) -> None:
        is_stream = hasattr(source, "__anext__") and hasattr(source, "__aenter__")
        # A store can be watched, too.
        if not is_stream and not (hasattr(source, "watch") and hasattr(source, "trace")):
            raise UsageError(f"expected a stream or a run: got {shown(source)}; {_advice(source)}")
        self._source: Any = source
        self._is_stream = is_stream
        self._was_used = False

    def __aiter__(self) -> AsyncIterator[Event | Delta | Progress | Waiting]:
        self._was_used = True
        return self._items()

    def __del__(self) -> None:
        # Of a source that was refused, there is no such attribute.
        if not getattr(self, "_was_used", True):
            warnings.warn(
                "show(…) was never awaited, so nothing was run or shown: use await show(…)",
                RuntimeWarning,
                source=self,
                stacklevel=1,
            )

    def __repr__(self) -> str:
        return "<show(…), not awaited: use await show(…)>"

    def __await__(self) -> Generator[Any, Any, RunResult[AnswerT]]:
        self._was_used = True
        return self._result().__await__()

    async def _result(self) -> RunResult[AnswerT]:
        async for _ in self._items():
            pass
        source = self._source
        result: RunResult[AnswerT] = source.result if self._is_stream else await source
        return result

    async def _items(self) -> AsyncIterator[Event | Delta | Progress | Waiting]:
        source = self._source
        display = _display()
        async with AsyncExitStack() as stack:
            items = await stack.enter_async_context(source) if self._is_stream else source.watch()
            ticking = asyncio.create_task(_tick(display))
            try:
                async for item in items:
                    display.show(item)
                    yield item
            finally:
                ticking.cancel()
                display.end(source.run if self._is_stream else source)


def _advice(given: object) -> str:
    """Return a hint for an object that cannot be shown."""
    if inspect.iscoroutine(given):
        given.close()
        return "pass agent.stream(…) in place of agent.run(…)"
    if hasattr(given, "run") and hasattr(given, "trace"):
        return "pass result.run, or use print(result.trace())"
    return "pass agent.stream(…) or a run"


async def _tick(display: _Display) -> None:
    while True:
        await asyncio.sleep(_INTERVAL)
        display.update()


def _display() -> _Display:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or getattr(shell, "kernel", None) is None:
        return _Lines()
    return _Output(ipython.display.display)


class _Lines:
    """Events as lines of standard error."""

    def show(self, item: Event | Delta | Progress | Waiting) -> None:
        line = event_line(item) if isinstance(item, Event) else None
        if line is not None:
            print(line, file=sys.stderr)  # noqa: T201  # it is what was asked for

    def update(self) -> None:
        """Each line is printed once."""

    def end(self, run: Run[Any]) -> None:
        """Nothing is left to be shown: the last line says how the run ended."""


class _Output:
    """One output of a cell, whose content is replaced."""

    def __init__(self, display: Any) -> None:
        self._handle = display(_bundle("the run begins"), raw=True, display_id=True)
        self._progress = _Progress()

    def show(self, item: Event | Delta | Progress | Waiting) -> None:
        self._progress.take(item)

    def update(self) -> None:
        self._handle.update(self._progress.bundle(time.monotonic()), raw=True)

    def end(self, run: Run[Any]) -> None:
        self._handle.update(bundle_of_trace(run.trace()), raw=True)


class _Progress:
    """What a run does at this moment."""

    def __init__(self) -> None:
        self._turn = 0
        self._tickets = 0
        self._violations = 0
        self._text = ""
        # The line of each call in progress and when it began, by run and ticket.
        self._open: dict[tuple[str, str], tuple[str, float]] = {}
        self._reports: dict[tuple[str, str], str] = {}

    def take(self, item: Event | Delta | Progress | Waiting) -> None:
        """Take an item of the stream."""
        match item:
            case ModelAsked():
                self._turn, self._text = item.turn, ""
            case Violated():
                self._violations += 1
            case TicketOpened():
                self._tickets += 1
                line = f"{item.ticket_id} {call_line(item.tool, item.arguments)}"
                self._open[item.run_id, item.ticket_id] = (line, time.monotonic())
            case TicketCompleted():
                self._open.pop((item.run_id, item.ticket_id), None)
                self._reports.pop((item.run_id, item.ticket_id), None)
            case Progress():
                total = "" if item.total is None else f" of {item.total:g}"
                message = "" if item.message is None else f", {item.message}"
                self._reports[item.run_id, item.ticket_id] = f"{item.done:g}{total}{message}"
            case Delta.Thoughts(text=text) | Delta.Text(text=text) | Delta.Answer(text=text):
                self._text = (self._text + text)[-_TAIL:]
            case _:
                pass

    def bundle(self, now: float) -> Bundle:
        """Return what is shown now."""
        state = f"turn {self._turn}, tickets: {self._tickets}, violations: {self._violations}"
        texts = Texts(limit=_TAIL, redact=None)
        calls = []
        for key, (line, began) in self._open.items():
            report = texts.line(self._reports.get(key, ""))
            since = el("span", f"{now - began:.0f} s {report}", class_="soft")
            calls.append(el("li", texts.line(line), " ", since))
        text = texts.block(self._text) if self._text else None
        return _bundle(state, el("ul", calls) if calls else None, text)


def _bundle(state: str, *content: Content) -> Bundle:
    return {"text/plain": state, "text/html": output_of(el("p", state), content)}
