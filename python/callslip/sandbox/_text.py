"""What a script writes, made fit to be shown to people."""

from __future__ import annotations

import re
import shutil
import unicodedata

__all__ = ["Labelled", "cleaned", "prompt_lines", "shown_prompt", "visible", "whole_text"]

_LONGEST_PROMPT = 2000
_NARROWEST = 30
_TAB = 8

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # colours, movements; the end of a text that was cut is one too
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, the clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
# Besides controls, what turns the direction of writing: it makes a text read as another one.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
# What takes no room and can't be seen.
_UNSEEN = re.compile(
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def cleaned(text: str) -> str:
    """Return a text without escape codes and control characters but for tabs and new lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", whole_text(text)))


def visible(text: str) -> str:
    """Return a text as people are shown it: cleaned, and without what can't be seen."""
    text = cleaned(text)
    return text if text.isascii() else _UNSEEN.sub("", text)


def whole_text(text: str) -> str:
    """Return a text that UTF-8 can hold: half a surrogate pair is replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown_prompt(prompt: str) -> str:
    """Return a question without what could move or hide anything, and not too long."""
    text = visible(prompt)
    return text if len(text) <= _LONGEST_PROMPT else f"{text[: _LONGEST_PROMPT - 2]}… "


def prompt_lines(prompt: str, *, asker: str = "script") -> str:
    """Return a question as a person is shown it: each of its lines says who asks.

    Lines are as wide as the terminal at most, so that none begins where another was too long.
    """
    return Labelled(asker).add(shown_prompt(prompt))


class Labelled:
    """A text that comes in pieces, each line of which begins with who writes it.

    Args:
        label: Who writes it, without brackets.
    """

    def __init__(self, label: str) -> None:
        self._label = f"[{label}] "
        self._column = 0

    def add(self, text: str) -> str:
        """Return the next piece as it is shown."""
        # The last column stays free: some terminals begin a new line with it, some don't.
        width = max(shutil.get_terminal_size().columns, _NARROWEST) - 1
        parts = []
        for letter in text:
            if letter == "\n":
                # An empty line has a label too.
                parts.append("\n" if self._column else f"{self._label}\n")
                self._column = 0
                continue
            needed = _columns(letter)
            if self._column and self._column + needed > width:
                parts.append("\n")
                self._column = 0
            if not self._column:
                parts.append(self._label)
                self._column = len(self._label)
            parts.append(letter)
            self._column += needed
        if not text and not self._column:
            parts.append(self._label)
        return "".join(parts)

    def begin_line(self) -> None:
        """Note that what comes next begins a line."""
        self._column = 0


def _columns(letter: str) -> int:
    """Return how many columns of a terminal a letter takes at most."""
    if letter == "\t":
        return _TAB
    if letter.isascii():
        return 1
    return 2 if unicodedata.east_asian_width(letter) in "WFA" else 1
