"""GGUF files with other special tokens than those of the model they are made from."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

CONTROL = 3
USER_DEFINED = 4

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def with_tokens(source: Path, target: Path, tokens: Mapping[int, tuple[str, int]]) -> None:
    """Write a copy of a model in which tokens have other texts and types, by their ids."""
    data = source.read_bytes()
    head = _Head(data)
    written = bytearray(data[:24])
    for _ in range(head.values):
        start = head.at
        name = head.text()
        kind = head.number("<I")
        value = head.at
        head.skip(kind)
        if name == b"tokenizer.ggml.tokens":
            end, head.at = head.at, value
            head.number("<I")
            texts = [head.text() for _ in range(head.number("<Q"))]
            for id_, (text, _) in tokens.items():
                texts[id_] = text.encode()
            written += data[start : value + 12]
            written += b"".join(struct.pack("<Q", len(text)) + text for text in texts)
            head.at = end
        elif name == b"tokenizer.ggml.token_type":
            types = bytearray(data[start : head.at])
            first = value - start + 12
            for id_, (_, token_type) in tokens.items():
                struct.pack_into("<i", types, first + 4 * id_, token_type)
            written += types
        else:
            written += data[start : head.at]
    start = head.at
    for _ in range(head.tensors):
        head.text()
        dimensions = head.number("<I")
        head.at += 8 * dimensions + 4 + 8
    written += data[start : head.at]
    # Nothing of this project has another alignment than the usual one.
    written += bytes(-len(written) % 32)
    target.write_bytes(bytes(written) + data[head.at + -head.at % 32 :])


class _Head:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 8
        self.tensors = self.number("<Q")
        self.values = self.number("<Q")

    def number(self, form: str) -> int:
        number: int = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return number

    def text(self) -> bytes:
        length = self.number("<Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip(self, kind: int) -> None:
        if kind in _SIZES:
            self.at += _SIZES[kind]
        elif kind == 8:
            self.text()
        else:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SIZES:
                self.at += _SIZES[inner] * count
            else:
                for _ in range(count):
                    self.skip(inner)
