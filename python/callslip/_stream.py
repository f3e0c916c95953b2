"""A run that is watched."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Self

from callslip._drive import End, drive
from callslip.errors import UsageError
from callslip.events import Event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from callslip._core import Command
    from callslip._session import Session
    from callslip.events import Delta
    from callslip.runs import Run, RunResult, Ticket

__all__ = ["RunStream"]

_AHEAD = 256
"""Events and deltas that a run may be ahead of whoever watches it."""


class RunStream:
    """Events of a run as they happen. Made by `Agent.stream`.

    Iterating ends when the run does, however it ends: its last event says how, and `result` raises
    where there is no answer. The run waits for whoever iterates: it is never more than a few
    hundred events ahead.

    Attributes:
        run: The run that is watched.
    """

    run: Run

    def __init__(self, session: Session, *, children: bool) -> None:
        self.run = session.run
        self._session = session
        self._children = children
        self._ahead: deque[Event | Delta] = deque()
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._early: _Early | None = None

    async def __aenter__(self) -> Self:
        self._session.listener = self._hear
        self._session.room = self._room
        self._session.watches_children = self._children
        self._early = _Early(self._session)
        self._task = asyncio.create_task(self._drive())
        self._task.add_done_callback(lambda _: self._news.set())
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
        if self._early is not None and not self._early.is_over:
            # A task that is cancelled before its first step does nothing at all.
            with self._session:
                self._session.cancelled()

    async def _drive(self) -> None:
        with self._session:
            await drive(self._session)

    def _hear(self, item: Event | Delta) -> None:
        self._ahead.append(item)
        self._news.set()

    async def _room(self) -> None:
        """Wait until whoever watches has caught up."""
        while len(self._ahead) >= _AHEAD:
            self._taken.clear()
            await self._taken.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Delta:
        if self._task is None:
            raise UsageError("enter the stream first: async with agent.stream(…) as run: …")
        while not self._ahead:
            if self._task.done():
                if not self._task.cancelled():
                    self._task.result()
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        item = self._ahead.popleft()
        self._taken.set()
        return item

    @property
    def approvals(self) -> list[Ticket]:
        """The calls that wait for approval. As `Run.approvals`."""
        return self.run.approvals

    def approve(self, ticket: Ticket | str) -> None:
        """Have a call made that waits for approval. As `Run.approve`."""
        self.run.approve(ticket)

    def deny(self, ticket: Ticket | str, why: str = "") -> None:
        """Refuse a call that waits for approval. As `Run.deny`."""
        self.run.deny(ticket, why)

    def send(self, message: str) -> Awaitable[RunResult]:
        """Say more to the run. As `Run.send`; go on iterating rather than await what it returns."""
        return self.run.send(message)

    def cancel(self) -> None:
        """End the run and all below it. As `Run.cancel`; the iteration ends then."""
        self.run.cancel()

    @property
    def result(self) -> RunResult:
        """What came of the run.

        Raises:
            UsageError: The run is not over yet.
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ModelError: The model client failed.
            RunCancelled: It was cancelled.
        """
        if not self.run.finished:
            raise UsageError("the run is not over yet: iterate the stream to its end first")
        from callslip.runs import RunResult

        return RunResult.of(self._session)


class _Early:
    """Stands for the driver from the moment a run begins until the driver's task does.

    Attributes:
        is_over: Whether that has begun.
    """

    def __init__(self, session: Session) -> None:
        self.is_over = False
        self._session = session
        self._lock = threading.Lock()
        try:
            self._commands = session.begin(session)
        except BaseException as error:
            session.__exit__(type(error), error, None)
            raise
        session.begin = self._begin
        session.run.drive_by(self)

    def give(self, make: Callable[[float], list[Command]]) -> bool:
        """Take what somebody else gives in, from any thread. Returns whether it was taken."""
        with self._lock:
            core = self._session.core
            was_over = core.finished
            commands = None if self.is_over else self._session.given(make)
            if commands is None:
                return False
            # What was to be done is done no more where the run ends, or goes on after that.
            if core.finished != was_over:
                self._commands = []
            self._commands += commands
            return True

    def result(self) -> Awaitable[RunResult]:
        """Return what is to be awaited for the end of the run."""
        return End(self._session.outcome())

    def _begin(self, _: Session) -> list[Command]:
        with self._lock:
            self.is_over = True
            return self._commands
