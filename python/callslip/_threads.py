"""The threads that sync tools and sync models run in, and the one private event loop of `run_sync`.

Both are made on first use and made anew in a forked child, where threads do not exist.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from callslip._gate import Gate

__all__ = ["WORKERS", "is_on_loop", "on_loop", "pool", "submit", "submit_inside", "to_end_on_loop"]

T = TypeVar("T")

WORKERS = 32
"""The most threads there are at once."""

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_loop: asyncio.AbstractEventLoop | None = None


def pool() -> ThreadPoolExecutor:
    """Return the pool of this process."""
    global _pool  # noqa: PLW0603
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="callslip")
        return _pool


def submit(function: Callable[..., T], /, *args: Any) -> Future[T]:
    """Call a function in the pool, with the caller's context variables."""
    return pool().submit(copy_context().run, function, *args)


def submit_inside(gate: Gate, function: Callable[..., T], /, *args: Any) -> Future[T]:
    """As `submit`; the caller's slot is taken until the thread has come back, even if given up."""
    leave = gate.share()
    try:
        future = submit(function, *args)
    except BaseException:
        leave()
        raise
    future.add_done_callback(lambda _: leave())
    return future


def on_loop(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the private loop, with the caller's context variables."""
    import asyncio

    loop = _private_loop()
    future: Future[T] = Future()

    async def relay() -> None:
        try:
            result = await coroutine
        except BaseException as error:  # noqa: BLE001  # it is the waiter's to handle
            _tell(future.set_exception, error)
        else:
            _tell(future.set_result, result)

    def begin() -> None:
        if future.cancelled():
            # It was given up before its turn came.
            coroutine.close()
            return
        task = asyncio.ensure_future(relay())
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
        )

    loop.call_soon_threadsafe(begin, context=copy_context())
    return future


def _tell(give: Callable[[Any], None], outcome: object) -> None:
    with suppress(InvalidStateError):  # whoever waited has given it up
        give(outcome)


def to_end_on_loop(
    coroutine: Coroutine[Any, Any, T],
) -> tuple[Future[T], Callable[[], object]]:
    """Run a coroutine on the private loop, and never leave it before its end.

    Returns:
        What comes of it, told once it has ended; and what cancels it.
    """
    import asyncio

    loop = _private_loop()
    future: Future[T] = Future()
    tasks: list[asyncio.Task[T]] = []

    def ended(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            future.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    def begin() -> None:
        tasks.append(asyncio.ensure_future(coroutine))
        tasks[0].add_done_callback(ended)

    def cancel() -> None:
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    loop.call_soon_threadsafe(begin, context=copy_context())
    return future, cancel


def is_on_loop() -> bool:
    """Whether this code runs on the private loop, which nothing must hold up."""
    import asyncio

    try:
        return asyncio.get_running_loop() is _loop
    except RuntimeError:
        return False


def _private_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    global _loop  # noqa: PLW0603
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
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
