"""A call as a person sees it before it is approved: the same data at every place of a decision."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from callslip._base.call_line import call_line
from callslip._base.json import to_json
from callslip._base.unseen import named, strange_words, turns
from callslip.approval._defaults import defaults_inside, is_default
from callslip.approval._lines import lines_of
from callslip.origins._words import inside, words_of

if TYPE_CHECKING:
    from callslip.origins import Origin
    from callslip.runs import Ticket

__all__ = ["CallRow", "CallView", "view"]

_Text = TypeVar("_Text", bound=str)

_LONGEST_VALUE = 40
"""Characters of a value that the short line has whole."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """One argument of a call.

    Attributes:
        name: The name of the parameter; that of a field inside of it after a dot.
        value: The value as JSON; `None` for an argument that is left out.
        lines: The value for a person: JSON, or the lines of a text of several lines. Invisible
            characters are shown as code points, `⟨U+202E⟩`.
        origin: `"given"`; `"default"` for a value that is the default of the tool; `"left out"` for
            a parameter without a value, which the tool decides.
        type: The type in the schema, such as `"integer"`; `None` if it is not one word.
        description: What the tool says of the parameter; `None` for nothing.
        notes: Characters of the value that are not seen, or are taken for others: one text for
            each.
        origins: The origins of the value, by the JSON pointers of the values in it: the pointer of
            the value itself is empty. Empty if it was not traced.
    """

    name: str
    value: Any
    lines: tuple[str, ...]
    origin: Literal["given", "default", "left out"]
    type: str | None
    description: str | None
    notes: tuple[str, ...]
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @property
    def whence(self) -> str:
        """The origins of the value in a few words, such as `from T3, untrusted`.

        Empty if it was not traced. A list or an object has each of its origins once.
        """
        return "; ".join(one.text for one in words_of(self.origins))


@dataclass(frozen=True, slots=True)
class CallView:
    """A call that a person decides on: what is shown is what is executed.

    Attributes:
        run_id: The run that makes the call.
        ticket_id: The ticket of the call.
        tool: The name of the tool.
        request: For an operation over HTTP, its method and its path with the values, and `None` for
            any other tool.
        values: The values for `short`, in the order of the parameters that are required, then the
            others; `None` for one of more than 40 characters, and for a list or an object with
            letters that are written from right to left, which would change places.
        rows: All arguments, those that are left out too.
        reason: Why the call needs approval; `None` without a reason.
        about: What the tool does, in the words of the program; `None` if that is not known.
        awaiting: `"approval"`, or `"result"` for a call that is answered from outside.
        seal: Names this call with these arguments; see `Ticket.seal`.
        influenced: The ids of the untrusted results that the model had read; see
            `Ticket.influenced`.
    """

    run_id: str
    ticket_id: str
    tool: str
    request: str | None
    values: tuple[str | None, ...]
    rows: tuple[CallRow, ...]
    reason: str | None
    about: str | None
    awaiting: Literal["approval", "result"] | None
    seal: str | None
    influenced: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The call in a few words, such as `pay → mallory, 90000`. Longer values are counted."""
        return self.short_with(len(self.values))

    def short_with(self, most: int) -> str:
        """Return the call in a few words, with at most so many of its values."""
        return "".join(self._short(most, str))

    def short_with_each(self, write: Callable[[str], _Text]) -> list[str | _Text]:
        """Return the pieces of `short`, with what a function makes of the tool and each value."""
        return self._short(len(self.values), write)

    def _short(self, most: int, write: Callable[[str], _Text]) -> list[str | _Text]:
        shown = [value for value in self.values if value is not None][:most]
        pieces: list[str | _Text] = [write(self.tool)]
        for at, value in enumerate(shown):
            pieces += [", " if at else " \u2192 ", write(value)]
        if left := len(self.values) - len(shown):
            pieces.append(f" (+ {left} longer above)")
        return pieces

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes, each behind the name of its argument."""
        return tuple(f"{row.name}: {note}" for row in self.rows for note in row.notes)

    def lines(self, width: int = 80, encoding: str = "utf-8") -> list[str]:
        r"""Return the call as lines of a terminal, of at most so many columns.

        Each line of a value begins with the name of its argument. The last line is `short`, with
        fewer values if they are too wide.

        Args:
            width: The columns. At least 20 are used.
            encoding: That of the terminal. Other characters are escaped, as `\u2192`.
        """
        return lines_of(self, width, encoding)


def view(ticket: Ticket) -> CallView:
    """Return what a person is shown of a call.

    Args:
        ticket: The ticket of the call, as `Run.awaiting_approval` has it. One of
            `TicketStore.tickets` has neither the tool's description nor a seal.
    """
    spec = ticket.tool_spec or {}
    arguments = ticket.arguments or {}
    rows = tuple(_rows(ticket, arguments, spec.get("parameters") or {}))
    is_operation = " " in ticket.tool
    return CallView(
        run_id=named(ticket.run_id),
        ticket_id=ticket.id,
        tool=named(ticket.tool),
        request=call_line(ticket.tool, arguments).partition(" {")[0] if is_operation else None,
        values=tuple(_values(arguments, spec.get("parameters") or {})),
        rows=rows,
        reason=None if ticket.approval_reason is None else named(ticket.approval_reason),
        about=spec.get("description") or None,
        awaiting=ticket.awaiting,
        seal=ticket.seal,
        influenced=ticket.influenced,
    )


def _rows(
    ticket: Ticket, arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[CallRow]:
    properties = schema.get("properties") or {}
    for name, value in arguments.items():
        own = properties.get(name)
        if is_default(own, value):
            yield _row(name, value, own, "default")
        else:
            row = _row(name, value, own, "given")
            yield replace(row, origins=inside(ticket.origins, name))
        for place, inner in defaults_inside(name, value, own, schema):
            yield _row(place, inner, None, "default")
    is_operation = " " in ticket.tool
    for name, own in properties.items():
        if name in arguments or not isinstance(own, dict):
            continue
        # An operation has many parameters, and sends none of those.
        if is_operation and "default" not in own:
            continue
        yield _left_out(name, own)


def _row(name: str, value: Any, schema: Any, origin: Literal["given", "default"]) -> CallRow:
    texts = [name, *_texts(value)]
    return CallRow(
        name=_name(name),
        value=value,
        lines=_shown(value),
        origin=origin,
        type=_type(schema),
        description=_description(schema),
        notes=tuple(dict.fromkeys(note for text in texts for note in strange_words(text))),
    )


def _left_out(name: str, schema: Mapping[str, Any]) -> CallRow:
    said = f"(left out; the default is {_json(schema['default'])})" if "default" in schema else ""
    return CallRow(
        name=_name(name),
        value=None,
        lines=(said or "(left out: the tool decides)",),
        origin="left out",
        type=_type(schema),
        description=_description(schema),
        notes=(),
    )


def _name(name: str) -> str:
    """Return the name of an argument; in quotes if it could be read as something else."""
    plain = name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").isalnum()
    return name if plain else _json(name)


def _type(schema: Any) -> str | None:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) else None


def _description(schema: Any) -> str | None:
    text = schema.get("description") if isinstance(schema, dict) else None
    return named(text) if isinstance(text, str) and text else None


def _shown(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        lines = value.split("\n")
        if len(lines) == 1:
            return (_json(value),)
        return (f"(a text of {len(lines):,} lines)", *map(named, lines))
    text = _json(value)
    if isinstance(value, list | dict) and (len(text) > _LONGEST_VALUE or turns(text)):
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return tuple(map(named, text.split("\n")))


def _json(value: Any) -> str:
    try:
        return named(json.dumps(value, ensure_ascii=False))
    except ValueError:  # an integer of thousands of digits
        return named(to_json(value))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a value, the names of its fields too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _values(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str | None]:
    required = [name for name in schema.get("required") or () if name in arguments]
    for name in [*required, *(name for name in arguments if name not in required)]:
        yield _short_value(arguments[name])


def _short_value(value: Any) -> str | None:
    text = _json(value)
    if isinstance(value, list | dict) and turns(text):
        return None
    # Bare where no quotes are needed to see where it ends.
    if isinstance(value, str) and text == f'"{value}"' and value and _is_bare(value):
        text = value
    return text if len(text) <= _LONGEST_VALUE else None


def _is_bare(text: str) -> bool:
    return (
        text.isascii() and not set(text) & set(' ,()"') and text not in _WORDS and not _number(text)
    )


_WORDS = frozenset({"true", "false", "null"})


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
