"""With what a submitted run begins, as text in the queue."""

from __future__ import annotations

import json
from dataclasses import asdict

from callslip.limits import Limits
from callslip.parts import Said
from callslip.runs._elsewhere import from_text, to_text

__all__ = ["given_from_text", "given_to_text"]


def given_to_text(said: Said, limits: Limits | None) -> str:
    """Return the task and the own limits of a run as JSON."""
    return json.dumps(
        {"said": to_text(said), "limits": None if limits is None else asdict(limits)},
        ensure_ascii=False,
    )


def given_from_text(text: str) -> tuple[Said, Limits | None]:
    """Return the task and the own limits of a run, from `given_to_text`."""
    given = json.loads(text)
    limits = given["limits"]
    return from_text(given["said"]), None if limits is None else Limits(**limits)
