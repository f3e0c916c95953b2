"""Cancelling one piece of work of a task, and nothing else that the task does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["CancelScope", "cancellations_before", "raise_cancelled"]


class CancelScope:
    """A piece of work that can be cancelled without cancelling the task that does it.

    asyncio cancels whole tasks and counts how often. A scope knows that count from before its work,
    so it can tell three kinds of `CancelledError` apart. If `cancel` was called, the error ends at
    the end of the scope, and the count is as it was before. If the task was cancelled, the error
    passes, and `is_task_cancelled` is true. If neither was, the work awaited something that was
    cancelled: the error passes too, but is an ordinary failure of the work.

    Args:
        task: The task that does the work.
        count: How often the task had been cancelled before: those cancellations are not for this
            work.

    Attributes:
        cancel_called: Whether `cancel` was called.
        cancelled_caught: Whether the work ended with the `CancelledError` of `cancel`.
    """

    __slots__ = (
        "_expected",
        "_is_closed",
        "_is_delivered",
        "_task",
        "cancel_called",
        "cancelled_caught",
    )

    def __init__(self, task: asyncio.Task[Any], count: int = 0) -> None:
        self._task = task
        # With the scope's own cancellation, from its delivery to the end of the work.
        self._expected = count
        self._is_closed = False
        self.cancel_called: bool = False
        self.cancelled_caught: bool = False

    def cancel(self) -> None:
        """Cancel the work. Only from the thread of the event loop; a second call does nothing."""
        if self.cancel_called:
            return
        self.cancel_called, self._is_delivered = True, False
        loop = self._task.get_loop()
        if asyncio.current_task(loop) is not self._task:
            self._deliver()
        else:
            # The work itself has caused this, and may be over before it awaits anything.
            loop.call_soon(self._deliver)

    @property
    def is_task_cancelled(self) -> bool:
        """Whether the task as a whole was cancelled, also if the work has ignored that."""
        return self._task.cancelling() > self._expected

    def is_for_task(self, error: BaseException) -> bool:
        """Whether an exception of the work ends the task, and is no failure of the work."""
        if isinstance(error, asyncio.CancelledError):
            return self.is_task_cancelled
        if isinstance(error, GeneratorExit):
            # A coroutine is closed outside of its task if nothing runs it any more.
            return asyncio.current_task(self._task.get_loop()) is not self._task
        return not isinstance(error, Exception)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._is_closed = True
        if not self.cancel_called:
            return False
        if self._is_delivered:
            self._expected -= 1
            if self.is_task_cancelled:
                self._task.uncancel()
        self.cancelled_caught = (
            isinstance(error, asyncio.CancelledError) and not self.is_task_cancelled
        )
        return self.cancelled_caught

    def _deliver(self) -> None:
        if not self._is_closed and self._task.cancel():
            self._expected += 1
            self._is_delivered = True


def cancellations_before(task: asyncio.Task[Any]) -> int:
    """Return how often a running task was cancelled and continued all the same.

    A cancellation that is still to be raised in the task is not one of these.
    """
    return task.cancelling() - bool(getattr(task, "_must_cancel", False))


async def raise_cancelled() -> None:
    """Raise `CancelledError` in a task that was cancelled, if its work has ignored that.

    Raises:
        asyncio.CancelledError: Always.
    """
    # If the error is still to be raised in the task, it is raised here, and not once more later.
    await asyncio.sleep(0)
    raise asyncio.CancelledError
