"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from callslip.errors import (
    ContextFull,
    LimitExceeded,
    ModelError,
    ModelRefused,
    ProtocolError,
    RunCancelled,
)
from callslip.models._ends import quoted
from callslip.models._failures import is_context_full, is_refusal
from callslip.runs._messages import Messages
from callslip.runs._run import Run, StopReason
from callslip.runs._ticket import Ticket
from callslip.runs._usage import Usage

__all__ = ["RunResult"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Attributes:
        value: What the model finished with: any JSON value in the ticket protocol, text in the
            others.
        success: What a react reply said of its own success; `True` in the other protocols.
        stop_reason: `"finished"`, or `"limit"` where the model answered in its last turn.
        run: The run: transcript, tickets, log.
    """

    value: Any
    success: bool
    stop_reason: StopReason
    run: Run = field(repr=False)

    @classmethod
    def _of(cls, run: Run, raised: BaseException | None) -> RunResult:
        """Return what came of a run that is over; `raised` is what its model client raised.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached and gave no answer.
            ContextFull: The transcript is longer than the model can read.
            ModelRefused: The model, or its provider's filter, refused to answer.
            ModelError: The model client failed.
            RunCancelled: It was cancelled.
        """
        ending = run._core.ending
        assert ending is not None
        reason, value, success, error, limit = ending
        if error is None:
            return cls(value, success is not False, reason, run)
        match reason:
            case "limit":
                raise LimitExceeded(error, run, limit or "")
            case "violations":
                raise ProtocolError(f"{error}; the model's words: {_last_words(run)}", run)
            case "cancelled":
                raise RunCancelled(error, run)
        if is_context_full(raised, error):
            raise ContextFull(
                f"the model's context is full in turn {run.turns}: {error}; {_to_make_room(run)}",
                run,
            ) from raised
        if isinstance(raised, ModelError) and raised.run is None:
            raised.run = run
            raise raised
        if is_refusal(raised, error):
            raise ModelRefused(f"the model refused to answer: {error}", run) from raised
        raise ModelError(f"the model failed in turn {run.turns}: {error}", run) from raised

    @property
    def tickets(self) -> list[Ticket]:
        """All tickets of the run, oldest first."""
        return self.run.tickets

    @property
    def messages(self) -> Messages:
        """The transcript."""
        return self.run.messages

    @property
    def usage(self) -> Usage:
        """What the replies cost."""
        return self.run.usage

    @property
    def total(self) -> Usage:
        """The same with all runs below it."""
        return self.run.total


def _to_make_room(run: Run) -> str:
    if run._store is None:
        return "what it has done is in the error's .run; pass history=KeepLast(…) to the agent"
    return f"pass history=KeepLast(…) to the agent and call resume({run.id!r}) to go on from there"


def _last_words(run: Run) -> str:
    replies = (one["content"] for one in reversed(run.messages) if one["role"] == "assistant")
    return quoted(next(replies, "")) or "none"
