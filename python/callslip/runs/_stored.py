"""Runs in a list of a store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from callslip import _core
from callslip._base.usage import Usage
from callslip._protocols import ProtocolName
from callslip.limits import limit_message
from callslip.runs._result import RunStatus, StopReason
from callslip.runs._view_imports import import_views

__all__ = ["StoredRun", "StoredRuns", "state_word", "stored_run"]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a store in a list. `TicketStore.run` returns the whole run.

    Attributes:
        run_id: The id, unique among runs.
        agent: The name of the agent.
        owner: Whose data it is; `None` for nobody's.
        key: What its caller calls it; `None` without a key.
        protocol: The name of the protocol; `None` for a run that waits for its first worker.
        task: The task, as the user has written it.
        parent_run: The id of the parent run; `None` for a run without one.
        parent_ticket: The id of the ticket in the parent run.
        status: `"running"` until the run is finished, even if no driver works on it yet.
        stop_reason: The reason for the end of the run; `None` before that.
        error: The error that has ended the run; `None` without one.
        turns: The number of turns.
        violations: The number of replies that broke the protocol.
        usage: The usage of the run's own replies.
        started_at: The time of the start, in Unix seconds.
        updated_at: The time of the last event, in Unix seconds.
        finished_at: The time of the end, in Unix seconds; `None` before that.
    """

    run_id: str
    agent: str
    owner: str | None
    key: str | None
    protocol: ProtocolName | None
    task: str
    parent_run: str | None
    parent_ticket: str | None
    status: RunStatus
    stop_reason: StopReason | None
    error: str | None
    turns: int
    violations: int
    usage: Usage
    started_at: float
    updated_at: float
    finished_at: float | None

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return StoredRuns([self])._repr_mimebundle_()


class StoredRuns(list[StoredRun]):
    """Runs of a store, as `TicketStore.runs` lists them. A notebook shows them as a table."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        names = ("run", "agent", "state", "turns", "violations", "tokens in", "tokens out", "task")
        rows = [_cells(run) for run in self]
        bundle: dict[str, Any] = import_views().bundle_of_table(names, rows)
        return bundle


def state_word(run: StoredRun) -> str:
    """Return the state of a run in lists for people."""
    return run.stop_reason or ("queued" if run.protocol is None else run.status)


def _cells(run: StoredRun) -> list[str]:
    numbers = (run.turns, run.violations, run.usage.input_tokens, run.usage.output_tokens)
    state = state_word(run).replace("_", " ")
    return [run.run_id, run.agent, state, *map(str, numbers), run.task]


def stored_run(row: _core.RunRow) -> StoredRun:
    """Return a run of a list, from the row of the core."""
    run = StoredRun(
        run_id=row.run_id,
        agent=row.agent,
        owner=row.owner,
        key=row.key,
        protocol=row.protocol,
        task=row.task,
        parent_run=row.parent_run,
        parent_ticket=row.parent_ticket,
        status=row.status,
        stop_reason=row.stop_reason,
        error=row.error,
        turns=row.turns,
        violations=row.violations,
        usage=Usage._from_core(row.usage),
        started_at=row.started_at,
        updated_at=row.updated_at,
        finished_at=row.finished_at,
    )
    if run.stop_reason == "limit" and run.error is not None:
        return replace(run, error=limit_message(run.error))
    return run
