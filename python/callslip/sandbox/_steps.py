"""Steps that take time, each of which is performed in a thread or on an event loop.

What is done with a script, and in what order, is said once, by a generator of steps. `perform`
takes them in this thread, `perform_async` on the running event loop.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from callslip._base import _lazy
from callslip._threads import pool
from callslip.errors import RunnerLost
from callslip.sandbox._display import live_kernel
from callslip.sandbox._events import InputRequest
from callslip.sandbox._text import clean_prompt

if TYPE_CHECKING:
    import asyncio
    from threading import Lock

    from callslip.sandbox._answerers import Answerer
    from callslip.sandbox._approval import PackageApproval
    from callslip.sandbox._collector import EventCollector
    from callslip.sandbox._stream import ScriptStream

__all__ = [
    "ApprovePackages",
    "FollowScript",
    "InThread",
    "Step",
    "Steps",
    "WaitForTurn",
    "awaited_sync",
    "perform",
    "perform_async",
]

T = TypeVar("T")

_LOOK = 0.1
"""Seconds between two checks whether a script is still wanted."""

_HEARTBEAT = 0.2
"""Seconds after which the loop of a notebook wakes, even without events."""

_PATIENCE = 20.0
"""Seconds for a cancelled script to end. Normally it takes milliseconds."""


class Step(Protocol):
    """An operation that takes time."""

    def perform(self, wanted: Callable[[], bool]) -> Any:
        """Perform the step in this thread, while `wanted` returns true."""

    async def perform_async(self) -> Any:
        """Perform the step on the running event loop, until its task is cancelled."""


Steps: TypeAlias = "Generator[Step, Any, T]"


class _ScriptOverError(Exception):
    """The script ended while an answer was awaited."""


def perform(steps: Steps[T], wanted: Callable[[], bool]) -> T:
    """Perform all steps in this thread. Returns their result."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = step.perform(wanted)
            except BaseException as error:  # noqa: BLE001  # the steps handle it
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


async def perform_async(steps: Steps[T]) -> T:
    """Perform all steps on the running event loop. Returns their result."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = await step.perform_async()
            except BaseException as error:  # noqa: BLE001  # the steps handle it
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


class WaitForTurn:
    """Wait until the scripts before this one have ended."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def perform(self, wanted: Callable[[], bool]) -> bool:
        """Wait in this thread. Returns whether the turn has come."""
        while wanted():
            if self._lock.acquire(timeout=_LOOK):
                return True
        return False

    async def perform_async(self) -> bool:
        """Wait without blocking the event loop."""
        while not self._lock.acquire(blocking=False):  # threads wait for it too
            await _lazy.asyncio.sleep(_LOOK / 10)
        return True


