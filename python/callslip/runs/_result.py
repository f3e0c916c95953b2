"""The results of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias

from callslip._base.attribute_names import knows_attributes
from callslip._base.usage import Usage
from callslip.errors import UsageError
from callslip.runs._ending import raise_failure

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from callslip.look import Opened
    from callslip.runs._messages import Messages
    from callslip.runs._run import Run
    from callslip.runs._ticket import Ticket
    from callslip.trace import Trace

    AnswerT = TypeVar("AnswerT", default=Any)
else:
    # With a default for type checkers only: at run time that would need Python 3.13.
    from typing import TypeVar

    AnswerT = TypeVar("AnswerT")

__all__ = ["AnswerT", "RunResult", "RunStatus", "StopReason"]

RunStatus: TypeAlias = Literal["running", "finished"]
StopReason: TypeAlias = Literal["finished", "limit", "violations", "model_error", "cancelled"]


_ELSEWHERE = {
    "answer content data final_output message output": "result.value",
    "output_text parsed response result text": "result.value",
    "all_messages chat_history history new_messages to_input_list": "result.messages",
    "calls intermediate_steps steps tool_calls": "result.tickets",
    "cost": "result.usage.cost",
    "id run_id": "result.run.id",
    "events log": "result.run.log",
    "tokens token_usage": "result.usage",
    "send send_sync": "result.run.send(message)",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
@dataclass(frozen=True, slots=True)
class RunResult(Generic[AnswerT]):
    """The result of a run, or of one turn of a conversation. It stays as it is if that continues.

    Attributes:
        value: The answer of the model: a value of the agent's `returns`, or plain JSON if that is a
            JSON Schema; without it, any JSON value in the ticket protocol and text in the others.
        success: Whether the task was successful, according to the model (react); `True` in the
            other protocols.
        stop_reason: `"finished"`, or `"limit"` if the model answered in its last turn.
        usage: The usage of the replies to the user's last message, or to the task.
        total_usage: The usage of all replies so far, with those of child runs.
        run: The run, with its log. It may have continued since.
    """

    value: AnswerT
    success: bool
    stop_reason: StopReason
    usage: Usage
    total_usage: Usage
    run: Run[AnswerT] = field(repr=False)
    _ticket_count: int = field(repr=False)
    _message_count: int = field(repr=False)

    @classmethod
    def _of(cls, run: Run[AnswerT], *, is_own: bool = True) -> RunResult[AnswerT]:
        """Return the result of a run that is over.

        Args:
            run: The run.
            is_own: Whether it had the `returns` of its agent, which has only read it otherwise.

        Raises:
            ProtocolError: The model broke the protocol too often in a row.
            LimitExceeded: A limit was reached, and there is no answer.
            ContextFull: The messages are longer than the model can read.
            ModelRefused: The model, or its provider's filter, refused to answer.
            ModelError: The model client failed.
            RunCancelled: The run was cancelled.
            UsageError: The answer is not of the type of the run's agent.
        """
        core = run._core
        ending = core.ending
        if ending is None:
            raise UsageError("the run is not over yet: await it, or iterate its events to the end")
        raise_failure(run, ending, run._raised)
        value = ending.value
        if run._agent is not None and not ending.at_calls:
            answers = run._agent._answers
            value = answers.value(value) if is_own else answers.value_of_other(value)
        return RunResult(
            value=value,
            success=ending.success is not False,
            stop_reason=ending.reason,
            usage=Usage._from_core(core.turn_usage),
            total_usage=run.total_usage,
            run=run,
            _ticket_count=core.ticket_count,
            _message_count=core.message_count,
        )

    @property
    def _json(self) -> Any:
        """The value as JSON, before the run continues."""
        ending = self.run._core.ending
        return None if ending is None else ending.value

    @property
    def tickets(self) -> list[Ticket]:
        """The tickets of the run until then, oldest first."""
        return self.run.tickets[: self._ticket_count]

    @property
    def messages(self) -> Messages:
        """The messages of the run until then."""
        return self.run._messages_until(self._message_count)

    def trace(self) -> Trace:
        """Return the run as it is shown, with what it has done since. As `Run.trace`."""
        return self.run.trace()

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        images: bool = True,
        texts: int = 20_000,
        open: Opened = "failed",  # noqa: A002  # the rows that are open
        redact: Callable[[str], str] | None = None,
    ) -> str:
        """Return the trace as one HTML file, and write it to `path`. As `callslip.look.to_html`.

        Raises:
            StoreError: The store cannot be read.
            UsageError: An option has a wrong value.
            OSError: The file cannot be written.
        """
        return self.run.to_html(path, images=images, texts=texts, open=open, redact=redact)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.run._repr_mimebundle_()

    def __rich_console__(self, *_: object) -> Iterator[object]:
        return self.run.__rich_console__()
