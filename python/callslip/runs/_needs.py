"""The parts of stores and agents that runs use. Both stand above runs, which cannot import them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from callslip.runs._result import AnswerT

if TYPE_CHECKING:
    from callslip import _core
    from callslip._threads.commits import Commits
    from callslip.runs._result import RunResult
    from callslip.runs._run import Run
    from callslip.runs._stored import StoredRun

__all__ = ["AgentOfRun", "AnswersOfRun", "StoreOfRun"]


class StoreOfRun(Protocol):
    """The part of `TicketStore` that runs use."""

    _closed: bool
    _commits: Commits
    _shared: _core.SharedRuns | None
    _was_told: Callable[[str], None] | None

    @property
    def _identity(self) -> str | int: ...

    @property
    def _native(self) -> _core.Store: ...

    def _end_children(self, run_id: str, tickets: Collection[str] | None = None) -> None: ...

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]: ...

    def run(self, run_id: str, /) -> Run[Any]: ...

    def runs(self, *, parent: str) -> Sequence[StoredRun]: ...


class AnswersOfRun(Protocol):
    """The part of an agent's `returns` that runs use."""

    def value(self, answer: Any) -> Any: ...

    def value_of_other(self, answer: Any) -> Any: ...


class _Protocol(Protocol):
    @property
    def name(self) -> str: ...


class AgentOfRun(Protocol[AnswerT]):
    """The part of `Agent` that runs use: it continues a run after its end."""

    @property
    def name(self) -> str: ...

    @property
    def protocol(self) -> _Protocol: ...

    @property
    def _answers(self) -> AnswersOfRun: ...

    @property
    def _waits_for(self) -> tuple[Any, Any]: ...

    def _check_continues(self, run: Run) -> None: ...

    def _continue(
        self, run: Run, commands: list[_core.Command]
    ) -> Awaitable[RunResult[AnswerT]]: ...

    def _continue_sync(self, run: Run, commands: list[_core.Command]) -> RunResult[AnswerT]: ...
