"""Calls of a conversation that did not begin in a text protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["LINE_END", "RetoldCall"]

LINE_END = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
"""Line breaks, including rare ones."""
_NOT_EXECUTED = ("not executed", "Your reply was not executed")


@dataclass(frozen=True, slots=True)
class RetoldCall:
    """A call of an earlier reply, with its result.

    Attributes:
        tool: The name of the tool in the prompt.
        arguments: The arguments, in the order of the schema.
        content: The result.
        failed: Whether the result is a failure.
        answer: The answer, alone in a tuple, if the call stands for the typed answer; else empty.
        thought: The thought of such a call in the example before the task; empty without one.
    """

    tool: str
    arguments: dict[str, Any]
    content: str
    failed: bool
    answer: tuple[Any, ...] = ()
    thought: str = ""

    @property
    def words(self) -> str:
        """The result in words that say so if it is a failure."""
        says_so = "error" in self.content.lower() or self.content.startswith(_NOT_EXECUTED)
        return self.content if says_so or not self.failed else f"Error: {self.content}"
