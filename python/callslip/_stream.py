"""A run that is watched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from callslip._drive import drive
from callslip.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from callslip._session import Session
    from callslip.events import Delta, Event
    from callslip.runs import Run, RunResult

__all__ = ["RunStream"]


class RunStream:
    """Events of a run as they happen. Made by `Agent.stream`.

    Iterating ends when the run does, however it ends: its last event says how, and `result` raises
    where there is no answer.

    Attributes:
        run: The run that is watched.
    """

    run: Run

    def __init__(self, session: Session) -> None:
        self.run = session.run
        self._session = session
        self._queue: asyncio.Queue[Event | Delta | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._session.listener = self._queue.put_nowait
        self._task = asyncio.create_task(self._drive())
        self._task.add_done_callback(lambda _: self._queue.put_nowait(None))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
        if task is not None and not task.cancelled():
            task.exception()  # a fault of the driver itself was raised to whoever iterates

    async def _drive(self) -> None:
        with self._session:
            await drive(self._session)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Delta:
        if self._task is None:
            raise UsageError("enter the stream first: async with agent.stream(…) as run: …")
        if self._task.done() and self._queue.empty():
            raise StopAsyncIteration
        event = await self._queue.get()
        if event is None:
            self._task.result()
            raise StopAsyncIteration
        return event

    @property
    def result(self) -> RunResult:
        """What came of the run.

        Raises:
            UsageError: The run is not over yet.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
        """
        if not self.run.finished:
            raise UsageError("the run is not over yet: iterate the stream to its end first")
        from callslip.runs import RunResult

        return RunResult.of(self._session)
