"""The pools of threads, for tools and models and for the runtime, and the private event loop.

Threads and loop are made on first use, and again in a forked child, where they do not exist. All
threads are daemons: a function that never returns does not keep a program from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from callslip._base import _lazy
from callslip._threads.forks import after_in_child

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from callslip._threads.gate import Gate

__all__ = [
    "OWN_WORKERS",
    "WORKERS",
    "Result",
    "close_soon",
    "coroutine_of",
    "in_own_thread",
    "in_thread",
    "is_on_loop",
    "on_loop",
    "result_of",
    "run_to_end_on_loop",
    "submit",
    "submit_inside",
    "submit_next",
    "submit_own",
]

T = TypeVar("T")

WORKERS = 32
"""The largest number of threads for tools and models."""

OWN_WORKERS = 16
"""The same for the runtime's own work."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


class Result(Generic[T]):
    """The result or the exception of a function, as the result of a future.

    Futures mistake some exceptions for their own (`CancelledError`, `TimeoutError`), and futures of
    asyncio refuse others (`StopIteration`), so that they would never be done.

    Attributes:
        error: The exception; `None` if the function returned.
    """

    __slots__ = ("_value", "error")

    def __init__(self, value: T | None = None, error: BaseException | None = None) -> None:
        self._value = value
        self.error = error

    @classmethod
    def of(cls, function: Callable[..., T], /, *args: Any) -> Result[T]:
        """Call a function, and return its result or its exception."""
        try:
            return cls(function(*args))
        except BaseException as error:  # noqa: BLE001  # raised by `get`
            return cls(error=error)

    def get(self) -> T:
        """Return the result, or raise the exception."""
        if self.error is not None:
            raise self.error
        return cast("T", self._value)


class _Pool:
    """Threads that end with the program, unlike those of a `ThreadPoolExecutor`.

    Args:
        name: What their names begin with.
        most: The largest number of them.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._todo: SimpleQueue[tuple[Future[Any], Callable[[], Result[Any]]]] = SimpleQueue()
        # Counts the idle threads.
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def submit(self, function: Callable[..., T], /, *args: Any) -> Future[Result[T]]:
        """Call a function in one of them, with the context variables of the caller."""
        future: Future[Result[T]] = Future()
        self._todo.put((future, partial(copy_context().run, Result.of, function, *args)))
        if not self._idle.acquire(blocking=False):
            try:
                self._grow()
            except BaseException:
                # The caller gets the exception, so no thread must call the function later.
                future.cancel()
                raise
        return future

    def _grow(self) -> None:
        with self._lock:
            if self._count == self._most:
                return
            name = f"{self._name}_{self._count}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._count += 1

    def _work(self) -> None:
        while True:
            future, perform = self._todo.get()
            if future.set_running_or_notify_cancel():
                future.set_result(perform())
            # An idle thread keeps no references to its last work.
            del future, perform
            self._idle.release()


_pool = _Pool("callslip", WORKERS)
_own_pool = _Pool("callslip-own", OWN_WORKERS)


def submit(function: Callable[..., T], /, *args: Any) -> Future[Result[T]]:
    """Call a function in the pool, with the context variables of the caller."""
    return _pool.submit(function, *args)


def submit_own(function: Callable[..., T], /, *args: Any) -> Future[Result[T]]:
    """Do a part of the runtime's own work in a thread, such as a step in a store. As `submit`.

    Tools and models can't occupy these threads. They can occupy those of asyncio, where a claim
    or a cancel would wait for them.
    """
    return _own_pool.submit(function, *args)


def submit_inside(gate: Gate, function: Callable[..., T], /, *args: Any) -> Future[Result[T]]:
    """As `submit`; the caller's slot of a gate is shared until the function returns."""
    leave = gate.share()
    try:
        future = submit(function, *args)
    except BaseException:
        leave()
        raise
    future.add_done_callback(lambda _: leave())
    return future


def submit_next(items: Iterator[T], gate: Gate | None) -> Future[Result[T | None]]:
    """Return the next item of an iterator, or `None` at its end. As `submit_inside`."""
    if gate is None:
        return submit(next, items, None)
    return submit_inside(gate, next, items, None)


