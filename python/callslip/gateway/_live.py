"""Answers that clients read before their end."""

from __future__ import annotations

from callslip.gateway._refused import Refused

__all__ = ["LiveText"]

_LAG = 40


class LiveText:
    """The text of an answer that is still being written.

    Args:
        is_on: Whether a part of it may be sent; else all of it comes at the end.
        lag: Characters that are held back. Default: 40, because an answer from the prompt's example
            is refused at its end.
    """

    def __init__(self, *, is_on: bool, lag: int = _LAG) -> None:
        self._is_on = is_on
        self._lag = lag
        self._text = ""
        self._sent = 0
        self._turn: int | None = None

    def add(self, text: str, turn: int | None) -> str:
        """Add text of a reply, and return the part that can be sent now.

        Raises:
            Refused: The reply that was sent in part was refused, and this is the next one.
        """
        if turn != self._turn:
            self._check_unsent()
            self._turn, self._text = turn, ""
        self._text += text
        until = len(self._text) - self._lag
        if not self._is_on or until <= self._sent:
            return ""
        piece = self._text[self._sent : until]
        self._sent = until
        return piece

    def rest(self, whole: str) -> str:
        """Return the part of the final text that was not sent.

        Raises:
            Refused: Another text was sent.
        """
        if whole[: self._sent] != self._text[: self._sent]:
            raise _taken_back()
        return whole[self._sent :]

    def _check_unsent(self) -> None:
        if self._sent:
            raise _taken_back()


def _taken_back() -> Refused:
    return Refused(
        422,
        "the model's answer became invalid after its beginning was sent; ask again, or serve with "
        "stream='whole'",
        "invalid_model_output",
    )
