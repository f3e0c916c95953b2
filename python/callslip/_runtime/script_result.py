"""The result of a script, which the model of the run above reads. It is made from the log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip._base.json import to_json
from callslip.tools import Outcome

if TYPE_CHECKING:
    from callslip.runs import Run, Ticket

__all__ = ["script_outcome"]

_LISTED = 50
"""The number of calls in the notes on a script that did not end well: the latest."""

_IN_DOUBT = "it is not known whether the last call took effect: check before you make it again"
_DIVERGED = "after a restart the script did not come to the same calls, so it was ended"
_SILENT = "the script printed nothing and its last line has no value: print what you want to read"


def script_outcome(run: Run[Any]) -> Outcome:
    """Return the outcome of the call that has started a script, from its run, which is over.

    Its result is `{status, stdout, value?, error?, calls: {made, failed, denied}, notes}`. The
    status is `ok`, `error`, `limit`, `in_doubt` or `diverged`.
    """
    ending = run._core.ending
    assert ending is not None
    if ending.reason == "cancelled":
        return Outcome.Cancelled("The script was cancelled.")
    end: dict[str, Any] = ending.value if ending.reason == "finished" else {}
    tickets = run.tickets
    result: dict[str, Any] = {
        "status": end.get("status", "limit" if ending.reason == "limit" else "error"),
        "stdout": _core.script_printed(run._core) or "",
    }
    if end.get("value") is not None:
        result["value"] = end["value"]
    if "error" in end:
        result["error"] = end["error"]
    elif (message := _message(result["status"], ending.error)) is not None:
        result["error"] = {"message": message}
    result["calls"] = {
        "made": sum(ticket.outcome == "ok" for ticket in tickets),
        "failed": sum(ticket.outcome in _FAILED for ticket in tickets),
        "denied": sum(ticket.outcome == "denied" for ticket in tickets),
    }
    rows = _core.script_outcomes(run._core, 0)
    edited = {f"T{ticket}" for *_, ticket, is_edited in rows if is_edited}
    result["notes"] = _notes(result, tickets, edited)
    return Outcome.Ok(to_json(result))


_FAILED = frozenset({"error", "retry", "in_doubt", "cancelled"})


def _message(status: str, error: str | None) -> str | None:
    if status == "in_doubt":
        return _IN_DOUBT
    return _DIVERGED if status == "diverged" else error


def _notes(result: dict[str, Any], tickets: list[Ticket], edited: set[str]) -> list[str]:
    """Return notes on changed arguments, and on the calls of a script that did not end well."""
    notes = [
        f"{ticket.id} was made with other arguments, which a person has put in: "
        f"{to_json(ticket.arguments)}"
        for ticket in tickets
        if ticket.id in edited
    ]
    if result["status"] == "ok":
        if not result["stdout"] and "value" not in result:
            notes.append(_SILENT)
        return notes
    if len(tickets) > _LISTED:
        notes.append(f"the latest {_LISTED} of {len(tickets)} calls follow")
    notes += [f"{one.id}: {one.description}: {one.outcome}" for one in tickets[-_LISTED:]]
    return notes
