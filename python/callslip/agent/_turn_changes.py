"""The differences between what a model has written for a turn and what the client receives."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from callslip.runs import Run

__all__ = ["Changes", "changes_of"]


_USUAL = "args_object"
"""The form in which the gateway itself writes the calls of a conversation."""


class Changes(NamedTuple):
    """The repairs and violations of a turn, without texts.

    Attributes:
        repairs: The codes of the repairs of the last reply, each once.
        coerced: The arguments that were read as another type: a tool and a JSON pointer each, such
            as `get_weather/days`.
        violations: The codes of the violations before it, in their order.
    """

    repairs: tuple[str, ...] = ()
    coerced: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = [
            *self.repairs,
            *(f"coerced {one}" for one in self.coerced),
            *(f"refused {one}" for one in self.violations),
        ]
        return ", ".join(rows)


def changes_of(run: Run[Any]) -> Changes:
    """Return the changes of a run that has ended."""
    repairs: list[str] = []
    violations: list[str] = []
    # The first record is the start, with all tools.
    for record in run._core.records(1):
        if '"model_replied"' not in record and '"violated"' not in record:
            continue
        event = json.loads(record)["event"]
        if "model_replied" in event:
            codes = (one["code"] for one in event["model_replied"].get("repairs") or ())
            repairs = [code for code in codes if code != _USUAL]
        elif "violated" in event:
            violations.append(event["violated"]["violation"]["code"])
    ending = run._core.ending
    calls = ending.value if ending is not None and ending.at_calls else ()
    coerced = [f"{call['tool']}{one}" for call in calls for one in call.get("coerced", ())]
    return Changes(tuple(dict.fromkeys(repairs)), tuple(coerced), tuple(violations))
