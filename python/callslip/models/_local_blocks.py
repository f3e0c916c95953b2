"""The certainty of a local model while it writes a block of calls."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Generator, Mapping
from typing import Any, Protocol

from callslip.models._reply import ModelChunk

__all__ = ["Block", "reply_pieces"]

# Likely tokens that the server tells beside each one.
_PROBABILITIES = 20
# A block goes on where a comma is at least as likely as the bracket that ends it, less this
# (natural logarithm). Measured on a 0.5B: -3.8 and more where two calls were asked for, -8.4 and
# less where one was.
_NEAR = -6.0
# Calls that a block is led to. A model that loses the thread would write them for ever.
_MOST = 8
_UNLIKELY = -math.inf


class Block(Protocol):
    """The part of `Grammar` that knows blocks."""

    @property
    def has_blocks(self) -> bool: ...

    def further(self, written: str, /) -> str | None: ...

    def first_name(self, written: str, /) -> tuple[int, int] | None: ...


class _Server(Protocol):
    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]: ...

    def stream(self, body: Mapping[str, Any]) -> Generator[dict[str, Any], None, None]: ...


class _Blocks:
    """One reply with constrained decoding, which may be a block.

    A grammar leads a model to one of the tools that there are, and a small model ends a block
    behind its first call. The probabilities before the grammar show its own choice.

    Args:
        grammar: The grammar of the reply.

    Attributes:
        written: The reply so far.
    """

    def __init__(self, grammar: Block) -> None:
        self._grammar = grammar
        self._led = 0
        # Where each token of the reply ends, in bytes, and its log-probability.
        self._ends: list[int] = []
        self._logs: list[float] = []
        self._is_sure: bool = False
        self._size = 0
        self.written = ""

    def take(self, event: Mapping[str, Any]) -> tuple[str, str | None]:
        """Take an event of the server.

        Returns:
            The text that it adds, and the grammar of the rest if one more call is to follow that
            text.
        """
        content: str = event["content"]
        known: list[Mapping[str, Any]] = event.get("completion_probabilities") or []
        before = self.written
        self.written += content
        self._size += len(content.encode())
        if not self._is_sure and known:
            self._ends.append(self._size)
            self._logs.append(sum(float(token["logprob"]) for token in known))
        if not known or self._led >= _MOST:
            return content, None
        for bracket in re.finditer("]", content):
            head = content[: bracket.start()]
            further = self._grammar.further(before + head)
            if further is not None and _is_near(known[-1], head):
                self._led += 1
                self.written = before + head
                return head, further
        return content, None

    def certainty(self) -> float | None:
        """Return the probability of the first tool's name, once, as soon as it is known."""
        if self._is_sure:
            return None
        place = self._grammar.first_name(self.written)
        if place is None:
            return None
        self._is_sure = True
        start, end = place
        begins = [0, *self._ends]
        spans = zip(begins, self._ends, self._logs, strict=False)
        return math.exp(sum(log for first, last, log in spans if first < end and last > start))


def _is_near(token: Mapping[str, Any], head: str) -> bool:
    """Whether a model that writes the end of an array was near to a comma, behind this text."""

    def best(mark: str) -> float:
        logs = [
            float(one["logprob"])
            for one in token.get("top_logprobs") or ()
            if str(one["token"]).startswith(head + mark)
        ]
        return max(logs, default=_UNLIKELY)

    close = max(best("]"), float(token["logprob"]))
    return best(",") - close > _NEAR


def reply_pieces(
    server: _Server, body: Mapping[str, Any], grammar: Block | None
) -> Generator[str | ModelChunk | Mapping[str, Any], None, None]:
    """Write one reply, which may be a block of calls if the grammar has blocks.

    Yields its text, a `ModelChunk` with the certainty where that is known, and at last the server's
    closing event, whose counts are those of the whole reply.

    Raises:
        ModelError: As of `Server.stream`.
    """
    if grammar is not None:
        yield from _block_pieces(server, body, grammar)
        return
    with contextlib.closing(server.stream(body)) as events:
        for event in events:
            if event["content"] or not event["stop"]:
                yield event["content"]
            if event["stop"]:
                yield event


def _block_pieces(
    server: _Server, body: Mapping[str, Any], grammar: Block
) -> Generator[str | ModelChunk | Mapping[str, Any], None, None]:
    blocks = _Blocks(grammar)
    request: dict[str, Any] = {**body, "n_probs": _PROBABILITIES}
    cached: int | None = None
    read = 0
    while True:
        further: str | None = None
        with contextlib.closing(server.stream(request)) as events:
            for event in events:
                text, further = blocks.take(event)
                if text:
                    yield text
                sure = blocks.certainty()
                if sure is not None:
                    yield ModelChunk(certainty=sure)
                if further is not None:
                    break
                if cached is None and (progress := event.get("prompt_progress")):
                    cached = int(progress["cache"])
                if not event["stop"]:
                    if not text:
                        yield ""
                    continue
                event["tokens_predicted"] = int(event["tokens_predicted"]) + read
                event["tokens_evaluated"] = int(event["tokens_evaluated"]) - read
                if cached is not None:
                    event["timings"]["cache_n"] = cached
                yield event
                return
        question = {"content": blocks.written, "parse_special": False}
        tokens = server.ask("/tokenize", question)["tokens"]
        read = len(tokens)
        prompt, most = body["prompt"], int(body["n_predict"])
        request |= {
            "prompt": [*([prompt] if isinstance(prompt, str) else prompt), *tokens],
            "grammar": further,
            "n_predict": most if most < 0 else max(most - read, 1),
        }
