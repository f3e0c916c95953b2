"""Origins: the places of the values of a call, in the run that makes it.

    ticket = run.awaiting_approval[0]
    print(ticket.origins["/to"])  # from T3, untrusted

An origin is the place of a value, or the place from which it follows by a rule. It does not tell
why the model chose the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Origin", "OriginKind", "Place"]

OriginKind: TypeAlias = Literal[
    "task",
    "user",
    "result",
    "instructions",
    "schema",
    "default",
    "enum",
    "reference",
    "composed",
    "exempt",
    "seen",
    "unknown",
    "model",
    "example",
    "none",
]
"""The kinds of places, and the values without one.

- `"task"`, `"user"`: the task; a later message of the user, or an answer that the user replied to.
- `"result"`: the result of a call.
- `"instructions"`, `"schema"`: the program's texts.
- `"default"`, `"enum"`: the default, or one of the values that the schema lists.
- `"reference"`: the result of another call of the same reply, which is filled in.
- `"composed"`: a text that the model is meant to write, such as a body. The addresses, ids and long
  numbers in it are traced.
- `"exempt"`: a boolean, 0, 1, an empty text and the like, which are not traced.
- `"seen"`: found nowhere, with an image or file in the conversation.
- `"unknown"`: texts are missing, or the search has reached its limit.
- `"model"`, `"example"`: only the model's own words or the example of the prompt have it.
- `"none"`: it was not found.
"""

_WORDS: dict[str, str] = {
    "task": "from the task",
    "instructions": "from the instructions",
    "schema": "from the tool's schema",
    "default": "the default",
    "enum": "listed by the tool",
    "composed": "written by the model",
    "exempt": "",
    "seen": "perhaps from an image or file",
    "unknown": "origin not known",
    "model": "only in the model's own words",
    "example": "only in the example",
    "none": "from nowhere",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a value.

    Attributes:
        kind: The kind of the text.
        where: The text: `T3` for the result of that ticket, `2` for the second message of the user
            after the task, `A2` for the model's answer before it, `M1` for the first message of an
            earlier conversation, else empty. In a child run, `../T3` is a result of the run above,
            `..` its task or instructions, and `../../T3` a result of the run above that. `T3/T1` is
            a result in the child run of T3, whose answer has the value.
        span: The first byte and the one behind the last, in that text as UTF-8; `None` if a rule
            needs no place. Of a result, the text is its JSON, where a text has quotes.
        pointer: The JSON pointer of the value inside of a result that is JSON; else `None`.
        untrusted: Whether the text comes from outside; see `Ticket.untrusted`.
    """

    kind: OriginKind
    where: str = ""
    span: tuple[int, int] | None = None
    pointer: str | None = None
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a value of a call.

    Attributes:
        kind: The kind of its place. If it has several places, the task comes first, then the user's
            messages, results (the newest first), and the program's texts.
        where: As in `Place`.
        span: As in `Place`.
        pointer: As in `Place`.
        how: The rule that leads from the place to the value: `"exact"`, `"date"`, `"number"`,
            `"code"`, `"words"` and so on; empty without a place.
        weak: Whether it is a short text or a small number in a result, which may stand there by
            chance.
        untrusted: Whether no place of it is trusted. Of a composed text: whether an address, id or
            long number in it has no trusted place.
        others: Up to 3 further places.
    """

    kind: OriginKind
    where: str = ""
    span: tuple[int, int] | None = None
    pointer: str | None = None
    how: str = ""
    weak: bool = False
    untrusted: bool = False
    others: tuple[Place, ...] = ()

    @property
    def is_stated(self) -> bool:
        """Whether a text of somebody else has the value, or it needs no origin."""
        return self.kind not in {"model", "example", "none"}

    def __str__(self) -> str:
        """Return it in a few words, such as `from T3, untrusted`; empty for an exempt value."""
        levels, place = self.where.count(".."), self.where.rpartition("../")[2]
        calls, _, text = place.rpartition("/")
        words = _WORDS.get(self.kind)
        if words is None:
            number = text.removeprefix("A")
            is_text = text.startswith("T") or not number.isdigit()
            place = text if is_text else f"message {number}"
            words = f"from {place}" if text != f"A{number}" else f"from the answer before {place}"
        if calls:
            words += f" of the run of {calls.rpartition('/')[2]}"
        if levels:
            words += " of the run above" if levels == 1 else " of a run above"
        if self.how in _DERIVED:
            words += f" ({self.how})"
        return f"{words}, untrusted" if self.untrusted else words


_DERIVED = {"date", "relative", "time", "code", "sign", "percent", "numeral", "unit", "scale"}
"""Rules by which a value follows from another form, which a reader may want to check."""
