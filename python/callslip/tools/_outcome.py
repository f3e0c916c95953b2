"""Outcomes of calls, and the exceptions by which a tool chooses one."""

from __future__ import annotations

from callslip._base.failure import ModelFacing, message_of, one_line
from callslip._core import Outcome

__all__ = ["Fail", "NotDone", "Outcome", "Retry"]


class Retry(Exception):  # noqa: N818  # a signal, not an error
    """Asks the model to try again, with exactly this message. Raise it or return it."""


class Fail(ModelFacing):  # a signal, not an error
    """Reports a failed call to the model, with the tool's own message. Raise it or return it.

    Attributes:
        is_transient: Whether the failure is transient, so that the call can be retried. Default:
            `False`.
    """

    is_transient: bool = False

    def text_for_model(self) -> str:
        """Return the message, in one line."""
        return one_line(message_of(self)) or "it failed"


class NotDone(Exception):  # noqa: N818  # a signal, not an error
    """Reports that a call had no effect before the crash, so that it is made now.

    The `reconcile` function of a tool raises it or returns it.
    """
