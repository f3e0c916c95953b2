"""Pieces of a client's reply, and the checks at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip.errors import ContextFull, ModelError, ModelRefused
from callslip.models._finish_reasons import (
    is_context_end,
    quote_body,
    quote_text,
    read_finish,
    withheld,
)
from callslip.models._no_reply import empty_reply

if TYPE_CHECKING:
    from callslip._base.usage import Usage

__all__ = ["Piece", "Reading", "check_end"]


@dataclass(slots=True)
class Piece:
    """The contents of a client's response or chunk.

    Attributes:
        text: More of the reply.
        finish_reason: `"stop"`, `"length"`, `"unknown"` or `None`, as in a `ModelChunk`.
        usage: As in a `ModelChunk`.
        reasoning: More reasoning, which the client keeps apart from the text.
        refusal: More of the model's refusal to answer.
        withheld: The message for a reply that the provider withholds; else empty.
        is_full: Whether the reply was cut because the context of the model is full.
        is_service: Whether the client reports a finish reason for each reply.
        is_repeat: Whether the text and reasoning are those of the whole reply so far.
        odd: A chunk that holds nothing of a reply.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, float] | Usage | None = None
    reasoning: str = ""
    refusal: str = ""
    withheld: str = ""
    is_full: bool = False
    is_service: bool = False
    is_repeat: bool = False
    odd: object = None


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

    Args:
        takes_calls: Whether tool calls of the model's own are read, so that a reply without text
            is no failure. Default false.

    Attributes:
        is_service: Whether a piece of it has come from a client that reports finish reasons.
    """

    __slots__ = (
        "_end",
        "_has_repeats",
        "_is_full",
        "_odd",
        "_reasoning",
        "_refusal",
        "_repeated",
        "_takes_calls",
        "_text",
        "_withheld",
        "is_service",
    )

    def __init__(self, *, takes_calls: bool = False) -> None:
        self._takes_calls = takes_calls
        self._text = self._reasoning = self._refusal = self._withheld = ""
        self._end: str | None = None
        self.is_service = self._is_full = False
        # The text and reasoning so far of chunks that may repeat them, and whether they do.
        self._repeated: dict[str, str] = {}
        self._has_repeats: bool | None = None
        self._odd: object = None

    def take(self, piece: Piece) -> None:
        """Record a piece. What it repeats is taken out of it, and a cut reply remains cut."""
        if piece.is_repeat:
            self._leave_new(piece)
        else:
            self._keep_blanks(piece)
        self._text = _append_truncated(self._text, piece.text)
        self._reasoning = _append_truncated(self._reasoning, piece.reasoning)
        self._refusal = _append_truncated(self._refusal, piece.refusal)
        self._withheld = self._withheld or piece.withheld
        if piece.finish_reason is not None:
            # The worst reason stands: some servers add a `stop` of their own.
            ends = (self._end, piece.finish_reason)
            self._end = next((end for end in ("length", "unknown") if end in ends), ends[1])
            piece.finish_reason = self._end
        self._is_full = self._is_full or piece.is_full
        self._odd = piece.odd if self._odd is None else self._odd
        self.is_service = self.is_service or piece.is_service

    def _keep_blanks(self, piece: Piece) -> None:
        """Record the blanks before a text, which a later chunk may repeat with it."""
        for name, said in (("text", self._text), ("reasoning", self._reasoning)):
            more = getattr(piece, name)
            if more.isspace() and not said:
                self._repeated[name] = self._repeated.get(name, "") + more
            elif more:
                self._repeated.pop(name, None)

    def _leave_new(self, piece: Piece) -> None:
        """Leave in a piece that may repeat the reply so far only what is new."""
        for name, said in (("text", self._text), ("reasoning", self._reasoning)):
            whole, before = getattr(piece, name), self._repeated.get(name)
            if said and before is None:
                # The pieces have come in other chunks.
                setattr(piece, name, "")
            elif whole:
                setattr(piece, name, self._more(before or "", whole))
                self._repeated[name] = (before or "") + getattr(piece, name)

    def _more(self, before: str, whole: str) -> str:
        """Return what a text has that the text before has not.

        Raises:
            ModelError: It repeats another text.
        """
        if before and self._has_repeats is None:
            self._has_repeats = whole.startswith(before) or before.startswith(whole)
        if not before or not self._has_repeats:
            return whole
        if not whole.startswith(before) and not before.startswith(whole):
            raise ModelError(
                "expected chunks that repeat the reply so far from the model's server: got another "
                "text; pass stream=False to as_model"
            )
        return whole[len(before) :]

    @property
    def is_doubtful(self) -> bool:
        """Whether a finish reason has come that is not known."""
        return self._end == "unknown"

    @property
    def end(self) -> str | None:
        """How a whole reply ended: `"unknown"` if its client had to say so and has not."""
        return "unknown" if self.is_service and self._end is None else self._end

    def is_whole(self) -> bool:
        """Check a streamed reply at the end of its stream.

        Returns:
            `False` if the stream broke off: the client reports finish reasons, and reported none
            that is known.

        Raises:
            ModelRefused: As `check`.
            ModelError: As `check`.
        """
        is_cut = self.is_service and self._end is None
        if is_cut and self._odd is not None:
            raise ModelError(
                "expected a whole reply from the model's server: got a stream with this in place "
                f"of its end: {quote_body(self._odd)}; look at what the server says of the request"
            )
        self._end = "length" if is_cut else self._end
        self.check()
        return not is_cut and not self.is_doubtful

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
        is_readable = self._takes_calls or not self.is_service
        if is_readable or self._end == "length" or self._text:
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
