"""The driver of a run until the task of the real one runs."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from callslip._base import _lazy
from callslip._runtime.on_loop import SessionDriver
from callslip.errors import RunCancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from callslip._core import Command
    from callslip._runtime.cancel_scope import CancelScope
    from callslip._runtime.session import RunSession

__all__ = ["EarlyDriver", "UnstartedDriver"]


class EarlyDriver(SessionDriver):
    """The driver of a run from its start, or its next turn, until the task of the real driver runs.

    Attributes:
        is_over: Whether that task runs.
    """

    __slots__ = ("_commands", "_lock", "is_over")

    def __init__(self, session: RunSession) -> None:
        super().__init__(session)
        self.is_over = False
        self._lock = threading.Lock()
        try:
            self._commands = session.beginning.first_commands(session)
        except BaseException as error:
            session.__exit__(type(error), error, None)
            raise
        session.beginning.first_commands = self._take_commands
        session.run._set_driver(self)

    @classmethod
    def of(cls, session: RunSession) -> EarlyDriver:
        """Return the one that a session has since its run was opened, or a new one."""
        driver = session.run._driver
        return driver if isinstance(driver, cls) else cls(session)

    def inject(self, make: Callable[[float], list[Command]]) -> bool:
        """Admit a message or a decision, from any thread. As `Driver.inject`."""
        with self._lock:
            core = self._session.core
            was_over = core.finished
            commands = None if self.is_over else self._session.inject(make)
            if commands is None:
                return False
            # Earlier commands are void if the run has ended, or continues after its end.
            if core.finished != was_over:
                self._commands = []
            self._commands += commands
            return True

    def _take_commands(self, _: RunSession) -> list[Command]:
        with self._lock:
            self.is_over = True
        return self._commands


class UnstartedDriver(SessionDriver):
    """The driver of a run whose functions are called before it begins: it can only be cancelled.

    A run that is cancelled then never began: nothing of it is written down.
    """

    __slots__ = ("_is_cancelled", "_is_over", "_lock", "_loop", "_scope")

    def __init__(self, session: RunSession) -> None:
        super().__init__(session)
        self._loop = _lazy.asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._scope: CancelScope | None = None
        self._is_cancelled = self._is_over = False
        session.run._set_driver(self)
        session.beginning.unstarted = self

    def inject(self, make: Callable[[float], list[Command]]) -> bool:
        """Refuse a message or a decision, from any thread. As `Driver.inject`."""
        with self._lock:
            # The core raises: the run has not begun.
            return not self._is_over and self._session.inject(make) is not None

    def cancel_unstarted(self) -> bool:
        """Cancel the run, from any thread. As `Driver.cancel_unstarted`."""
        with self._lock:
            if self._is_over:
                return False
            self._is_cancelled = True
            scope = self._scope
        if scope is not None:
            # If the loop is closed, nothing waits for the functions any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(scope.cancel)
        return True

    def is_wanted_in(self, scope: CancelScope) -> bool:
        """Whether the functions are to be called: in this scope, which `cancel` cancels."""
        with self._lock:
            self._scope = scope
            return not self._is_cancelled

    def leave(self) -> None:
        """Make way for the real driver.

        Raises:
            RunCancelled: The run was cancelled meanwhile.
        """
        with self._lock:
            if self._is_cancelled:
                raise RunCancelled("the run was cancelled", self._session.run)
            self._is_over = True
