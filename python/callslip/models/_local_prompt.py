"""Messages to the prompt of a local model, in which no message can write a turn."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from callslip.errors import ModelError
from callslip.models._gguf_tokens import HTML_TAG, read_special_tokens

__all__ = ["Prompt", "PromptWriter", "cache_text", "common_start"]

Prompt: TypeAlias = str | list[str | int]
"""A text in which special tokens are found; or such texts, and tokens between them."""

_Messages = Sequence[Mapping[str, str]]

# Marks that a template writes as ordinary text: `<|user|>`, `[INST]`, `### Response:`, `USER:`.
_TEXT_MARK = re.compile(
    r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,20}\]|^#{1,6} [^\n]{1,30}$|\S{2,30}:(?=\s*$)", re.MULTILINE
)


class _Server(Protocol):
    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class _Marks:
    """The special tokens that no message may write.

    Attributes:
        tokens: Ids by text.
        pattern: Finds one in a text.
        template: The source of the chat template.
    """

    tokens: dict[str, int]
    pattern: re.Pattern[str]
    template: str


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the chat template writes around messages.

    Attributes:
        tokens: Its special tokens, in their order.
        text_marks: Its marks that are ordinary text.
    """

    tokens: list[str]
    text_marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A mark in a message that the chat template was not shown."""

    text: str


_Parts: TypeAlias = list[str | _Hidden]


class PromptWriter:
    """Renders messages with the chat template, and keeps their texts from being turns.

    Special tokens in a message are hidden from the template behind random digits, and tokenized as
    ordinary text. All else is tokenized as it was rendered, so a prompt without special tokens in
    its messages is what llama.cpp itself makes of them.

    Args:
        server: The server of the model.
        gguf: The model file.
    """

    def __init__(self, server: _Server, gguf: str | os.PathLike[str]) -> None:
        self._server = server
        self._gguf = Path(gguf)
        self._known: _Marks | None = None
        self._plain: dict[str, list[int]] = {}

    def write(self, messages: _Messages) -> Prompt:
        """Return the prompt for a reply to `messages`.

        Raises:
            ModelError: The template refuses the messages, or the server is gone.
        """
        marks = self._marks()
        frame = self._frame(messages, marks)
        whole = _pattern([*marks.tokens, *frame.text_marks])
        kept = self._looked_for(messages, marks, frame, whole)
        parts = self._render(messages, whole, kept)
        found = _found(parts, marks, kept)
        if found != frame.tokens:
            # The template may have joined a mark from pieces of messages. Without the ends of
            # marks in any message there is no such mark.
            ends = {end for mark in marks.tokens for end in (mark[0], mark[-1])}
            torn = self._render(messages, _pattern([*frame.text_marks, *ends]))
            if _found(torn, marks, kept) != found:
                parts = torn
        return self._prompt(parts, marks, frame)

    def _marks(self) -> _Marks:
        if self._known is None:
            special = read_special_tokens(self._gguf)
            template = str(self._server.ask("/props").get("chat_template", ""))
            # HTML has no marks of turns, but templates may look for its tags or write them.
            tokens = {
                text: id_
                for text, id_ in special.defined.items()
                if text in template or not HTML_TAG.fullmatch(text)
            }
            doubtful = special.doubtful
            if doubtful and self._is_special("\n".join(doubtful)):
                tokens |= {text: id_ for text, id_ in doubtful.items() if self._is_special(text)}
            tokens |= special.control
            self._known = _Marks(tokens, _pattern(tokens), template)
        return self._known

    def _frame(self, messages: _Messages, marks: _Marks) -> _Frame:
        secret = _secret()
        # A template may leave out messages that are blank.
        contents = [secret if one["content"].strip() else one["content"] for one in messages]
        literal = self._apply(messages, contents).replace(secret, "\n")
        text_marks = _TEXT_MARK.findall(marks.pattern.sub("\n", literal))
        return _Frame(marks.pattern.findall(literal), frozenset(text_marks))

    def _looked_for(
        self, messages: _Messages, marks: _Marks, frame: _Frame, whole: re.Pattern[str]
    ) -> frozenset[str]:
        """Return the marks in the model's own replies that the template has to see.

        Templates leave out the reasoning of earlier replies. What the template itself writes
        around messages is not among these marks.
        """
        replies = "\n".join(one["content"] for one in messages if _is_reply(one))
        there = {mark for mark in marks.pattern.findall(replies) if mark in marks.template}
        candidates = frozenset(there.difference(frame.tokens))
        if not candidates:
            return candidates
        seen = self._shown(messages, whole, candidates)
        if seen is None or seen == self._shown(messages, whole, frozenset()):
            return frozenset()
        return frozenset(
            mark for mark in candidates if self._shown(messages, whole, candidates - {mark}) != seen
        )

    def _shown(
        self, messages: _Messages, hidden: re.Pattern[str], kept: frozenset[str]
    ) -> str | None:
        try:
            parts = self._render(messages, hidden, kept)
        except ModelError:
            return None
        return "".join(part.text if isinstance(part, _Hidden) else part for part in parts)

    def _render(
        self, messages: _Messages, hidden: re.Pattern[str], kept: frozenset[str] = frozenset()
    ) -> _Parts:
        """Render the messages without what `hidden` finds in them.

        Args:
            messages: The messages.
            hidden: Finds what stands behind random digits.
            kept: What does not in the model's own replies.
        """
        secret = _secret()
        table: list[str] = []

        def hide(match: re.Match[str]) -> str:
            table.append(match[0])
            return f"{secret}{len(table) - 1:08}"

        def hide_in_reply(match: re.Match[str]) -> str:
            return match[0] if match[0] in kept else hide(match)

        contents = [
            hidden.sub(hide_in_reply if _is_reply(one) else hide, one["content"])
            for one in messages
        ]
        pieces = re.split(f"{secret}([0-9]{{8}})", self._apply(messages, contents))
        return [
            _Hidden(table[int(piece)]) if number % 2 else piece
            for number, piece in enumerate(pieces)
        ]

    def _apply(self, messages: _Messages, contents: Iterable[str]) -> str:
        turns = [
            {**one, "content": content} for one, content in zip(messages, contents, strict=True)
        ]
        return str(self._server.ask("/apply-template", {"messages": turns})["prompt"])

    def _prompt(self, parts: _Parts, marks: _Marks, frame: _Frame) -> Prompt:
        # Only a text at the start gets the token that begins all prompts.
        prompt: list[str | int] = [""]
        for part in parts:
            text = part
            if isinstance(part, _Hidden):
                if part.text not in frame.text_marks:
                    prompt += self._as_text(part.text, marks)
                    continue
                # Its tokens are ordinary in any case: only other letters are no mark.
                text = f"{part.text[:-1]} {part.text[-1:]}"
            last = prompt[-1]
            if isinstance(last, str):
                prompt[-1] = f"{last}{text}"
            elif text:
                prompt.append(str(text))
        first = prompt[0]
        return first if len(prompt) == 1 and isinstance(first, str) else prompt

    def _as_text(self, mark: str, marks: _Marks) -> list[int]:
        """Return ordinary tokens for the text of a special one."""
        if mark not in self._plain:
            special = set(marks.tokens.values())
            tokens: list[int] = []
            # Some are found in any text, and some are joined from tokens of their parts.
            for pieces in ([mark], [mark[:1], mark[1:]], list(mark)):
                tokens = [token for piece in pieces for token in self._tokenize(piece)]
                if special.isdisjoint(tokens):
                    break
            self._plain[mark] = [token for token in tokens if token not in special]
        return self._plain[mark]

    def _is_special(self, text: str) -> bool:
        return self._tokenize(text) != self._tokenize(text, parse_special=True)

    def _tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        body = {"content": text, "parse_special": parse_special}
        tokens: list[int] = self._server.ask("/tokenize", body)["tokens"]
        return tokens


def cache_text(prompt: Prompt) -> str:
    """Return a text that no other prompt has."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt)


