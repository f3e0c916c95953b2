"""The images and files of a run that its scripts find, each under a name of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callslip._base.file_names import (
    FOLDER,
    MOST_BYTES,
    MOST_FILES,
    distinct_name,
    key_of,
    safe_name,
)
from callslip.history._history import LIST
from callslip.parts import File

if TYPE_CHECKING:
    from callslip import _core

__all__ = ["ScriptFiles"]


class ScriptFiles:
    """The images and files of the messages of a run, in the order in which the model was sent them.

    The order is that of the log, so each has the same name in every process. What a script has left
    itself is not among them.

    Args:
        core: The run.
        tools: The names of the tools whose scripts find the files.
        lists: Whether messages end with a list of tickets.
    """

    def __init__(self, core: _core.Run, tools: Sequence[str], *, lists: bool) -> None:
        self._core = core
        self._tools = tools
        self._lists = lists
        self._lock = threading.Lock()
        self._read = 0
        self._left = MOST_BYTES
        self._files: dict[str, File] = {}
        # By label; `None` for a file that is not there.
        self._names: dict[str, str | None] = {}
        self._taken: set[str] = set()

    def by_name(self) -> dict[str, File]:
        """Return the files of all messages so far, by their names in the folder."""
        with self._lock:
            self._read_until(self._core.message_count)
            return dict(self._files)

    def noted(self, position: int, content: str, parts: Sequence[_core.Part]) -> str:
        """Return the text of a message with a line that names its files.

        Args:
            position: The position of the message.
            content: Its text.
            parts: Its parts.
        """
        with self._lock:
            self._read_until(position + 1)
            known = {
                part.label: self._names[part.label] for part in parts if part.label in self._names
            }
        note = self._note(known)
        if not note:
            return content
        if self._lists and LIST in content:
            # The list stays last, as the prompt describes it.
            before, mark, after = content.rpartition(LIST)
            return f"{before}\n\n{note}{mark}{after}"
        return f"{content}\n\n{note}"

    def _note(self, known: dict[str, str | None]) -> str:
        there = [f"{FOLDER}/{name} ({label})" for label, name in known.items() if name is not None]
        missing = [label for label, name in known.items() if name is None]
        tools = " and ".join(self._tools)
        words = [f"Files for {tools}, read-only: {', '.join(there)}."] if there else []
        if missing:
            words.append(f"Too large for {tools}: {', '.join(missing)}.")
        return " ".join(words)

    def _read_until(self, count: int) -> None:
        for position in range(self._read, count):
            for part in self._core.message(position).parts:
                if part.label not in self._names and not self._is_of_script(part.label):
                    self._add(part)
        self._read = max(self._read, count)

    def _is_of_script(self, label: str) -> bool:
        if not label.startswith("T"):
            return False
        ticket = label.partition(".")[0]
        rows, _ = self._core.ticket_news(0, 0)
        return any(row.id == ticket and row.tool in self._tools for row in rows)

    def _add(self, part: _core.Part) -> None:
        if part.size > self._left or len(self._files) == MOST_FILES:
            self._names[part.label] = None
            return
        self._left -= part.size
        name = distinct_name(safe_name(part.name, part.label, part.media_type), self._taken)
        self._taken.add(key_of(name))
        self._names[part.label] = name
        self._files[name] = File._of(part)
