"""Runs that a process has, and that have written nothing for long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Rows", "SilentRun", "silent_runs"]

Rows: TypeAlias = Callable[[str, str], Iterable[Mapping[str, Any]]]
"""Returns the rows of a query about a run: `{id}` is its id, `{of}` the schema of the views."""

_OF_MODEL = ("model_asked", "model_attempt_failed")


@dataclass(frozen=True, slots=True)
class SilentRun:
    """A run that a process has, with no event for long, and that waits for nobody.

    Attributes:
        run_id: Its id.
        agent: The name of its agent.
        seconds: Seconds since its last event. Progress that a tool reports is no event.
        calls: Its calls in progress, such as `"T3 render"`.
        asks_model: Whether the model is asked.
    """

    run_id: str
    agent: str
    seconds: float
    calls: list[str]
    asks_model: bool


def silent_runs(rows: Rows, found: Iterable[Mapping[str, Any]]) -> list[SilentRun]:
    """Return those of some runs that wait neither for a decision nor for a child run.

    Args:
        rows: Returns the rows of a query.
        found: Runs without an event for long: `run_id`, `agent` and `seconds`.
    """
    silent = []
    for run in found:
        run_id = run["run_id"]
        (last,) = rows(_LAST, run_id)
        asks_model = last["kind"] in _OF_MODEL
        opened = list(rows(_OPEN, run_id))
        below = {one["parent_ticket"] for one in rows(_BELOW, run_id)}
        calls = [
            f"{one['ticket']} {one['tool']}"
            for one in opened
            if one["kind"] == "tool_call" and not one.get("parked") and one["ticket"] not in below
        ]
        if asks_model or calls or not opened:
            silent.append(SilentRun(run_id, run["agent"], run["seconds"], calls, asks_model))
    return silent


_LAST = "SELECT kind FROM {of}events WHERE run_id = {id} ORDER BY seq DESC LIMIT 1"
_OPEN = (
    "SELECT * FROM {of}tickets "
    "WHERE run_id = {id} AND status = 'IN_PROGRESS' ORDER BY opened_at, ticket"
)
_BELOW = "SELECT parent_ticket FROM {of}runs WHERE parent_run = {id} AND finished_at IS NULL"
