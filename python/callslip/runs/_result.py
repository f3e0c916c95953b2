"""The results of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from callslip.errors import (
    ContextFull,
    LimitExceeded,
    ModelError,
    ModelRefused,
    ProtocolError,
    RunCancelled,
)
from callslip.limits import limit_message, limit_name
from callslip.models._failures import is_context_full, is_refusal
from callslip.models._finish_reasons import quote_text
from callslip.runs._messages import Messages
from callslip.runs._run import Run
from callslip.runs._ticket import Ticket
from callslip.runs._usage import Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    AnswerT = TypeVar("AnswerT", default=Any)
else:
    # With a default for type checkers only: at run time that would need Python 3.13.
    from typing import TypeVar

    AnswerT = TypeVar("AnswerT")

__all__ = ["AnswerT", "RunResult", "StopReason"]

StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]


@dataclass(frozen=True, slots=True)
class RunResult(Generic[AnswerT]):
    """The result of a run.

    Attributes:
        value: The answer of the model: a value of the agent's `returns`; without that, any JSON
            value in the ticket protocol and text in the others.
        success: Whether the task was successful, according to the model (react); `True` in the
            other protocols.
        stop_reason: `"finished"`, or `"limit"` if the model answered in its last turn.
        run: The run, with its messages, tickets and log.
    """

    value: AnswerT
    success: bool
    stop_reason: StopReason
    run: Run = field(repr=False)

    @classmethod
    def _of(cls, run: Run, raised: BaseException | None) -> RunResult[Any]:
        """Return the result of a run that is over.

        Args:
            run: The run.
            raised: The exception of its model client, if there was one.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ContextFull: The messages are longer than the model can read.
            ModelRefused: The model, or its provider's filter, refused to answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled.
            UsageError: The answer is not of the type of the run's agent.
        """
        ending = run._core.ending
        assert ending is not None
        reason, error = ending.reason, ending.error
        if error is None:
            value = ending.value if run._agent is None else run._agent._answers.value(ending.value)
            return RunResult(value, ending.success is not False, reason, run)
        match reason:
            case "limit":
                raise LimitExceeded(limit_message(error), run, limit_name(ending.limit or ""))
            case "violations":
                raise ProtocolError(f"{error}; the model's words: {_last_words(run)}", run)
            case "cancelled":
                raise RunCancelled(error, run)
        if is_context_full(raised, error):
            raise ContextFull(
                f"the model's context is full in turn {run.turns}: {error}; {_to_make_room(run)}",
                run,
            ) from raised
        is_refused = is_refusal(raised, error)
        if isinstance(raised, ModelError) and raised.run is None and not is_refused:
            raised.run = run
            raise raised
        if isinstance(raised, ModelRefused) and raised.run is None:
            raised.run = run
            raise raised
        if is_refused:
            raise ModelRefused(f"the model refused to answer: {error}", run) from raised
        raise ModelError(f"the model failed in turn {run.turns}: {error}", run) from raised

    @property
    def _json(self) -> Any:
        """The value as JSON."""
        ending = self.run._core.ending
        return None if ending is None else ending.value

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets of the run, oldest first."""
        return self.run.tickets

    @property
    def messages(self) -> Messages:
        """All messages of the run."""
        return self.run.messages

    @property
    def usage(self) -> Usage:
        """The usage of the run's own replies."""
        return self.run.usage

    @property
    def total_usage(self) -> Usage:
        """The usage of the run and of all its child runs."""
        return self.run.total_usage


def _to_make_room(run: Run) -> str:
    if run._store is None:
        return "the run so far is the error's .run; pass history=KeepLast(…) to the agent"
    return f"pass history=KeepLast(…) to the agent and call resume({run.id!r}) to continue the run"


def _last_words(run: Run) -> str:
    replies = (one["content"] for one in reversed(run.messages) if one["role"] == "assistant")
    return quote_text(next(replies, "")) or "none"
