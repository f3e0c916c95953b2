"""The end of a session: its result, and a gate for what comes into the run from outside."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from callslip._base import _lazy
from callslip.errors import CallslipError, RunFailed, StoreError
from callslip.runs import Run

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callslip.runs import RunResult

__all__ = ["SessionEnd", "fault_of_program", "put_run"]


class SessionEnd:
    """How a session ends, and whether anything is still admitted to it.

    A message may come at the very moment at which the driver finds the run finished. While this is
    entered, which locks it, the driver cannot leave, and once it is closed, nothing is admitted.

    Args:
        result_of: Returns the result of the run, which is over, or raises as `Agent.run` does.

    Attributes:
        is_closed: Whether nothing is admitted any more.
        was_abandoned: Whether the session has ended, though its driver may still be in memory.
    """

    __slots__ = (
        "_future",
        "_has_left",
        "_lock",
        "_outcome",
        "_result_of",
        "is_closed",
        "was_abandoned",
    )

    def __init__(self, result_of: Callable[[], RunResult]) -> None:
        self.is_closed = self.was_abandoned = False
        self._lock = threading.RLock()
        self._result_of = result_of
        # Another thread may continue the run as soon as this driver has left.
        self._outcome: RunResult | BaseException | None = None
        self._future: Future[RunResult] | None = None
        self._has_left = False

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def close(self) -> None:
        """Admit nothing from now on."""
        with self:
            self.is_closed = True

    def future(self) -> Future[RunResult]:
        """Return a future for the result, to be awaited outside of the driver."""
        with self:
            if self._future is None:
                self._future = _lazy.futures.Future()
                if self._has_left:
                    self._resolve(self._future)
            return self._future

    def result(self) -> RunResult:
        """Return the result of the run, which is over. Raises as `Agent.run` does."""
        if self._outcome is None:
            try:
                self._outcome = self._result_of()
            except Exception as failure:
                self._outcome = failure
                raise
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def leave(self, error: BaseException | None, clear: Callable[[], object]) -> None:
        """Resolve the future: the driver leaves.

        Args:
            error: The error if the run is not over, or was cancelled for an error of the program;
                `None` if it is over with an end of its own.
            clear: Called while nothing is admitted.
        """
        if error is None:
            with contextlib.suppress(Exception):
                self.result()
        else:
            self._outcome = error
        with self:
            clear()
            self._has_left = True
            if self._future is not None and not self._future.done():
                self._resolve(self._future)

    def _resolve(self, future: Future[RunResult]) -> None:
        try:
            future.set_result(self.result())
        except BaseException as failure:  # noqa: BLE001  # it is raised where the future is awaited
            future.set_exception(failure)


def fault_of_program(error: BaseException | None) -> Exception | None:
    """Return the error of the program for which its run was cancelled; `None` if it is none."""
    if isinstance(error, Exception) and not isinstance(error, (RunFailed, StoreError)):
        return error
    return None


def put_run(error: BaseException, run: Run) -> None:
    """Let an exception carry the run that it has ended. The caller knows the run at the top."""
    known = getattr(error, "run", None)
    is_free = isinstance(known, Run) and not isinstance(error, CallslipError)
    if known is None or is_free:
        # An exception may have no room for it.
        with contextlib.suppress(Exception):
            error.run = run  # type: ignore[attr-defined]
