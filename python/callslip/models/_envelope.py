"""Replies with the model's own tool calls, as the core reads them: one line for each item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from callslip._base.options import shown
from callslip._core import EnvelopeWriter
from callslip.errors import ModelError
from callslip.models._items import (
    CallItem,
    Data,
    FaultItem,
    Item,
    NativeCall,
    ReasoningItem,
    TextItem,
)

if TYPE_CHECKING:
    from callslip.models._items import CallDelta
    from callslip.models._reply import ModelChunk, ModelReply

__all__ = ["EnvelopePieces", "chunk_items", "envelope_of", "has_items", "items_of"]


class EnvelopePieces:
    """Writes the envelope of a reply that arrives in pieces."""

    __slots__ = ("_writer",)

    def __init__(self) -> None:
        self._writer = EnvelopeWriter()

    def add(self, chunk: ModelChunk) -> str:
        """Return the text that a chunk adds.

        Raises:
            ModelError: Its call is none.
        """
        return "".join(self.write(item) for item in chunk.items or chunk_items(chunk))

    def end(self, *, is_cut: bool) -> str:
        """Return the text at the end of the reply, which stays open where it was cut."""
        return self._writer.finish(is_cut)

    def write(self, item: Item) -> str:
        """Return the text that an item, or a piece of one, adds."""
        writer = self._writer
        match item:
            case TextItem(text):
                return writer.text(_sendable(text))
            case ReasoningItem(text, data):
                return writer.reasoning(_sendable(text), _json(data))
            case CallItem():
                texts = (_sendable(item.id), _sendable(item.tool), _escaped(item.arguments))
                return writer.call(item.index, *texts, _json(item.data), item.is_whole)
            case FaultItem(message, raw):
                return writer.fault(_sendable(message), _sendable(raw))
            case _:
                return item.text


def envelope_of(reply: ModelReply) -> str:
    """Return the envelope of a whole reply.

    Raises:
        ModelError: One of its calls is none.
    """
    is_cut = reply.finish_reason == "length"
    if reply.items:
        pieces = EnvelopePieces()
        written = "".join(pieces.write(item) for item in reply.items)
        return written + pieces.end(is_cut=is_cut)
    # Most replies come without items, which would cost as much as all the rest.
    writer = EnvelopeWriter()
    written = writer.text(_sendable(reply.text)) if reply.text else ""
    for position, call in enumerate(reply.calls):
        identity, tool, arguments = _checked(call)
        index = position if type(call) is NativeCall else getattr(call, "index", position)
        written += writer.call(index, _sendable(identity), _sendable(tool), _escaped(arguments))
    return written + writer.finish(is_cut)


def chunk_items(chunk: ModelChunk) -> tuple[Item, ...]:
    """Return the items of a chunk that has text and a call.

    Raises:
        ModelError: Its call is none.
    """
    return _items(chunk.text, (chunk.call,) if chunk.call else ())


def has_items(reply: ModelReply) -> bool:
    """Whether a reply is more than text."""
    return bool(reply.items or reply.calls)


def items_of(reply: ModelReply) -> tuple[Item, ...]:
    """Return the items of a whole reply.

    Raises:
        ModelError: One of its calls is none.
    """
    return reply.items or _items(reply.text, tuple(reply.calls))


def _items(text: str, calls: tuple[NativeCall | CallDelta, ...]) -> tuple[Item, ...]:
    items: list[Item] = [TextItem(text)] if text else []
    for position, call in enumerate(calls):
        index = getattr(call, "index", position)
        items.append(CallItem(index, *_checked(call)))
    return tuple(items)


def _checked(call: NativeCall | CallDelta) -> tuple[str, str, str]:
    """Return id, tool and arguments of a call, which a program may have made of anything.

    Raises:
        ModelError: One of them is no text.
    """
    identity = getattr(call, "id", None)
    tool = getattr(call, "tool", None)
    arguments = getattr(call, "arguments", None)
    if isinstance(identity, str) and isinstance(tool, str) and isinstance(arguments, str):
        return identity, tool, arguments
    texts = {"id": identity, "tool": tool, "arguments": arguments}
    name, value = next(text for text in texts.items() if not isinstance(text[1], str))
    raise _no_text(name, value, call)


def _no_text(name: str, value: object, call: object) -> ModelError:
    hint = "; pass the text that came, or json.dumps(…)" if name == "arguments" else ""
    return ModelError(
        f"expected text as the {name} of a call: got {shown(value)} in {call!r}{hint}"
    )


def _json(data: Data | None) -> str | None:
    if data is None:
        return None
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(arguments: str) -> str:
    """Return a text of arguments in which lone surrogates are escaped: the reader refuses them."""
    if arguments.isascii():
        return arguments
    paired = arguments.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in paired)
