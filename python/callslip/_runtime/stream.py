"""A run that is watched."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Self

from callslip._runtime.driver import drive
from callslip._runtime.on_loop import End
from callslip._threads.current_loop import check_loop
from callslip.errors import UsageError
from callslip.events import Event, Progress
from callslip.runs._conversation import said, told, worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context as ContextVariables
    from types import TracebackType
    from typing import Any

    from callslip._core import Command
    from callslip._runtime.session import Session
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
        self._ahead: deque[Event | Delta | Progress] = deque()
        # What was told from other threads and is still to be taken over to the loop.
        self._noticed: deque[Progress] = deque(maxlen=_AHEAD)
        self._is_noticing = False
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._early: _Early | None = None
        # Others may say something in the very moment in which the block is left.
        self._lock = threading.Lock()
        self._is_open = False
        # Whether the run goes on, and the task for that is still to be made.
        self._is_due = False
        # Those that wait for the end, and read nothing meanwhile.
        self._waiting: set[object] = set()
        self._loop: asyncio.AbstractEventLoop
        self._context: ContextVariables

    async def __aenter__(self) -> Self:
        check_loop()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._is_open = True
        self._take_up(self._session)
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._is_open = self._is_due = False
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

    def _take_up(self, session: Session) -> None:
        """Begin a run, or go on with it, up to where its driver is needed."""
        session.listener, session.room = self._hear, self._room
        session.notice = self._notice
        # Whoever approves must hear of calls below that wait for it, and there are none otherwise.
        asks = session.agent._asks_for_approval is not None
        session.watches_children = self._children or asks
        self._early = _Early(session, self._session)
        self._session = session

    def _begin(self) -> None:
        if self._is_open:
            self._is_due = False
            task = self._loop.create_task(self._drive(self._session), context=self._context)
            task.add_done_callback(lambda _: self._news.set())
            self._task = task

    async def _drive(self, session: Session) -> None:
        with session:
            await drive(session)

    def _hear(self, item: Event | Delta) -> None:
        if self._children or not isinstance(item, Event) or item.run_id == self.run.id:
            is_wanted = True
        else:
            asks = item.kind in ("ticket_opened", "arguments_filled")
            is_wanted = asks and bool(item.data.get("needs_approval"))
        if is_wanted:
            self._ahead.append(item)
            self._news.set()

    def _notice(self, progress: Progress) -> None:
        """Take progress from any thread: what follows it in a call is told after it."""
        if progress.run_id != self.run.id and not self._children:
            return
        with self._lock:
            self._noticed.append(progress)
            is_due, self._is_noticing = not self._is_noticing, True
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._take_noticed()
        elif is_due:
            # Nobody watches where the loop is closed.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_noticed)

    def _take_noticed(self) -> None:
        with self._lock:
            noticed = list(self._noticed)
            self._noticed.clear()
            self._is_noticing = False
        # It holds up nothing: the run would wait for whoever reads slowly.
        room = max(0, _AHEAD // 2 - len(self._ahead))
        if noticed and room:
            self._ahead.extend(noticed[-room:])
            self._news.set()

    async def _room(self) -> None:
        """Wait until whoever watches has caught up."""
        while len(self._ahead) >= _AHEAD and not self._waiting:
            self._taken.clear()
            await self._taken.wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Delta | Progress:
        if self._task is None:
            raise UsageError("enter the stream first: async with agent.stream(…) as run: …")
        while not self._ahead:
            if self._task.done() and not self._is_due:
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
        """Say more to the run. As `Run.send`; a run that is over goes on by itself.

        Go on iterating. While somebody awaits what this returns, the run waits for no reader.
        """
        while (end := told(self.run, message)) is None:
            if not self._is_open or self._has_failed():
                return self.run.send(message)
            end = self._go_on(message)
            if end is not None:
                break
        return _Answer(self, end)

    def _go_on(self, message: str) -> End | None:
        """Say more to a run that is over, and drive it on. Returns its end."""
        with self._lock:
            # Somebody else may have done so just now, or the block be left.
            if not self._is_open or self.run._driver is not None:
                return None
            commands = said(self.run, message)
            self._take_up(worker(self.run)._reopened(self.run, commands))
            self._is_due = True
            self._loop.call_soon_threadsafe(self._begin)
            return End(self._session.outcome())

    async def awaited(self, end: Awaitable[RunResult]) -> RunResult:
        """Wait for an end without reading on."""
        waiting = object()
        self._waiting.add(waiting)
        self._loop.call_soon_threadsafe(self._taken.set)
        try:
            return await end
        finally:
            self._waiting.discard(waiting)

    def _has_failed(self) -> bool:
        """Whether there is a fault of the driver itself, which is told to whoever iterates."""
        task = self._task
        if task is None or not task.done() or task.cancelled():
            return False
        return task.exception() is not None

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
        return self._session.result()


class _Answer:
    """What comes of more that was said."""

    def __init__(self, stream: RunStream, end: Awaitable[RunResult]) -> None:
        self._stream = stream
        self._end = end

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self._stream.awaited(self._end).__await__()


class _Early:
    """Stands for the driver from the moment a run begins, or goes on, until the task does.

    Attributes:
        is_over: Whether that has begun.
    """

    def __init__(self, session: Session, earlier: Session) -> None:
        self.is_over = False
        self._session = session
        self._earlier = earlier
        self._lock = threading.Lock()
        try:
            self._commands = session.begin(session)
        except BaseException as error:
            session.__exit__(type(error), error, None)
            raise
        session.begin = self._begin
        session.run._drive_by(self)

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

    def _begin(self, session: Session) -> list[Command]:
        with self._lock:
            self.is_over = True
        if self._earlier is not session:
            # What was said in between is told too, and nothing is told twice.
            self._earlier.listener = None
            session.told_to = self._earlier.told_to
        return self._commands
