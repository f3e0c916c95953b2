"""A piece of a client's reply, and what the end of a reply comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callslip.errors import ModelError, ModelRefused
from callslip.models._ends import quoted, read_finish, withheld

if TYPE_CHECKING:
    from callslip.runs import Usage

__all__ = ["Piece", "Reading", "ended"]


@dataclass(slots=True)
class Piece:
    """What a client's response or chunk says.

    Attributes:
        text: More of the reply.
        finish_reason: `"stop"`, `"length"` or `None`, as of a `ModelChunk`.
        usage: As of a `ModelChunk`.
        reasoning: More of what the model thought, which the client gives apart from the text.
        refusal: More of the words in which the model refuses to answer.
        withheld: What to tell of a reply that the provider keeps back; else empty.
        is_service: Whether it is of a client that says of each reply how it ended.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, float] | Usage | None = None
    reasoning: str = ""
    refusal: str = ""
    withheld: str = ""
    is_service: bool = False


def ended(piece: Piece, reason: object, why: object = None) -> Piece:
    """Say how a piece of a client's reply ends it, if it does.

    Raises:
        ModelError: The reply is a native tool call, or the server has given it up.
    """
    piece.withheld = piece.withheld or withheld(reason, why)
    if not piece.withheld and reason is not None:
        piece.finish_reason = read_finish(reason)
    piece.is_service = True
    return piece


class Reading:
    """One reply so far: what its end is judged by."""

    __slots__ = ("_end", "_is_service", "_reasoning", "_refusal", "_text", "_withheld")

    def __init__(self) -> None:
        self._text = self._reasoning = self._refusal = self._withheld = ""
        self._end: str | None = None
        self._is_service = False

    def take(self, piece: Piece) -> None:
        """Take note of a piece."""
        self._text = _beginning(self._text, piece.text)
        self._reasoning = _beginning(self._reasoning, piece.reasoning)
        self._refusal = _beginning(self._refusal, piece.refusal)
        self._withheld = self._withheld or piece.withheld
        self._end = piece.finish_reason or self._end
        self._is_service = self._is_service or piece.is_service

    def is_whole(self) -> bool:
        """Judge a streamed reply at the end of its stream.

        Returns:
            False where the stream has broken off: its client says of a reply how it ended.

        Raises:
            ModelRefused: As `check`.
            ModelError: As `check`.
        """
        is_cut = self._is_service and self._end is None
        self._end = "length" if is_cut else self._end
        self.check()
        return not is_cut

    def check(self) -> None:
        """Judge a reply that has ended.

        Raises:
            ModelRefused: The model or its provider refused to answer.
            ModelError: It is empty, and not because it was cut.
        """
        if self._refusal:
            raise ModelRefused(f"the model refused to answer: {quoted(self._refusal)}")
        if self._withheld:
            so_far = f"; it had written: {quoted(self._text)}" if self._text else ""
            raise ModelRefused(f"{self._withheld}{so_far}")
        if not self._is_service or self._end == "length" or self._text:
            return
        if self._reasoning:
            raise ModelError(
                "expected a reply from the model: got nothing but reasoning; turn the model's "
                "reasoning off, or use a model that replies after it; it had thought: "
                f"{quoted(self._reasoning)}"
            )
        raise ModelError(
            "expected a reply from the model: got an empty one; ask it again, or look at what its "
            "server says of the request"
        )


_KEPT = 1_000


def _beginning(words: str, more: str) -> str:
    """The beginning of what is said, which is enough to quote."""
    if len(words) >= _KEPT or not more:
        return words
    return words + more[:_KEPT] if words else more.lstrip()[:_KEPT]
