"""How much a very small model may say at one place under a grammar."""

from __future__ import annotations

from dataclasses import dataclass, fields

from callslip.errors import UsageError

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much a model may say at one place under a grammar, against rambling.

    For models that go on wherever they are free to; others need none. A schema that asks for more
    gets it. What reaches a bound ends the reply there: it is refused as `truncated`, and nothing of
    it is executed. Only thoughts and a ticket's description, which are not carried out, simply end.

    Attributes:
        answer: Characters of an answer, a returned string or a delegated task.
        string: Characters of a string argument, and of a key that no schema names.
        items: Items of an array, entries of an object whose keys no schema names, calls of a block.
        thoughts: Characters of thoughts, and of a ticket's description.

    Raises:
        UsageError: One of them is no whole number from 1 on; `thoughts` may be 0.
    """

    answer: int = 400
    string: int = 160
    items: int = 8
    thoughts: int = 160

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name == "thoughts" else 1
            if type(value) is not int or not least <= value <= 100_000:
                raise UsageError(
                    f"expected {field.name} to be a whole number from {least} to 100000: "
                    f"got {value!r}"
                )
