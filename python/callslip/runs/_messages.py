"""The transcript as models get it: lazy, read-only, and never copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["Messages", "Transcript"]

Message = dict[str, str]


class Transcript:
    """All messages of a run. Each becomes one Python object, when it is first looked at."""

    __slots__ = ("_cache", "_core")

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._cache: list[Message] = []

    def upto(self, count: int) -> list[Message]:
        """Return the shared list, which holds at least the first `count` messages."""
        cache = self._cache
        for position in range(len(cache), count):
            role, content = self._core.message(position)
            cache.append({"role": role, "content": content})
        return cache

    def now(self) -> Messages:
        """Return the messages that there are now; later ones do not show up in it."""
        return Messages(self, self._core.message_count)


class Messages(Sequence[Message]):
    """The first messages of a transcript, oldest first.

    Each is `{"role": "system" | "user" | "assistant", "content": text}`. Take `list(messages)` for
    a client that wants a list. Change nothing: the messages are shared with the run.
    """

    __slots__ = ("_count", "_transcript")

    def __init__(self, transcript: Transcript, count: int) -> None:
        self._transcript = transcript
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        count = self._count
        if isinstance(index, slice):
            messages = self._transcript.upto(count)
            return [messages[position] for position in range(*index.indices(count))]
        position = index + count if index < 0 else index
        if not 0 <= position < count:
            raise IndexError(f"there are {count} messages: got the index {index}")
        return self._transcript.upto(position + 1)[position]

    def __iter__(self) -> Iterator[Message]:
        messages = self._transcript.upto(self._count)
        return (messages[position] for position in range(self._count))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Messages, list)):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
