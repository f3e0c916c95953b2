"""The logs of a store at one moment, and what can be read off them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from crash.jobs import Job

Record = dict[str, Any]
"""A line of a run's log: its place, its time and its event, by kind."""
Key = tuple[str, str]
"""A ticket: its run and its id."""


def events(log: list[Record], kind: str) -> list[dict[str, Any]]:
    return [record["event"][kind] for record in log if kind in record["event"]]


def task_of(log: list[Record]) -> str:
    return str(events(log, "run_started")[0]["task"])


def job_of(log: list[Record]) -> Job:
    return Job.of_task(task_of(log))


def parent_of(log: list[Record]) -> Key | None:
    parent = events(log, "run_started")[0].get("parent")
    return None if parent is None else (parent["run_id"], ticket_of(parent))


def ticket_of(event: dict[str, Any]) -> str:
    """As everybody but the log writes it."""
    return f"T{event['ticket']}"


@dataclass
class Logs:
    """By run, those that are below others among them. `awaiting_approval` is listed if asked."""

    runs: dict[str, list[Record]] = field(default_factory=dict)
    awaiting_approval: set[Key] | None = None

    @staticmethod
    def of_texts(texts: dict[str, str]) -> Logs:
        return Logs(
            {run: [json.loads(line) for line in text.splitlines()] for run, text in texts.items()}
        )

    def roots(self) -> dict[str, list[Record]]:
        return {run: log for run, log in self.runs.items() if parent_of(log) is None}

    def replied(self) -> Counter[str]:
        """Model replies that are kept, by job."""
        return Counter(
            {job_of(log).name: len(events(log, "model_replied")) for log in self.runs.values()}
        )

    def tickets(self, kind: str) -> Iterator[tuple[Key, dict[str, Any]]]:
        """The events of a kind that are about tickets."""
        for run, log in self.runs.items():
            for event in events(log, kind):
                yield (run, ticket_of(event)), event

    def completed(self) -> dict[Key, Any]:
        """Outcomes, by ticket."""
        return {key: event["outcome"] for key, event in self.tickets("ticket_completed")}

    def asked_for(self) -> set[Key]:
        """The calls that somebody is asked to approve of, or was."""
        opened = self.tickets("ticket_opened")
        return {key for key, event in opened if event.get("needs_approval")}

    def approved(self) -> list[Key]:
        return [key for key, _ in self.tickets("approved")]

    def denied(self) -> set[Key]:
        return {key for key, outcome in self.completed().items() if "denied" in outcome}

    def unfinished(self) -> set[str]:
        return {run for run, log in self.runs.items() if not events(log, "run_finished")}

    def told(self, outcome: str) -> int:
        """Tickets completed with an outcome."""
        return sum(outcome in told for told in self.completed().values())
