"""The instructions of an agent: text, or a function that is called once a run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from callslip._base.options import check_called_with, check_text
from callslip._runtime.called import called, called_sync
from callslip.errors import UsageError

if TYPE_CHECKING:
    from callslip.tools import Context

__all__ = ["Instructions", "InstructionsOption"]

InstructionsOption: TypeAlias = "str | Callable[[Context[Any]], str | Awaitable[str]]"
"""Instructions of an agent: their text, or a function from the `Context` of a run to the text."""


class Instructions:
    """The instructions of an agent. Agents of roles share the object, and so the text of a run.

    Args:
        given: The text, or the function; `None` for no instructions.

    Attributes:
        text: The text, which is the same in all runs; empty if there is none, or if there is a
            function.
        function: The function, which is called once for each run; `None` if there is none.
        is_called: Whether there is a function.

    Raises:
        UsageError: They are neither text nor a function of a context.
    """

    __slots__ = ("function", "is_called", "text")

    def __init__(self, given: InstructionsOption | None = None) -> None:
        self.text = ""
        self.function: Callable[[Context[Any]], str | Awaitable[str]] | None = None
        if isinstance(given, str):
            check_text("instructions", given)
            self.text = given.strip()
        elif callable(given) and not inspect.isclass(given):
            check_called_with("instructions", given, "the Context")
            self.function = given
        elif given is not None:
            raise UsageError(
                "expected instructions as text, or a function from a Context to text: got "
                f"{given!r}"
            )
        self.is_called: bool = self.function is not None

    async def of_run(self, context: Context[Any]) -> str:
        """Call the function on an event loop. A sync function is called in a thread of the pool.

        Raises:
            UsageError: It did not return text.
        """
        return _checked(await called(self._function_of_run, context))

    def of_run_sync(self, context: Context[Any]) -> str:
        """Call the function in this thread; if it is async, it is awaited on the private loop.

        Raises:
            UsageError: It did not return text.
        """
        return _checked(called_sync(self._function_of_run, context))

    @property
    def _function_of_run(self) -> Callable[[Context[Any]], str | Awaitable[str]]:
        assert self.function is not None
        return self.function


def _checked(text: Any) -> str:
    check_text("what the function in instructions returns", text)
    return str(text).strip()