class InThread(Generic[T]):
    """Call a function that takes long and knows nothing of the script.

    A call that nobody waits for any more still ends by itself.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function

    def perform(self, wanted: Callable[[], bool]) -> T | None:
        """Wait in this thread. Returns `None` if the script is not wanted any more."""
        future = pool.submit(self._function)
        while wanted():
            try:
                ended = future.result(_LOOK)
            except TimeoutError:
                continue
            return ended.get()
        return None

    async def perform_async(self) -> T:
        """Wait without blocking the event loop."""
        return (await _lazy.asyncio.wrap_future(pool.submit(self._function))).get()


class ApprovePackages:
    """Ask for approval of packages."""

    def __init__(
        self, approval: PackageApproval, requirements: list[str], is_open: Callable[[], bool]
    ) -> None:
        self._approval = approval
        self._requirements = requirements
        self._is_open = is_open

    def perform(self, wanted: Callable[[], bool]) -> bool:
        """Ask in this thread. Returns whether the script is still wanted."""

        def attend() -> None:
            if not (wanted() and self._is_open()):
                raise _ScriptOverError

        try:
            self._approval.decide(self._requirements, attend)
            attend()
        except _ScriptOverError:
            return False
        return True

    async def perform_async(self) -> bool:
        """Ask without blocking the event loop, like `perform`."""
        asking = _lazy.asyncio.ensure_future(self._approval.decide_async(self._requirements))
        try:
            while self._is_open():
                if (await _lazy.asyncio.wait({asking}, timeout=_LOOK))[0]:
                    asking.result()
                    return self._is_open()
            return False
        finally:
            asking.cancel()


class FollowScript:
    """Follow a script, or an installation, to its end.

    Whatever ends this early, the script is dead before it is raised.

    Args:
        stream: The script.
        taking: What is made of its events.
        answerer: Who answers its questions.
    """

    def __init__(
        self, stream: ScriptStream, collector: EventCollector, answerer: Answerer | None = None
    ) -> None:
        self._stream = stream
        self._collector = collector
        self._answerer = answerer
        self._questions: deque[tuple[int, InputRequest]] = deque()
        self._asked = 0

    def perform(self, wanted: Callable[[], bool]) -> None:
        """Follow the script in this thread. Ctrl-C takes effect within a tenth of a second."""
        try:
            while not self._collector.over:
                self._attend(None, wanted)
                if not self._questions:
                    continue
                number, request = self._questions.popleft()
                assert self._answerer is not None
                try:
                    text = self._answerer.ask(
                        request, lambda fd: self._attend_until_over(fd, wanted)
                    )
                except _ScriptOverError:
                    return
                self._stream.answer(number, text)
        except BaseException:
            self._stream.cancel()
            _wait_until_dead(self._stream)
            raise

    def _attend_until_over(self, descriptor: int | None, wanted: Callable[[], bool]) -> None:
        self._attend(descriptor, wanted)
        if self._collector.over:
            raise _ScriptOverError

    def _attend(self, descriptor: int | None, wanted: Callable[[], bool]) -> None:
        """Handle new events; if there are none, wait briefly for one or for a descriptor."""
        if not wanted():
            self._stream.cancel()
        events = self._stream.news()
        if not events and not self._is_over():
            if descriptor is None:
                self._stream.wait(_LOOK)
            else:
                _wait_for(self._stream.fileno(), descriptor)
            events = self._stream.news()
        for event in events:
            told = self._collector.collect(event)
            if told is None:
                continue
            if self._answerer is not None:
                self._answerer.show(told)
            said = self._collector.notify(told)
            if said is not None:
                awaited_sync(said, lambda: None)
            self._queue_question(event)

    def _is_over(self) -> bool:
        if not self._stream.over:
            return False
        if not self._collector.over:
            raise RunnerLost("the runner ended without saying what came of the script")
        return True

    def _queue_question(self, event: dict[str, Any]) -> None:
        if event["type"] == "input_request":
            self._asked += 1
            prompt = clean_prompt(event["prompt"])
            request = InputRequest(prompt, event["secret"], self._asked)
            self._questions.append((event["id"], request))

    async def perform_async(self) -> None:
        """Follow the script on the running event loop."""
        loop = _lazy.asyncio.get_running_loop()
        news = _lazy.asyncio.Event()
        loop.add_reader(self._stream.fileno(), news.set)
        asking: asyncio.Task[None] | None = None
        try:
            while not self._collector.over:
                news.clear()
                await self._take_news()
                if asking is not None and asking.done():
                    asking.result()
                    asking = None
                if asking is None and self._questions:
                    asking = loop.create_task(self._answer(*self._questions.popleft()))
                    asking.add_done_callback(lambda _: news.set())
                if not self._is_over():
                    # A kernel notices an interrupt only when its loop wakes.
                    beat = loop.call_later(_HEARTBEAT, news.set) if live_kernel() else None
                    await news.wait()
                    if beat is not None:
                        beat.cancel()
        except GeneratorExit:
            # The coroutine is being closed, so it cannot await anything.
            self._stream.cancel()
            raise
        except BaseException:
            self._stream.cancel()
            await _until_dead(self._stream)
            raise
        finally:
            loop.remove_reader(self._stream.fileno())
            if asking is not None:
                asking.cancel()

    async def _take_news(self) -> None:
        for event in self._stream.news():
            told = self._collector.collect(event)
            if told is None:
                continue
            if self._answerer is not None:
                self._answerer.show(told)
            said = self._collector.notify(told)
            if said is not None:
                await said
            self._queue_question(event)

    async def _answer(self, number: int, request: InputRequest) -> None:
        assert self._answerer is not None
        self._stream.answer(number, await self._answerer.ask_async(request))


def awaited_sync(awaitable: Awaitable[T], attend: Callable[[], None]) -> T:
    """Await on the private loop and wait in this thread, calling `attend` regularly meanwhile."""

    async def wait() -> T:
        return await awaitable

    future = pool.on_loop(wait())
    try:
        while True:
            try:
                ended = future.result(_LOOK)
            except TimeoutError:
                attend()
            else:
                return ended.get()
    except BaseException:
        future.cancel()
        raise


def _wait_for(*descriptors: int) -> None:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    poll.poll(_LOOK * 1000)


def _wait_until_dead(stream: ScriptStream) -> None:
    until = time.monotonic() + _PATIENCE
    while not stream.over and time.monotonic() < until:
        stream.wait(_LOOK)
        stream.news()


async def _until_dead(stream: ScriptStream) -> None:
    loop = _lazy.asyncio.get_running_loop()
    until = loop.time() + _PATIENCE
    while not stream.over and loop.time() < until:
        stream.news()
        try:
            await _lazy.asyncio.sleep(0.005)
        except _lazy.asyncio.CancelledError:
            # The first cancellation is raised once the script is dead.
            continue
