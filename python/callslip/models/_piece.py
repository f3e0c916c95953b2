"""Pieces of a client's reply, and the checks at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip.errors import ContextFull, ModelError, ModelRefused
from callslip.models._finish_reasons import is_context_end, quote_text, read_finish, withheld
from callslip.models._no_reply import empty_reply

if TYPE_CHECKING:
    from callslip.runs import Usage

__all__ = ["Piece", "Reading", "check_end"]


@dataclass(slots=True)
class Piece:
    """The contents of a client's response or chunk.

    Attributes:
        text: More of the reply.
        finish_reason: `"stop"`, `"length"` or `None`, as in a `ModelChunk`.
        usage: As in a `ModelChunk`.
        reasoning: More reasoning, which the client keeps apart from the text.
        refusal: More of the model's refusal to answer.
        withheld: The message for a reply that the provider withholds; else empty.
        is_full: Whether the reply was cut because the context of the model is full.
        is_service: Whether the client reports a finish reason for each reply.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, float] | Usage | None = None
    reasoning: str = ""
    refusal: str = ""
    withheld: str = ""
    is_full: bool = False
    is_service: bool = False


def check_end(piece: Piece, reason: object, why: object = None) -> Piece:
    """Say how a piece of a client's reply ends it, if it does.

    Raises:
        ModelError: The reply is a native tool call, or the server has abandoned it.
    """
    piece.withheld = piece.withheld or withheld(reason, why)
    if not piece.withheld and reason is not None:
        piece.finish_reason = read_finish(reason)
        piece.is_full = is_context_end(reason)
    piece.is_service = True
    return piece


class Reading:
    """One reply so far, for the checks at its end.

    Attributes:
        is_service: Whether a piece of it has come from a client that reports finish reasons.
    """

    __slots__ = ("_end", "_is_full", "_reasoning", "_refusal", "_text", "_withheld", "is_service")

    def __init__(self) -> None:
        self._text = self._reasoning = self._refusal = self._withheld = ""
        self._end: str | None = None
        self.is_service = self._is_full = False

    def take(self, piece: Piece) -> None:
        """Record a piece."""
        self._text = _append_truncated(self._text, piece.text)
        self._reasoning = _append_truncated(self._reasoning, piece.reasoning)
        self._refusal = _append_truncated(self._refusal, piece.refusal)
        self._withheld = self._withheld or piece.withheld
        self._end = piece.finish_reason or self._end
        self._is_full = self._is_full or piece.is_full
        self.is_service = self.is_service or piece.is_service

    def is_whole(self) -> bool:
        """Check a streamed reply at the end of its stream.

        Returns:
            `False` if the stream broke off: the client reports finish reasons, and reported none.

        Raises:
            ModelRefused: As `check`.
            ModelError: As `check`.
        """
        is_cut = self.is_service and self._end is None
        self._end = "length" if is_cut else self._end
        self.check()
        return not is_cut

    def check(self) -> None:
        """Check a reply that has ended.

        Raises:
            ModelRefused: The model or its provider refused to answer.
            ContextFull: It was cut because the context of the model is full.
            ModelError: It is empty, and not because it was cut.
        """
        if self._refusal:
            raise ModelRefused(f"the model refused to answer: {quote_text(self._refusal)}")
        if self._withheld:
            so_far = f"; it had written: {quote_text(self._text)}" if self._text else ""
            raise ModelRefused(f"{self._withheld}{so_far}")
        if self._is_full:
            raise ContextFull("the reply was cut because the context of the model is full")
        if not self.is_service or self._end == "length" or self._text:
            return
        if not self._reasoning:
            raise empty_reply()
        failure = ModelError(
            "expected a reply from the model: got nothing but reasoning; turn the model's "
            "reasoning off, or use a model that replies after it; it had thought: "
            f"{quote_text(self._reasoning)}"
        )
        failure._is_transient = True
        raise failure


_KEPT = 1_000


def _append_truncated(words: str, more: str) -> str:
    """Return the beginning of a text, enough to quote it."""
    if len(words) >= _KEPT or not more:
        return words
    return words + more[:_KEPT] if words else more.lstrip()[:_KEPT]
