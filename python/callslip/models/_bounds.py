"""Limits on the text that a very small model writes at one place under a grammar."""

from __future__ import annotations

from dataclasses import dataclass, fields

from callslip._base.options import check_whole

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on the text that a model writes at one place under a grammar, against rambling.

    They are for models that continue wherever the grammar allows it; other models need none. A
    schema that asks for more takes precedence. A reply that reaches a limit ends there. It is
    refused as `truncated`, with the limits in the message, and nothing of it is executed. Only
    thoughts and a ticket's description, which are not executed, simply end, and an answer ends with
    its sentence or line, unless that is more than another `answer` characters long.

    Attributes:
        answer: Characters after which an answer or a returned string ends with its sentence, and
            characters of a delegated task.
        string: Characters of a string argument, and of a key that no schema names.
        items: Items of an array, entries of an object whose keys no schema names, calls of a block.
        thoughts: Characters of thoughts, and of a ticket's description.

    Raises:
        UsageError: A limit is not a whole number from 1 to 100,000; `thoughts` may be 0.
    """

    answer: int = 400
    string: int = 160
    items: int = 8
    thoughts: int = 160

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name == "thoughts" else 1
            check_whole(f"Bounds({field.name}=…)", getattr(self, field.name), least, 100_000)
