"""How a call ends, and the signals by which a tool says so."""

from __future__ import annotations

from typing import TypeAlias

from callslip._failure import ModelFacing, one_line, words_of

__all__ = ["Fail", "NotDone", "Outcome", "Retry"]

Outcome: TypeAlias = tuple[str, str]
"""How a call ended: `ok` with the JSON of the result; `error`, `retry` or `in_doubt` with words."""


class Retry(Exception):  # noqa: N818  # a signal, not an error
    """Tells the model, in these words and no others, to try again. Raise it or return it."""


class Fail(ModelFacing):  # a signal, not an error
    """Tells the model that the call failed, in the tool's own words. Raise it or return it.

    Attributes:
        is_transient: Whether it may pass by itself, so that the same call may be made again.
    """

    is_transient: bool = False

    def text_for_model(self) -> str:
        """Return its own words, in one line."""
        return one_line(words_of(self)) or "it failed"


class NotDone(Exception):  # noqa: N818  # a signal, not an error
    """Says that a call did not take effect, so that it is made now.

    A tool's `reconcile` raises it or returns it.
    """
