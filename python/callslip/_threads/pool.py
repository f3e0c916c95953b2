"""The threads that sync tools and sync models run in, and the one private event loop of `run_sync`.

Both are made on first use and made anew in a forked child, where threads do not exist. All of them
are daemons: a function that never returns keeps no program from ending.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from callslip import _lazy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from callslip._threads.gate import Gate
    from callslip.models._reply import ReplyStream

__all__ = [
    "WORKERS",
    "Ended",
    "close_soon",
    "in_thread",
    "is_on_loop",
    "on_loop",
    "result_of",
    "submit",
    "submit_inside",
    "submit_next",
    "to_end_on_loop",
]

T = TypeVar("T")

WORKERS = 32
"""The most threads there are at once."""

_lock = threading.Lock()
_pool: _Pool | None = None
_loop: asyncio.AbstractEventLoop | None = None


class Ended(Generic[T]):
    """What came of a function: futures carry this, and never an exception.

    They take some exceptions for their own (`CancelledError`, `TimeoutError`), and those of asyncio
    refuse others (`StopIteration`), so that whoever waits would wait for ever.

    Attributes:
        error: What it raised; `None` where it returned.
    """

    __slots__ = ("_value", "error")

    def __init__(self, value: T | None = None, error: BaseException | None = None) -> None:
        self._value = value
        self.error = error

    @classmethod
    def of(cls, function: Callable[..., T], /, *args: Any) -> Ended[T]:
        """Call a function."""
        try:
            return cls(function(*args))
        except BaseException as error:  # noqa: BLE001  # it is the waiter's to handle
            return cls(error=error)

    def get(self) -> T:
        """Return what it returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return cast("T", self._value)


class _Pool:
    """Threads that end with the program, unlike those of a `ThreadPoolExecutor`."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[tuple[Future[Any], Callable[[], Ended[Any]]]] = SimpleQueue()
        # As many as there are threads that wait for something to do.
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def submit(self, perform: Callable[[], Ended[T]]) -> Future[Ended[T]]:
        future: Future[Ended[T]] = Future()
        self._todo.put((future, perform))
        if not self._idle.acquire(blocking=False):
            try:
                self._grow()
            except BaseException:
                # No thread is to take up what nobody waits for.
                future.cancel()
                raise
        return future

    def _grow(self) -> None:
        with self._lock:
            if self._count == WORKERS:
                return
            name = f"callslip_{self._count}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._count += 1

    def _work(self) -> None:
        while True:
            future, perform = self._todo.get()
            if future.set_running_or_notify_cancel():
                future.set_result(perform())
            # What was done is not kept while there is nothing to do.
            del future, perform
            self._idle.release()


def submit(function: Callable[..., T], /, *args: Any) -> Future[Ended[T]]:
    """Call a function in the pool, with the caller's context variables."""
    global _pool  # noqa: PLW0603
    with _lock:
        if _pool is None:
            _pool = _Pool()
        pool = _pool
    return pool.submit(partial(copy_context().run, Ended.of, function, *args))


def submit_inside(gate: Gate, function: Callable[..., T], /, *args: Any) -> Future[Ended[T]]:
    """As `submit`; the caller's slot is taken until the thread has come back, even if given up."""
    leave = gate.share()
    try:
        future = submit(function, *args)
    except BaseException:
        leave()
        raise
    future.add_done_callback(lambda _: leave())
    return future


def submit_next(items: Iterator[T], gate: Gate | None) -> Future[Ended[T | None]]:
    """Take the next of some items in the pool; `None` is their end. As `submit_inside`."""
    if gate is None:
        return submit(next, items, None)
    return submit_inside(gate, next, items, None)


def close_soon(stream: ReplyStream, reading: Future[Any] | None) -> None:
    """Close a stream that is given up, in which a thread may still be reading."""
    # That may end the reading: of a connection, but not of a generator.
    submit(stream.close)
    if reading is not None and not reading.done():
        reading.add_done_callback(lambda _: submit(stream.close))


def on_loop(coroutine: Coroutine[Any, Any, T]) -> Future[Ended[T]]:
    """Run a coroutine on the private loop, with the caller's context variables."""
    loop = _private_loop()
    future: Future[Ended[T]] = Future()

    async def relay() -> None:
        try:
            ended = Ended(await coroutine)
        except BaseException as error:  # noqa: BLE001  # it is the waiter's to handle
            ended = Ended(error=error)
        with suppress(InvalidStateError):  # whoever waited has given it up
            future.set_result(ended)

    def begin() -> None:
        if future.cancelled():
            # It was given up before its turn came.
            coroutine.close()
            return
        task = _lazy.asyncio.ensure_future(relay())
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
        )

    loop.call_soon_threadsafe(begin, context=copy_context())
    return future


def to_end_on_loop(
    coroutine: Coroutine[Any, Any, T],
) -> tuple[Future[Ended[T]], Callable[[], object]]:
    """Run a coroutine on the private loop, and never leave it before its end.

    Returns:
        What comes of it, told once it has ended; and what cancels it.
    """
    loop = _private_loop()
    future: Future[Ended[T]] = Future()
    tasks: list[asyncio.Task[T]] = []

    def ended(task: asyncio.Task[T]) -> None:
        error = _lazy.asyncio.CancelledError() if task.cancelled() else task.exception()
        future.set_result(Ended(task.result()) if error is None else Ended(error=error))

    def begin() -> None:
        tasks.append(_lazy.asyncio.ensure_future(coroutine))
        tasks[0].add_done_callback(ended)

    def cancel() -> None:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    loop.call_soon_threadsafe(begin, context=copy_context())
    return future, cancel


def is_on_loop() -> bool:
    """Whether this code runs on the private loop, which nothing must hold up."""
    try:
        return _lazy.asyncio.get_running_loop() is _loop
    except RuntimeError:
        return False


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603
    with _lock:
        if _loop is None:
            _loop = _lazy.asyncio.new_event_loop()
            threading.Thread(target=_run, args=(_loop,), name="callslip-loop", daemon=True).start()
        return _loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # asyncio raises these two out of the loop as well, however deep in a task they came up.
        # The task's own waiter is told of them; the loop serves others too and lives on.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
            return


def _forget() -> None:
    global _lock, _pool, _loop  # noqa: PLW0603
    _lock = threading.Lock()
    _pool = None
    _loop = None


os.register_at_fork(after_in_child=_forget)


async def in_thread(function: Callable[..., T], /, *args: Any) -> T:
    """Call a function of the user's in a thread of the pool.

    Raises:
        BaseException: What it raised; for a `StopIteration` a `RuntimeError`, as of any coroutine.
    """
    return await result_of(submit(function, *args))


async def result_of(future: Future[Ended[T]]) -> T:
    """Wait for what is done in another thread, and return it or raise what it raised."""
    return (await _lazy.asyncio.wrap_future(future)).get()
