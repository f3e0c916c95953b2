"""The tasks of a run on an event loop, and the end that they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from callslip._core import Command

__all__ = ["Finish", "Siblings"]


class Finish:
    """Whether the run has finished. Its event is only made if something waits for it."""

    __slots__ = ("_event", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._event: asyncio.Event | None = None

    def set(self) -> None:
        self.is_set = True
        if self._event is not None:
            self._event.set()

    def clear(self) -> None:
        self.is_set = False
        if self._event is not None:
            self._event.clear()

    async def wait(self) -> None:
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


class Siblings:
    """The tasks beside the driver's own, and the commands that wait until there is a group."""

    __slots__ = ("group", "queue")

    def __init__(self) -> None:
        self.group: asyncio.TaskGroup | None = None
        self.queue: list[Command] = []

    def take_queue(self) -> list[Command]:
        queue, self.queue = self.queue, []
        return queue

    def create_task(
        self, coroutine: Coroutine[Any, Any, object], context: ContextVariables | None
    ) -> None:
        assert self.group is not None
        try:
            self.group.create_task(coroutine, context=context)
        except RuntimeError:
            # The group is being cancelled, or has failed: it starts nothing any more.
            coroutine.close()
