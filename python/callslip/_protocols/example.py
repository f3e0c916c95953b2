"""Examples of replies: the check of the option `examples`, and the faults that `lint` finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callslip._core import Reply
from callslip.errors import UsageError

__all__ = ["Example", "check_examples", "teaches_wrong"]


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty example of a reply, in a system prompt or in example messages.

    Attributes:
        line: The line at which it begins, from 1, of the system prompt or of the message.
        text: The example.
        reply: The example as callslip reads it: a violation, or a move, perhaps with repairs.
        message: The position of the message, from 0; `None` in the system prompt.
        problem: What is wrong with a call of the move: an unknown tool, or arguments that do not
            fit it. `None` if nothing is.
    """

    line: int
    text: str
    reply: Reply
    message: int | None = None
    problem: str | None = None

    def __str__(self) -> str:
        place = f"line {self.line}" if self.message is None else f"message {self.message}"
        violation = self.reply.violation
        if violation is not None:
            return f"{place}: {violation.code}: {violation.message}"
        if self.problem is not None:
            return f"{place}: {self.problem}"
        return f"{place}: {', '.join(repair.code for repair in self.reply.repairs)}"


def check_examples(examples: object) -> None:
    """Check the messages of an example.

    Raises:
        UsageError: They are not such messages.
    """
    if examples is None or isinstance(examples, bool):
        return
    problem = _problem(examples)
    if problem is not None:
        raise UsageError(f"expected examples=True, False or messages: got {problem}")


def _problem(examples: object) -> str | None:
    if isinstance(examples, str | Mapping) or not isinstance(examples, Sequence):
        return type(examples).__name__
    for at, message in enumerate(examples):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            return f"{message!r}, which is not a message with 'role' and 'content'"
        role = ("user", "assistant")[at % 2]
        if message["role"] != role:
            return f"the role {message['role']!r} of message {at + 1}, instead of '{role}'"
        if not isinstance(message["content"], str):
            return f"{message['content']!r} as the content of message {at + 1}, which is not text"
    return "no reply to the last message" if len(examples) % 2 else None


def teaches_wrong(example: Example) -> bool:
    # A prompt may show a block in a fence, although a model must not write one. It may show the
    # `args` of react as an object, which small models write with fewer mistakes.
    violation = example.reply.violation
    if violation is not None:
        return violation.code != "fenced_tool_call" or example.message is not None
    if example.problem is not None:
        return True
    return any(repair.code != "args_object" for repair in example.reply.repairs)
