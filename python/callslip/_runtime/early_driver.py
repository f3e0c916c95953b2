"""The driver of a run until the task of the real one runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from callslip._runtime.on_loop import SessionDriver

if TYPE_CHECKING:
    from collections.abc import Callable

    from callslip._core import Command
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
    """The driver of a run whose instructions are being computed: it can only be cancelled."""

    __slots__ = ()

    def inject(self, make: Callable[[float], list[Command]]) -> bool:
        """Admit a decision, from any thread. As `Driver.inject`."""
        return self._session.inject(make) is not None
