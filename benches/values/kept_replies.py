"""A local model whose replies are kept in a file: repeated runs compute nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from callslip import LocalModel
from callslip.models._reply import ModelChunk

__all__ = ["KeptReplies"]


class KeptReplies(LocalModel):
    """A local model at temperature 0 that computes the reply to the same request once.

    Args:
        gguf: The model file; `None` for the bundled one.
        file: The file of the replies, one JSON object a line. It is created if it is missing.
        options: The other options of `LocalModel`.
    """

    accepts = frozenset({"stop", "grammar", "seed", "max_tokens"})

    def __init__(self, gguf: str | None, file: Path, **options: Any) -> None:
        super().__init__(gguf, **options)
        self._file = file
        self._kept: dict[str, tuple[str, str]] = {}
        if file.is_file():
            for line in file.read_text("utf-8").splitlines():
                one = json.loads(line)
                self._kept[one["request"]] = (one["text"], one["finish_reason"])

    def __call__(
        self, messages: Sequence[Mapping[str, str]], **options: Any
    ) -> Generator[str | ModelChunk, None, None]:
        """Write a reply, or repeat the one that is kept."""
        shown = {**options, "grammar": getattr(options.get("grammar"), "gbnf", None)}
        request = json.dumps([list(map(dict, messages)), shown], sort_keys=True, default=list)
        key = hashlib.sha256(request.encode()).hexdigest()
        if key not in self._kept:
            text, finish_reason = "", ""
            for piece in super().__call__(messages, **options):
                if isinstance(piece, str):
                    text += piece
                    # The caller may stop here, as it may while a prompt is being read.
                    yield ""
                else:
                    finish_reason = piece.finish_reason or ""
            self._kept[key] = (text, finish_reason)
            line = {"request": key, "text": text, "finish_reason": finish_reason}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        text, finish_reason = self._kept[key]
        yield text
        yield ModelChunk(finish_reason=finish_reason)
