"""The tokens of a GGUF file that are more than text: marks of turns, of tools, of reasoning."""

from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from callslip.errors import ModelError

__all__ = ["HTML_TAG", "SpecialTokens", "read_special_tokens"]

HTML_TAG = re.compile(r"</?[a-z][a-z0-9]*>")
"""A tag as HTML has them, and reasoning. Some vocabularies have such tags as tokens."""

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: the sizes of values, by their types.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT = 8
_ARRAY = 9

_NORMAL = 1
_UNKNOWN = 2
_CONTROL = 3
_USER_DEFINED = 4


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Tokens of a vocabulary that llama.cpp may find in a text before it divides it into words.

    Attributes:
        control: Ids by text. Found only where special tokens are looked for.
        defined: Ids by text. Found in any text.
        doubtful: Ids by text. Ordinary tokens that look like marks: llama.cpp takes some of them
            for control tokens.
    """

    control: dict[str, int]
    defined: dict[str, int]
    doubtful: dict[str, int]


def read_special_tokens(gguf: str | os.PathLike[str]) -> SpecialTokens:
    """Read the special tokens from the head of a model file.

    Raises:
        ModelError: The file ends too early, or has no tokens.
    """
    try:
        with Path(gguf).open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with data:
                texts, types = _Head(data).tokens()
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise ModelError(
            f"expected a GGUF file with the tokens of a model: got {gguf}: {error!r}"
        ) from error
    special = SpecialTokens({}, {}, {})
    for number, (text, kind) in enumerate(zip(texts, types, strict=False)):
        # A blank is no mark, and no text without them could be written.
        if not text.strip(b" \t\r\n\xe2\x96\x81"):
            continue
        if kind in (_CONTROL, _UNKNOWN):
            group = special.control
        elif kind == _USER_DEFINED:
            group = special.defined
        elif kind == _NORMAL and _looks_like_mark(text):
            group = special.doubtful
        else:
            continue
        group[text.decode("utf-8", "replace")] = number
    return special


def _looks_like_mark(text: bytes) -> bool:
    start, end = text.lstrip(b"_")[:1], text[-1:]
    return len(text) > 2 and (start, end) in ((b"<", b">"), (b"[", b"]"))


class _Head:
    """Reads the values at the start of a GGUF file, one after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 4

    def tokens(self) -> tuple[list[bytes], list[int]]:
        """Return the texts of the tokens, and their types."""
        self._number("<I")  # version
        self._number("<Q")  # tensors
        texts: list[bytes] = []
        types: list[int] | None = None
        for _ in range(self._number("<Q")):
            name = self._text()
            kind = self._number("<I")
            if name == b"tokenizer.ggml.tokens":
                texts = self._texts()
            elif name == b"tokenizer.ggml.token_type":
                types = self._numbers()
            else:
                self._skip(kind)
            if texts and types is not None:
                return texts, types
        # Without types all of them are ordinary.
        return texts, [_NORMAL] * len(texts)

    def _number(self, form: str) -> int:
        number: int = struct.unpack_from(form, self._data, self._at)[0]
        self._at += struct.calcsize(form)
        return number

    def _text(self) -> bytes:
        length = self._number("<Q")
        text = self._data[self._at : self._at + length]
        self._at += length
        return text

    def _texts(self) -> list[bytes]:
        self._number("<I")
        return [self._text() for _ in range(self._number("<Q"))]

    def _numbers(self) -> list[int]:
        size = _SIZES[self._number("<I")]
        count = self._number("<Q")
        start = self._at
        self._at += size * count
        return [
            int.from_bytes(self._data[at : at + size], "little")
            for at in range(start, self._at, size)
        ]

    def _skip(self, kind: int) -> None:
        if kind == _TEXT:
            self._text()
        elif kind == _ARRAY:
            inner, count = self._number("<I"), self._number("<Q")
            if inner in _SIZES:
                self._at += _SIZES[inner] * count
            else:
                for _ in range(count):
                    self._skip(inner)
        else:
            self._at += _SIZES[kind]
