"""With what a submitted run begins, as text in the queue."""

from __future__ import annotations

import json
from dataclasses import asdict

from callslip._runtime.known import Known
from callslip.limits import Limits
from callslip.parts import Said
from callslip.runs._elsewhere import from_text, to_text

__all__ = ["given_from_text", "given_to_text"]


def given_to_text(said: Said, limits: Limits | None, known: Known) -> str:
    """Return the task and the own limits of a run, its owner and its key as JSON."""
    return json.dumps(
        {
            "said": to_text(said),
            "limits": None if limits is None else asdict(limits),
            "owner": known.owner,
            "key": known.key,
        },
        ensure_ascii=False,
    )


def given_from_text(text: str) -> tuple[Said, Limits | None, Known]:
    """Return what a run begins with, from `given_to_text`, also of an earlier version."""
    given = json.loads(text)
    limits = given["limits"]
    known = Known(given.get("owner"), given.get("key"))
    return from_text(given["said"]), None if limits is None else Limits(**limits), known
