"""A run that is being streamed to synchronous code."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, NoReturn, Self

from callslip._threads import pool
from callslip._threads.current_loop import interruptible, is_in_loop
from callslip.errors import UsageError
from callslip.runs._result import AnswerT

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from types import TracebackType
    from typing import Any, TypeVar

    from callslip._runtime.stream import RunStream
    from callslip.events import Delta, Event, Progress
    from callslip.runs import Run, RunResult

    T = TypeVar("T")

__all__ = ["SyncStream"]


class SyncStream(Generic[AnswerT]):
    """The events of a run, as they happen. Made by `Agent.stream_sync`.

    The run works while the next item is awaited, and a few hundred events ahead. The iteration ends
    with the run, and raises the exception of a run that failed. Threads that share it share its
    items.
    """

    def __init__(self, stream: RunStream[AnswerT]) -> None:
        self._stream = stream
        self._items = _items(stream)
        # A generator can't be entered twice.
        self._reading = threading.RLock()

    @property
    def run(self) -> Run[AnswerT]:
        """The run, to approve, deny, send or cancel. As `RunStream.run`."""
        return self._stream.run

    @property
    def result(self) -> RunResult[AnswerT]:
        """The result of the run. As `RunStream.result`.

        Raises:
            UsageError: The run is not over yet.
        """
        return self._stream.result

    if not TYPE_CHECKING:
        # Type checkers say it themselves.

        async def __aenter__(self) -> NoReturn:
            _refuse("async with agent.stream_sync(…)")

        async def __aexit__(self, *_: object) -> None:
            """Never called: it was not entered."""

        def __aiter__(self) -> NoReturn:
            _refuse("async for … in agent.stream_sync(…)")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event | Delta | Progress:
        with self._reading:
            return next(self._items)

    def close(self) -> None:
        """End the stream. A run that is not over is cancelled.

        Raises:
            UsageError: Another thread waits for an item.
        """
        if not self._reading.acquire(blocking=False):
            raise UsageError(
                "expected a stream that nobody reads: got one for whose next item a thread waits; "
                "call stream.run.cancel(), which ends it there"
            )
        try:
            self._items.close()
        finally:
            self._reading.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _refuse(got: str) -> NoReturn:
    raise UsageError(
        f"expected for … in agent.stream_sync(…): got {got}; use async with agent.stream(…) as run "
        "in async functions"
    )


def _items(stream: RunStream[Any]) -> Generator[Event | Delta | Progress, None, None]:
    # No method, so that a stream which nothing refers to any more is closed at once.
    _wait(stream.__aenter__())
    try:
        while True:
            item = _wait(_next(stream))
            if item is None:
                return
            yield item
    finally:
        _wait(stream.__aexit__(None, None, None))


async def _next(stream: RunStream[Any]) -> Event | Delta | Progress | None:
    return await anext(stream, None)


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    future = pool.on_loop(coroutine)
    try:
        if not is_in_loop():
            return future.result().get()
        with interruptible():
            return future.result().get()
    except BaseException:
        # Ctrl-C, if it is not over.
        future.cancel()
        raise
