"""What a script writes, made fit to be shown to people."""

from __future__ import annotations

import re

__all__ = ["cleaned", "prompt_lines", "shown_prompt", "whole_text"]

_LONGEST_PROMPT = 2000

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


def cleaned(text: str) -> str:
    """Return a text without escape codes and control characters but for tabs and new lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", whole_text(text)))


def whole_text(text: str) -> str:
    """Return a text that UTF-8 can hold: half a surrogate pair is replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown_prompt(prompt: str) -> str:
    """Return a question without what could move or hide anything, and not too long."""
    text = cleaned(prompt)
    return text if len(text) <= _LONGEST_PROMPT else f"{text[: _LONGEST_PROMPT - 2]}… "


def prompt_lines(prompt: str, *, asker: str = "script") -> str:
    """Return a question as a person is shown it: each of its lines says who asks."""
    return "\n".join(f"[{asker}] {line}" for line in shown_prompt(prompt).split("\n"))
