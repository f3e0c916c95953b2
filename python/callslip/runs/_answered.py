"""Results from outside: outcomes of calls, as the runtime and the inbox of a run take them."""

from __future__ import annotations

import json
from typing import Any, cast

from callslip._base.json import ResultError, result_json
from callslip.errors import UsageError
from callslip.parts import Said
from callslip.runs._elsewhere import from_text, to_text
from callslip.tools import Outcome
from callslip.tools._pending import PendingCall

__all__ = ["answered", "outcome_from_text", "outcome_to_text"]


def answered(value: Any) -> Outcome:
    """Return the outcome of a call that is answered with a value.

    Raises:
        UsageError: It has no JSON.
    """
    try:
        return Outcome.Ok(*result_json(value))
    except ResultError as error:
        raise UsageError(f"expected a result with values of JSON: {error}") from error


def outcome_to_text(outcome: Outcome) -> str:
    """Return the outcome of a call as JSON."""
    if isinstance(outcome, Outcome.Ok):
        return json.dumps({"ok": to_text(Said(outcome.json, list(outcome.parts)))})
    if isinstance(outcome, Outcome.Error):
        error = outcome.message, outcome.transient, outcome.again, outcome.wait
        return json.dumps({"error": error})
    if isinstance(outcome, PendingCall):
        return json.dumps({"pending": list(outcome)})
    kind = "retry" if isinstance(outcome, Outcome.Retry) else "in_doubt"
    return json.dumps({kind: cast("Any", outcome).message})


def outcome_from_text(text: str) -> Outcome:
    """Return the outcome of a call, from `outcome_to_text`."""
    ((kind, value),) = json.loads(text).items()
    if kind == "ok":
        said = from_text(value)
        return Outcome.Ok(said.text, said.parts)
    if kind == "error":
        message, transient, again, wait = value
        return Outcome.Error(message, transient, again=again, wait=wait)
    if kind == "pending":
        # As a tool returns it.
        return cast("Outcome", PendingCall(*value))
    return Outcome.Retry(value) if kind == "retry" else Outcome.InDoubt(value)
