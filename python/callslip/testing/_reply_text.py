"""The text of a reply that a fault changes: the reply itself, or the lines of its tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from callslip.models._envelope import EnvelopePieces, envelope_of
from callslip.models._items import CallItem, Envelope, TextItem, WrittenItem
from callslip.models._reply import ModelChunk, ModelReply

if TYPE_CHECKING:
    from callslip.testing._say import Say

__all__ = ["cut_text", "pieces_of", "reply_of", "text_of", "with_text"]


def text_of(reply: str | ModelReply, say: Say) -> str:
    """Return the text of a reply, as the protocol of `say` has it."""
    if not say._protocol.native.takes_calls:
        return reply if isinstance(reply, str) else reply.text
    if isinstance(reply, Envelope):
        return reply
    return Envelope(envelope_of(ModelReply(reply) if isinstance(reply, str) else reply))


def reply_of(text: str, say: Say, like: ModelReply | None = None) -> ModelReply:
    """Return the reply with a text of `text_of`.

    Args:
        text: The text.
        say: Its protocol.
        like: The reply whose other fields it gets.
    """
    like = like or ModelReply()
    if not say._protocol.native.takes_calls:
        return replace(like, text=text)
    return replace(like, text="", calls=(), items=(WrittenItem(str(text)),) if text else ())


def pieces_of(reply: Iterable[str], say: Say) -> Iterable[str | ModelChunk]:
    """Return the pieces of a stream whose texts are those of `text_of`."""
    if not say._protocol.native.takes_calls:
        return reply
    return (
        ModelChunk(items=(WrittenItem(str(one)),)) if isinstance(one, str) else one for one in reply
    )


def with_text(reply: str, before: str, after: str) -> str:
    """Return a reply with text around it; empty text adds nothing."""
    if isinstance(reply, Envelope):
        return Envelope(f"{_line(before)}{reply}{_line(after)}")
    return "\n\n".join(one for one in (before, reply, after) if one)


def cut_text(reply: str) -> str:
    """Return the first two thirds of a reply; of its last item, if it has items."""
    if isinstance(reply, Envelope):
        return Envelope("".join(_cut_lines(reply)))
    return reply[: len(reply) * 2 // 3]


def _line(text: str) -> str:
    return envelope_of(ModelReply(text)) if text else ""


def _cut_lines(reply: str) -> Iterator[str]:
    # Not splitlines: a text may hold other line breaks as they are.
    *before, last = reply.removesuffix("\n").split("\n")
    yield from (f"{line}\n" for line in before)
    row = json.loads(last or "{}")
    key = "arguments" if "call" in row else "text"
    text = str(row.get(key, ""))
    cut = text[: len(text) * 2 // 3]
    pieces = EnvelopePieces()
    item = CallItem(0, row["call"], row["tool"], cut) if "call" in row else TextItem(cut)
    yield pieces.write(item)
    yield pieces.end(is_cut=True)
