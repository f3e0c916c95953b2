"""Text of scripts, made safe to show to people."""

from __future__ import annotations

import re
import shutil
import unicodedata

__all__ = [
    "LabelledText",
    "clean_prompt",
    "prompt_lines",
    "replace_surrogates",
    "strip_control_codes",
    "strip_invisible",
]

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
# Also marks that change the direction of writing: they make a text read as another one.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
# Characters that are invisible.
_UNSEEN = re.compile(
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def strip_control_codes(text: str) -> str:
    """Return a text without escape codes and control characters, except tabs and new lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", replace_surrogates(text)))


def strip_invisible(text: str) -> str:
    """Return a text without escape codes, control characters and invisible characters."""
    text = strip_control_codes(text)
    return text if text.isascii() else _UNSEEN.sub("", text)


def replace_surrogates(text: str) -> str:
    """Return a text with halves of surrogate pairs replaced, which UTF-8 cannot contain."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_prompt(prompt: str) -> str:
    """Return a question without control and invisible characters, truncated."""
    text = strip_invisible(prompt)
    return text if len(text) <= _LONGEST_PROMPT else f"{text[: _LONGEST_PROMPT - 2]}… "


def prompt_lines(prompt: str, *, asker: str = "script") -> str:
    """Return a question for a person. Each of its lines begins with a label.

    No line is wider than the terminal, so that wrapping cannot produce a line without a label.
    """
    return LabelledText(asker).add(clean_prompt(prompt))


class LabelledText:
    """A text that comes in pieces, each line of which begins with who writes it.

    Args:
        label: Who writes it, without brackets.
    """

    def __init__(self, label: str) -> None:
        self._label = f"[{label}] "
        self._column = 0

    def add(self, text: str) -> str:
        """Return the next piece with its labels."""
        # The last column stays free, because only some terminals wrap after it.
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
        """Let the next piece begin a line."""
        self._column = 0


def _columns(letter: str) -> int:
    """Return the most columns that a letter may take in a terminal."""
    if letter == "\t":
        return _TAB
    if letter.isascii():
        return 1
    return 2 if unicodedata.east_asian_width(letter) in "WFA" else 1
