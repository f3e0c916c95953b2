"""The type of an agent's answers, and the program's own check of them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip._base.failure import message_of
from callslip._base.json import from_json, to_json
from callslip._base.options import check_called_with
from callslip._core import ToolSet
from callslip._threads import pool
from callslip.errors import UsageError
from callslip.tools._answer_schema import answer_schema
from callslip.tools._callable import is_async
from callslip.tools._outcome import Retry
from callslip.tools._returns import Described, Faults, described
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from callslip._core import Protocol as CoreProtocol
    from callslip.tools import Context

__all__ = ["AnswerCheck", "Answers"]

AnswerCheck: TypeAlias = "Callable[[Any, Context], Awaitable[None] | None]"
"""Checks an answer. It returns `None`, or raises `Retry` with the words that the model reads."""

_REPORTED = 16
"""The most faults that one message to the model lists."""


class Answers:
    """The type of an agent's answers, and the check before a run ends with one.

    Args:
        returns: The type, or a mapping with a JSON Schema; `None` for any answer that the protocol
            has.
        check: The program's own check.

    Attributes:
        schema: The JSON Schema of the type as JSON text; `None` without one.
        is_async: Whether the check needs an event loop.
        are_checked: Whether each answer is checked here, after its schema.
        own_check: The program's own check; `None` without one.

    Raises:
        UsageError: The type cannot be described, or the check is no function of an answer and a
            context.
    """

    __slots__ = ("_convert", "_faults", "are_checked", "is_async", "own_check", "schema")

    def __init__(self, returns: Any = None, check: AnswerCheck | None = None) -> None:
        if check is not None:
            check_called_with("check_answer", check, "the answer", "the Context")
        shape = _shape_of(returns)
        self.schema: str | None = None if shape.schema is None else to_json(shape.schema)
        self._convert: Callable[[Any], Any] | None = shape.convert
        self._faults: Faults | None = shape.faults
        self.own_check: AnswerCheck | None = check
        self.is_async: bool = check is not None and is_async(check)
        self.are_checked: bool = check is not None or self._faults is not None

    def native(self, protocol: CoreProtocol) -> CoreProtocol:
        """Return the protocol for runs with such answers.

        Raises:
            UsageError: The schema cannot be used.
        """
        if self.schema is None:
            return protocol
        try:
            return protocol.returning(self.schema)
        except ValueError as error:
            raise UsageError(
                f"returns can't be used: {error}; pass another type, or a valid JSON Schema"
            ) from error

    def value(self, answer: Any) -> Any:
        """Return the answer of a finished run as a value of the type.

        Raises:
            UsageError: It is not of the type: the run was one of another agent.
        """
        if self._convert is None:
            return answer
        try:
            return self._convert(answer)
        except ValueError as error:
            raise UsageError(
                f"the answer of the run is not of the type in returns: {error}"
            ) from error

    def value_of_other(self, answer: Any) -> Any:
        """Return the answer of a run that an agent with another type may have ended. As `value`."""
        # The conversions of other types refuse values that don't validate.
        if self.schema is not None and self._faults is None:
            answer = _fitting(self.schema, answer)
        return self.value(answer)

    async def check(self, name: str, answer: Any, context: Context) -> str | None:
        """Check an answer on an event loop. A sync check runs in a thread of the pool.

        Args:
            name: The name of the answer in the protocol, for messages.
            answer: The answer, as JSON.
            context: The context for the program's own check.

        Returns:
            The reason why it is refused; `None` if it is accepted.
        """
        value, refused = self._converted(name, answer)
        if refused is not None or self.own_check is None:
            return refused
        try:
            if self.is_async:
                result: Any = self.own_check(value, context)
            else:
                result = await pool.in_thread(self.own_check, value, context)
            if inspect.isawaitable(result):
                result = await result
        except Retry as retry:
            result = retry
        return _refusal(result)

    def check_sync(self, name: str, answer: Any, context: Context) -> str | None:
        """Check an answer in this thread, if the check is sync. As `check`."""
        value, refused = self._converted(name, answer)
        if refused is not None or self.own_check is None:
            return refused
        try:
            result: Any = self.own_check(value, context)
        except Retry as retry:
            result = retry
        return _refusal(result)

    def _converted(self, name: str, answer: Any) -> tuple[Any, str | None]:
        if self._convert is None:
            return answer, None
        try:
            return self._convert(answer), None
        except ValueError as error:
            if self._faults is None:
                raise
            faults = list(self._faults(name, answer, error))
            return None, "; ".join(faults[:_REPORTED])


def _shape_of(returns: Any) -> Described:
    """Return the type of answers, of a type or a JSON Schema.

    Raises:
        UsageError: The type cannot be described, or the schema cannot be used.
    """
    if returns is None:
        return Described()
    if isinstance(returns, Mapping):
        return Described(answer_schema(returns))
    if isinstance(returns, bool):
        raise UsageError(
            f"expected returns as a type or a JSON Schema in a dict: got {returns!r}; pass {{}} "
            "for any JSON value"
        )
    return described(returns)


def _fitting(schema: str, answer: Any) -> Any:
    own = from_json(schema)
    # References lead to the definitions of the whole.
    shared = {key: own.pop(key) for key in ("$schema", "$defs", "definitions") if key in own}
    parameters = {
        **shared,
        "type": "object",
        "properties": {"answer": own},
        "required": ["answer"],
    }
    form = SchemaTool(
        lambda content, _: content, name="answer", description="", parameters=parameters
    )
    try:
        checked = ToolSet([form._spec()]).check("answer", to_json({"answer": answer}))
    except UsageError as error:
        raise UsageError(f"the answer of the run is not of the type in returns: {error}") from error
    return checked["answer"]


def _refusal(result: Any) -> str | None:
    if isinstance(result, Retry):
        return message_of(result)
    if result is not None:
        raise UsageError(
            f"expected check_answer to return None: got {result!r}. To refuse an answer, raise "
            "Retry('why')"
        )
    return None
