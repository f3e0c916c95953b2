"""Special tokens in messages to models of other libraries in this process, broken up.

These libraries render the chat template and look for special tokens in all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from callslip.models._gguf_tokens import HTML_TAG, read_special_tokens

__all__ = ["llama_marks", "tokenizer_marks", "without_marks"]


def tokenizer_marks(tokenizer: object) -> frozenset[str]:
    """Return the texts of the special and added tokens of a tokenizer of transformers."""
    special = getattr(tokenizer, "all_special_tokens", None)
    added = getattr(tokenizer, "get_added_vocab", None)
    vocabulary = added() if callable(added) else None
    texts: list[object] = []
    if isinstance(special, Sequence) and not isinstance(special, str):
        texts += special
    if isinstance(vocabulary, Mapping):
        texts += vocabulary
    return _marks(texts)


def llama_marks(llama: Any) -> frozenset[str]:
    """Return the texts of the special tokens of a `Llama` of llama-cpp-python."""
    path = getattr(llama, "model_path", None)
    if not isinstance(path, str):
        return frozenset()
    special = read_special_tokens(path)

    def is_special(text: str) -> bool:
        plain, parsed = (
            llama.tokenize(text.encode(), add_bos=False, special=parse) for parse in (False, True)
        )
        return bool(plain != parsed)

    return _marks([*special.control, *special.defined, *filter(is_special, special.doubtful)])


def _marks(texts: Iterable[object]) -> frozenset[str]:
    # What is blank, or one character, is no mark of a turn.
    return frozenset(text for text in texts if isinstance(text, str) and len(text.strip()) > 1)


def without_marks(turns: list[dict[str, Any]], marks: frozenset[str]) -> list[dict[str, Any]]:
    """Return messages with a space in each mark, which is ordinary text then.

    Tags such as `</think>` stay in the replies of the model: templates look for them there.
    """
    own = frozenset(mark for mark in marks if not HTML_TAG.fullmatch(mark))
    return [
        {**turn, "content": _broken(turn["content"], own if turn["role"] == "assistant" else marks)}
        for turn in turns
    ]


def _broken(content: Any, marks: frozenset[str]) -> Any:
    if isinstance(content, list):
        return [
            {**block, "text": _broken(block["text"], marks)}
            if block.get("type") == "text"
            else block
            for block in content
        ]
    if not any(mark in content for mark in marks):
        return content
    longest_first = sorted(marks, key=lambda mark: (-len(mark), mark))
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return pattern.sub(lambda match: f"{match[0][:-1]} {match[0][-1:]}", content)