def common_start(one: Prompt, other: Prompt) -> Prompt:
    """Return what both prompts begin with."""
    start: list[str | int] = []
    for left, right in zip(_listed(one), _listed(other), strict=False):
        if left == right:
            start.append(left)
            continue
        if isinstance(left, str) and isinstance(right, str):
            start.append(_common_text(left, right))
        break
    if len(start) > 1 and start[-1] == "":
        start.pop()
    match start:
        case []:
            return ""
        case [str(text)]:
            return text
    return start


def _common_text(one: str, other: str) -> str:
    pairs = enumerate(zip(one, other, strict=False))
    return one[: next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))]


def _listed(prompt: Prompt) -> list[str | int]:
    return [prompt] if isinstance(prompt, str) else prompt


def _found(parts: _Parts, marks: _Marks, kept: frozenset[str]) -> list[str]:
    """Return the special tokens that are in the prompt, in their order."""
    found = [
        mark for part in parts if isinstance(part, str) for mark in marks.pattern.findall(part)
    ]
    return [mark for mark in found if mark not in kept]


def _pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """Return what finds any of these texts, the longest one first."""
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, ordered)) or "(?!)")


def _secret() -> str:
    # Digits are left alone by templates that trim, escape or change the letter case.
    return f"{secrets.randbelow(10**32):032}"


def _is_reply(message: Mapping[str, str]) -> bool:
    return message["role"] == "assistant"