class _Closes(Protocol):
    def close(self) -> None: ...


def close_soon(stream: _Closes, reading: Future[Any] | None) -> None:
    """Close a stream that was given up, while a thread may still be reading from it."""
    # This ends the reading from a connection, but not that from a generator.
    submit(stream.close)
    if reading is not None and not reading.done():
        reading.add_done_callback(lambda _: submit(stream.close))


def coroutine_of(awaitable: Any) -> Coroutine[Any, Any, Any]:
    """Return a coroutine that waits for an awaitable; the awaitable itself if it is one."""
    # Not wrapped, a coroutine that is given up before its start can be closed.
    return awaitable if isinstance(awaitable, CoroutineType) else _wait_for(awaitable)


async def _wait_for(awaitable: Any) -> Any:
    return await awaitable


def on_loop(coroutine: Coroutine[Any, Any, T]) -> Future[Result[T]]:
    """Run a coroutine on the private loop, with the context variables of the caller."""
    loop = _private_loop()
    future: Future[Result[T]] = Future()

    async def relay() -> None:
        try:
            result = Result(await coroutine)
        except BaseException as error:  # noqa: BLE001  # raised by `get`
            result = Result(error=error)
        with suppress(InvalidStateError):  # the future was cancelled
            future.set_result(result)

    def start() -> None:
        if future.cancelled():
            # It was cancelled before its start.
            coroutine.close()
            return
        task = _lazy.asyncio.ensure_future(relay())
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
        )

    loop.call_soon_threadsafe(start, context=copy_context())
    return future


def run_to_end_on_loop(
    coroutine: Coroutine[Any, Any, T],
) -> tuple[Future[Result[T]], Callable[[], object]]:
    """Run a coroutine on the private loop, with a future that is not done before its end.

    Returns:
        The future, and a function that cancels the coroutine.
    """
    loop = _private_loop()
    future: Future[Result[T]] = Future()
    tasks: list[asyncio.Task[T]] = []

    def set_result(task: asyncio.Task[T]) -> None:
        error = _lazy.asyncio.CancelledError() if task.cancelled() else task.exception()
        future.set_result(Result(task.result()) if error is None else Result(error=error))

    def start() -> None:
        tasks.append(_lazy.asyncio.ensure_future(coroutine))
        tasks[0].add_done_callback(set_result)

    def cancel() -> None:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    loop.call_soon_threadsafe(start, context=copy_context())
    return future, cancel


def is_on_loop() -> bool:
    """Whether this code runs on the private loop, which must never be blocked."""
    try:
        return _lazy.asyncio.get_running_loop() is _loop
    except RuntimeError:
        return False


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603
    with _lock:
        if _loop is None:
            _loop = _lazy.asyncio.new_event_loop()
            # Some libraries replace the threads of the loop that calls them, and end them later;
            # but this loop is everybody's.
            _loop.set_default_executor = lambda _: None  # type: ignore[method-assign, assignment]
            threading.Thread(target=_run, args=(_loop,), name="callslip-loop", daemon=True).start()
        return _loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # asyncio also raises these two out of the loop, wherever in a task they were raised. The
        # task's own future has them too, and the loop continues with the other tasks.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
            return


def _reset() -> None:
    global _lock, _pool, _own_pool, _loop  # noqa: PLW0603
    _lock = threading.Lock()
    _pool, _own_pool = _Pool("callslip", WORKERS), _Pool("callslip-own", OWN_WORKERS)
    _loop = None


after_in_child(_reset)


async def in_thread(function: Callable[..., T], /, *args: Any) -> T:
    """Call a function in a thread of the pool, and wait for it.

    Raises:
        BaseException: Its exception; `RuntimeError` for `StopIteration`, as in any coroutine.
    """
    return await result_of(submit(function, *args))


async def in_own_thread(function: Callable[..., T], /, *args: Any) -> T:
    """Call a function in a thread of the runtime's own, and wait for it. As `submit_own`."""
    return await result_of(submit_own(function, *args))


async def result_of(future: Future[Result[T]]) -> T:
    """Wait for a future of this module. Returns the result, or raises the exception."""
    return (await _lazy.asyncio.wrap_future(future)).get()
