"""Steps that take time, each of which is performed in a thread or on an event loop.

What is done with a script, and in what order, is said once, by a generator of steps. `perform`
takes them in this thread, `perform_async` on the running event loop.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from callslip import _lazy
from callslip._threads import pool
from callslip.errors import RunnerLost
from callslip.sandbox._display import live_kernel
from callslip.sandbox._events import InputRequest
from callslip.sandbox._text import shown_prompt

if TYPE_CHECKING:
    import asyncio
    from threading import Lock

    from callslip.sandbox._answer import Answerer
    from callslip.sandbox._approve import Approval
    from callslip.sandbox._stream import ScriptStream
    from callslip.sandbox._taking import Taking

__all__ = ["Approve", "Follow", "Step", "Steps", "Turn", "awaited_sync", "perform", "perform_async"]

T = TypeVar("T")

_LOOK = 0.1
"""Seconds after which it is looked whether a script is still wanted."""

_HEARTBEAT = 0.2
"""Seconds after which a loop of a notebook wakes, whether there is news or not."""

_PATIENCE = 20.0
"""Seconds for a script that was cancelled to be dead. It takes milliseconds, but for a fault."""


class Step(Protocol):
    """One thing that takes time."""

    def perform(self, wanted: Callable[[], bool]) -> Any:
        """Do it in this thread, as long as it is `wanted`."""

    async def perform_async(self) -> Any:
        """Do it on the running event loop, until its task is cancelled."""


Steps: TypeAlias = "Generator[Step, Any, T]"


class _OverError(Exception):
    """The script ended while something else was waited for."""


def perform(steps: Steps[T], wanted: Callable[[], bool]) -> T:
    """Take steps to their end, in this thread."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = step.perform(wanted)
            except BaseException as error:  # noqa: BLE001  # the steps say what is to be done
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


async def perform_async(steps: Steps[T]) -> T:
    """Take steps to their end, on the running event loop."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = await step.perform_async()
            except BaseException as error:  # noqa: BLE001  # the steps say what is to be done
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


class Turn:
    """Wait until the scripts before this one have ended."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def perform(self, wanted: Callable[[], bool]) -> bool:
        """Wait in this thread. Returns whether it has come to that."""
        while wanted():
            if self._lock.acquire(timeout=_LOOK):
                return True
        return False

    async def perform_async(self) -> bool:
        """Wait without holding up the event loop."""
        while not self._lock.acquire(blocking=False):  # threads wait for it too
            await _lazy.asyncio.sleep(_LOOK / 10)
        return True


class Approve:
    """Have somebody say whether packages may be installed."""

    def __init__(
        self, approval: Approval, requirements: list[str], is_open: Callable[[], bool]
    ) -> None:
        self._approval = approval
        self._requirements = requirements
        self._is_open = is_open

    def perform(self, wanted: Callable[[], bool]) -> bool:
        """Ask in this thread. Returns whether the script is still wanted."""

        def attend() -> None:
            if not (wanted() and self._is_open()):
                raise _OverError

        try:
            self._approval.decide(self._requirements, attend)
            attend()
        except _OverError:
            return False
        return True

    async def perform_async(self) -> bool:
        """Ask without holding up the event loop. As `perform`."""
        asking = _lazy.asyncio.ensure_future(self._approval.decide_async(self._requirements))
        try:
            while self._is_open():
                if (await _lazy.asyncio.wait({asking}, timeout=_LOOK))[0]:
                    asking.result()
                    return self._is_open()
            return False
        finally:
            asking.cancel()


class Follow:
    """Follow a script, or an installation, to its end.

    Whatever ends this early, the script is dead before it is raised.

    Args:
        stream: The script.
        taking: What is made of its events.
        answerer: Who answers its questions.
    """

    def __init__(
        self, stream: ScriptStream, taking: Taking, answerer: Answerer | None = None
    ) -> None:
        self._stream = stream
        self._taking = taking
        self._answerer = answerer
        self._questions: deque[tuple[int, InputRequest]] = deque()
        self._asked = 0

    def perform(self, wanted: Callable[[], bool]) -> None:
        """Follow it in this thread. Ctrl-C is answered within a tenth of a second."""
        try:
            while not self._taking.over:
                self._attend(None, wanted)
                if not self._questions:
                    continue
                number, request = self._questions.popleft()
                assert self._answerer is not None
                try:
                    text = self._answerer.ask(request, lambda fd: self._still(fd, wanted))
                except _OverError:
                    return
                self._stream.answer(number, text)
        except BaseException:
            self._stream.cancel()
            _wait_until_dead(self._stream)
            raise

    def _still(self, descriptor: int | None, wanted: Callable[[], bool]) -> None:
        self._attend(descriptor, wanted)
        if self._taking.over:
            raise _OverError

    def _attend(self, descriptor: int | None, wanted: Callable[[], bool]) -> None:
        """Take the news there is, else wait a little for some or for a descriptor."""
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
            told = self._taking.take(event)
            if told is None:
                continue
            if self._answerer is not None:
                self._answerer.show(told)
            said = self._taking.tell(told)
            if said is not None:
                awaited_sync(said, lambda: None)
            self._note(event)

    def _is_over(self) -> bool:
        if not self._stream.over:
            return False
        if not self._taking.over:
            raise RunnerLost("the runner ended without saying what came of the script")
        return True

    def _note(self, event: dict[str, Any]) -> None:
        if event["type"] == "input_request":
            self._asked += 1
            prompt = shown_prompt(event["prompt"])
            request = InputRequest(prompt, event["secret"], self._asked)
            self._questions.append((event["id"], request))

    async def perform_async(self) -> None:
        """Follow it on the running event loop."""
        loop = _lazy.asyncio.get_running_loop()
        news = _lazy.asyncio.Event()
        loop.add_reader(self._stream.fileno(), news.set)
        asking: asyncio.Task[None] | None = None
        try:
            while not self._taking.over:
                news.clear()
                await self._take_news()
                if asking is not None and asking.done():
                    asking.result()
                    asking = None
                if asking is None and self._questions:
                    asking = loop.create_task(self._answer(*self._questions.popleft()))
                    asking.add_done_callback(lambda _: news.set())
                if not self._is_over():
                    # An interrupt of a kernel is heard only when its loop wakes.
                    beat = loop.call_later(_HEARTBEAT, news.set) if live_kernel() else None
                    await news.wait()
                    if beat is not None:
                        beat.cancel()
        except GeneratorExit:
            # Nobody runs this any more, so nothing can be waited for.
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
            told = self._taking.take(event)
            if told is None:
                continue
            if self._answerer is not None:
                self._answerer.show(told)
            said = self._taking.tell(told)
            if said is not None:
                await said
            self._note(event)

    async def _answer(self, number: int, request: InputRequest) -> None:
        assert self._answerer is not None
        self._stream.answer(number, await self._answerer.ask_async(request))


def awaited_sync(awaitable: Awaitable[T], attend: Callable[[], None]) -> T:
    """Wait in this thread for what is awaited on the private loop, and attend to something else."""

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
            # The first one is raised once the script is dead; until then there is nothing to undo.
            continue
