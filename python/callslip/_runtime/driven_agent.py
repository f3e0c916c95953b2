"""The parts of an agent that the runtime uses. `Agent` stands above it: it starts the runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from callslip.runs._needs import AgentOfRun, AnswersOfRun
from callslip.runs._result import AnswerT

if TYPE_CHECKING:
    from callslip import _core
    from callslip._runtime.setup import RunSetup
    from callslip.history import HistoryPolicy, Summarize
    from callslip.limits import Limits
    from callslip.models._call import ModelCall
    from callslip.protocols import Protocol as AnyProtocol
    from callslip.runs import Run
    from callslip.store import TicketStore
    from callslip.tools import Context, Tool, ValueLevel
    from callslip.tools._toolbox import Toolbox

__all__ = ["DrivenAgent"]


class _Answers(AnswersOfRun, Protocol):
    """The part of `Answers` that the runtime uses."""

    are_checked: bool
    is_async: bool

    def native(self, protocol: _core.Protocol) -> _core.Protocol: ...

    async def check(self, name: str, answer: Any, context: Context) -> str | None: ...

    def check_sync(self, name: str, answer: Any, context: Context) -> str | None: ...


class _Instructions(Protocol):
    """The part of `Instructions` that the runtime uses."""

    text: str
    is_called: bool

    async def of_run(self, context: Context[Any]) -> str: ...

    def of_run_sync(self, context: Context[Any]) -> str: ...


class DrivenAgent(AgentOfRun[AnswerT], Protocol[AnswerT]):
    """The part of `Agent` that the runtime uses."""

    @property
    def protocol(self) -> AnyProtocol: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def on_limit(self) -> Literal["answer", "raise"]: ...

    @property
    def on_open_tickets(self) -> Literal["wait", "cancel"]: ...

    @property
    def history(self) -> HistoryPolicy | Summarize | None: ...

    @property
    def python(self) -> object | None: ...

    @property
    def roles(self) -> Mapping[str, Any]: ...

    @property
    def store(self) -> TicketStore | None: ...

    @property
    def values(self) -> ValueLevel | None: ...

    @property
    def _ends_at_call(self) -> bool: ...

    @property
    def _model(self) -> ModelCall: ...

    @property
    def _options(self) -> dict[str, Any]: ...

    @property
    def _python_tool(self) -> Tool[..., Any]: ...

    @property
    def _tools(self) -> Toolbox: ...

    @property
    def _answers(self) -> _Answers: ...

    @property
    def _instructions(self) -> _Instructions: ...

    @property
    def _check_task(self) -> Callable[..., Awaitable[None] | None] | None: ...

    @property
    def _needs_deps(self) -> str | None: ...

    @property
    def _for_tasks(self) -> DrivenAgent[Any]: ...

    def _refuses_next(self, run: Run[Any], /) -> Exception | None: ...

    def _for_role(self, role: str) -> DrivenAgent[Any]: ...

    def _in_effect(self) -> Self: ...

    def _setup_at(self, levels: int | None) -> RunSetup: ...

    def _required_store(self) -> TicketStore: ...
