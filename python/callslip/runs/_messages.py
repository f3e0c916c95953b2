"""The messages of a run, as models read them: lazy, read-only, and never copied."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

from callslip.parts import File
from callslip.runs._script_files import ScriptFiles

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["MessageCache", "Messages"]

Message = dict[str, Any]


class MessageCache:
    """All messages of a run. Each becomes a Python object when it is first read.

    Any thread may read them, beside the driver.

    Attributes:
        has_parts: Whether a message that was read has images or files.
        sent: The messages with the names of files for scripts; `None` if the run has no scripts.
        files: The files that scripts of the run find; `None` if these messages do not name them.
    """

    __slots__ = ("_cache", "_core", "_lock", "files", "has_parts", "sent")

    def __init__(self, core: _core.Run | None, known: Sequence[Message] = ()) -> None:
        # Without one, the known messages are all.
        self._core = core
        self._lock = threading.Lock()
        self._cache: list[Message] = list(known)
        self.has_parts: bool = any("parts" in message for message in known)
        self.sent: MessageCache | None = None
        self.files: ScriptFiles | None = None

    def name_files(self, tools: Sequence[str], *, lists: bool) -> None:
        """Name the images and files in messages that are sent, for the scripts of these tools.

        Args:
            tools: The names of the tools.
            lists: Whether messages end with a list of tickets.
        """
        assert self._core is not None
        self.sent = MessageCache(self._core)
        self.sent.files = ScriptFiles(self._core, tools, lists=lists)

    @property
    def may_have_parts(self) -> bool:
        """Whether a message has images or files; true if that is known of read messages alone."""
        return self._core is None or self._core.has_parts

    def upto(self, count: int) -> list[Message]:
        """Return the shared list, which holds at least the first `count` messages."""
        cache = self._cache
        if len(cache) < count:
            with self._lock:
                for position in range(len(cache), count):
                    cache.append(self._shown(position))
        return cache

    def forget_last(self) -> None:
        """Read the last message again when it is next asked for: its results were cut."""
        with self._lock:
            del self._cache[-1:]
        if self.sent is not None:
            self.sent.forget_last()

    def _shown(self, position: int) -> Message:
        assert self._core is not None
        message = self._core.message(position)
        shown: Message = {"role": message.role, "content": message.content}
        if message.items is not None:
            shown["items"] = message.items
        if message.parts:
            if self.files is not None:
                noted = self.files.noted(position, message.content, message.parts)
                if message.items is not None:
                    shown["items"].append({"text": noted.removeprefix(message.content).strip()})
                shown["content"] = noted
            shown["parts"] = [File._of(part) for part in message.parts]
            self.has_parts = True
        return shown

    def until(self, count: int) -> Messages:
        """Return the first messages, without those that come later."""
        return Messages(self, count)


class Messages(Sequence[Message]):
    """Messages of a run, oldest first.

    Each is `{"role": "system" | "user" | "assistant", "content": text}`, and has `"parts"` if there
    are images or files beside the text. Pass `list(messages)` to a client that needs a list. Do not
    change the messages: they are shared with the run.
    """

    __slots__ = ("_count", "_message_cache")

    def __init__(self, cache: MessageCache, count: int) -> None:
        self._message_cache = cache
        self._count = count

    @property
    def has_parts(self) -> bool:
        """Whether any message has images or files."""
        cache = self._message_cache
        if not cache.may_have_parts:
            # Those that nobody reads stay what they are in the core.
            return False
        cache.upto(self._count)
        return cache.has_parts

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        count = self._count
        if isinstance(index, slice):
            messages = self._message_cache.upto(count)
            return [messages[position] for position in range(*index.indices(count))]
        position = index + count if index < 0 else index
        if not 0 <= position < count:
            raise IndexError(f"expected an index of {count} messages: got {index}")
        return self._message_cache.upto(position + 1)[position]

    def __iter__(self) -> Iterator[Message]:
        messages = self._message_cache.upto(self._count)
        return (messages[position] for position in range(self._count))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Messages, list)):
            return list(self) == list(other)
        return NotImplemented

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (list(self),)

    def __repr__(self) -> str:
        return repr(list(self))


def _unpickled(messages: list[Message]) -> Messages:
    return MessageCache(None, messages).until(len(messages))
