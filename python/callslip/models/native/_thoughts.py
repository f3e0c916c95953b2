"""The reasoning of one reply, and what a service needs back of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from callslip.models._fields import field
from callslip.models._items import ReasoningItem
from callslip.models.native._turns import Reasoning

__all__ = ["Thoughts", "block_of"]

_TEXT_KEYS: Mapping[object, str] = {
    "thinking": "thinking",
    "reasoning": "reasoning",
    "reasoning.text": "text",
    "reasoning.summary": "summary",
}
"""Where blocks of each type have their text. Those of other types have none to read."""


class Thoughts:
    """Reads the reasoning of a reply, whole or in pieces.

    A block of reasoning becomes one item. Its data is the block without its text.

    Args:
        service: The key of the service in `data`.
    """

    __slots__ = ("_open", "_service")

    def __init__(self, service: str) -> None:
        self._service = service
        # The data of the reasoning that is being read; `None` between two of them.
        self._open: dict[str, Any] | None = None

    def text(self, text: str, *, field_name: str = "") -> list[ReasoningItem]:
        """Return more of a plain text of reasoning.

        Args:
            text: The text.
            field_name: The field in which it goes back; empty (default) if it does not.
        """
        if self._open is None:
            self._open = {field_name: True} if field_name else {}
        return [ReasoningItem(text)]

    def blocks(self, name: str, blocks: object) -> list[ReasoningItem]:
        """Return more of blocks of reasoning.

        Args:
            name: The field of the message that holds them.
            blocks: The blocks, or pieces of them.
        """
        items: list[ReasoningItem] = []
        for block in blocks if isinstance(blocks, (list, tuple)) else ():
            items += self._block(name, _plain(block))
        return items

    def _block(self, name: str, block: dict[str, Any]) -> list[ReasoningItem]:
        key = _TEXT_KEYS.get(block.get("type"))
        said = block.get(key) if key else None
        text = said if isinstance(said, str) else _summary_of(block)
        unread = (key, "summary") if block.get("type") == "reasoning" else (key,)
        rest = {
            one: value
            for one, value in block.items()
            if one not in unread and value not in (None, "")
        }
        items = [] if self._continues(name, rest) else self.end()
        before = (self._open or {}).get(name) or {}
        self._open = {name: {**before, **rest}}
        if text:
            items.append(ReasoningItem(text))
        # A signature ends its block.
        return items + self.end() if key is None or "signature" in rest else items

    def _continues(self, name: str, rest: Mapping[str, Any]) -> bool:
        """Whether a piece belongs to the reasoning that is being read."""
        if self._open is None:
            return True
        known = self._open.get(name)
        if known is None:
            # Some stream the text in a field of its own, and its signature in a block.
            return "reasoning_content" in self._open and rest.get("type") == "thinking"
        return all(known.get(one) == rest.get(one) for one in ("type", "index"))

    def end(self) -> list[ReasoningItem]:
        """Return the end of the reasoning that is being read, if the service needs it back."""
        told, self._open = self._open, None
        return [ReasoningItem("", {self._service: told})] if told else []


def block_of(reasoning: Reasoning, name: str) -> dict[str, Any] | None:
    """Return the block that `Thoughts` made an item of, with its text; `None` for another item."""
    told = reasoning.data.get(name) if isinstance(reasoning.data, Mapping) else None
    if not isinstance(told, Mapping):
        return None
    block = dict(told)
    key = _TEXT_KEYS.get(block.get("type"))
    if key == "reasoning" and "id" in block:
        # OpenAI's responses.
        text = {"type": "summary_text", "text": reasoning.text}
        block["summary"] = [text] if reasoning.text else []
    elif key is not None:
        block[key] = reasoning.text
    return block


def _plain(block: object) -> dict[str, Any]:
    if isinstance(block, Mapping):
        return dict(block)
    dump = getattr(block, "model_dump", None)
    return cast("dict[str, Any]", dump()) if callable(dump) else {}


def _summary_of(block: Mapping[str, Any]) -> str:
    """Return the text of a block of OpenAI's responses."""
    parts = block.get("summary")
    texts = [field(part, "text") for part in parts] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))
