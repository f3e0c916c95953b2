"""Whose data a run is, and by what its caller knows it."""

from __future__ import annotations

from typing import NamedTuple

from callslip.errors import UsageError

__all__ = ["Known", "check_root"]


class Known(NamedTuple):
    """By what a run is known outside of the runtime.

    Attributes:
        owner: Whose data it is; `None` for nobody's.
        key: What its caller calls it; `None` without a key.
        run_id: The id that it was given when it was submitted; `None` for a new one.
    """

    owner: str | None = None
    key: str | None = None
    run_id: str | None = None


def check_root(known: Known) -> None:
    """Check that a run that is started inside a tool is given neither an owner nor a key.

    Raises:
        UsageError: It is.
    """
    if known != Known():
        raise UsageError(
            "expected no owner= and no key= inside a tool: the run belongs to the call, and has "
            "the owner of the run that calls; call agent.run without them"
        )
