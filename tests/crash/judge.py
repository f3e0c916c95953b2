"""What must hold after a kill and at the end: the logs beside what was counted outside."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from crash.jobs import Job, answer
from crash.ledger import Line

Record = dict[str, Any]
"""A line of a run's log: its place, its time and its event, by kind."""


def events(log: list[Record], kind: str) -> list[dict[str, Any]]:
    return [record["event"][kind] for record in log if kind in record["event"]]


def job_of(log: list[Record]) -> Job:
    return Job.of_task(events(log, "run_started")[0]["task"])


@dataclass
class Logs:
    """The logs of a store at one moment, by run."""

    runs: dict[str, list[Record]] = field(default_factory=dict)

    @staticmethod
    def of_texts(texts: dict[str, str]) -> Logs:
        return Logs(
            {run: [json.loads(line) for line in text.splitlines()] for run, text in texts.items()}
        )

    def replied(self) -> Counter[str]:
        """Model replies that are kept, by job."""
        return Counter(
            {job_of(log).name: len(events(log, "model_replied")) for log in self.runs.values()}
        )

    def completed(self) -> set[tuple[str, str]]:
        return {
            (run, event["ticket"])
            for run, log in self.runs.items()
            for event in events(log, "ticket_completed")
        }

    def unfinished(self) -> list[str]:
        return [run for run, log in self.runs.items() if not events(log, "run_finished")]

    def told(self, outcome: str) -> int:
        """Tickets completed with an outcome."""
        return sum(
            outcome in event["outcome"]
            for log in self.runs.values()
            for event in events(log, "ticket_completed")
        )


class Wrong(AssertionError):  # noqa: N818  # what it says is a verdict
    """A promise was broken."""


def demand(holds: object, what: str, *details: object) -> None:
    if not holds:
        raise Wrong(what + "".join(f"\n  {detail}" for detail in details))


def nothing_was_lost(before: Logs, after: Logs, finished: dict[str, Any]) -> None:
    """Each log goes on where it stood, and what the process said is finished is finished."""
    for run, log in before.runs.items():
        there = after.runs.get(run)
        demand(there is not None, f"run {run} is gone")
        for record, now in itertools.zip_longest(log, there[: len(log)]):
            demand(now == record, f"the log of run {run} has changed", record, now)
    for run, value in finished.items():
        ends = events(after.runs.get(run, []), "run_finished")
        demand(ends, f"run {run} was said to be finished: its log does not say so")
        demand(ends[0]["value"] == value, f"run {run} was said to end with {value}", ends)


def nothing_was_repeated(before: Logs, since: list[Line]) -> None:
    """What was finished in the logs when the process died was not begun again."""
    replied, completed = before.replied(), before.completed()
    for line in since:
        if line["at"] != "start":
            continue
        if line["kind"] == "model":
            demand(line["turn"] >= replied[line["job"]], "a reply that is kept was asked for", line)
        else:
            known = (line["run"], line["ticket"]) in completed
            demand(not known, "a call that is finished was made again", line)


def effects_are_as_declared(lines: list[Line]) -> None:
    """Over all lives: `once` once, the others with one key a ticket, and each step done once."""
    calls = [line for line in lines if line["kind"] == "tool" and line["at"] in {"start", "effect"}]
    starts = Counter((line["key"], line["tool"]) for line in calls if line["at"] == "start")
    asked = Counter(line["key"] for line in lines if line["at"] == "reconcile")
    for (key, name), count in starts.items():
        if name in {"charge", "ship"}:
            # `ship` has its reconcile asked, and is called again only where that says "not done".
            demand(count <= 1 + asked[key], f"{name} was called {count} times with key {key}")
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    tickets: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    done: dict[tuple[str, int], set[str]] = defaultdict(set)
    effects: Counter[tuple[str, int]] = Counter()
    for line in calls:
        keys[line["run"], line["ticket"]].add(line["key"])
        what = (line["run"], line["ticket"], line["tool"], line["job"], line["step"])
        tickets[line["key"]].add((*what, line["attempt"]))
        # `look` may start before its reply is whole, and again for the reply that comes instead.
        if line["at"] == "effect" and line["tool"] != "look":
            done[line["job"], line["step"]].add(line["key"])
            effects[line["job"], line["step"]] += line["tool"] in {"charge", "ship"}
    for ticket, used in keys.items():
        demand(len(used) == 1, f"ticket {ticket} had several keys", used)
    for key, used_for in tickets.items():
        demand(len(used_for) == 1, f"key {key} stood for several calls", used_for)
    for step, by in done.items():
        demand(len(by) == 1, f"step {step} was done with several keys", by)
    for step, count in effects.items():
        demand(count <= 1, f"step {step} was done {count} times")


def jobs_are_done(jobs: list[Job], logs: Logs, lines: list[Line]) -> None:
    """Each job has one run, with the right value, every ticket closed and every step done."""
    runs: dict[str, list[str]] = defaultdict(list)
    for run, log in logs.runs.items():
        runs[job_of(log).name].append(run)
    done = {(line["job"], line["step"]) for line in lines if line["at"] == "effect"}
    for job in jobs:
        demand(len(runs[job.name]) == 1, f"{job} has runs {runs[job.name]}")
        log = logs.runs[runs[job.name][0]]
        ends = events(log, "run_finished")
        demand(len(ends) == 1, f"{job} ended {len(ends)} times")
        end = ends[0]
        demand(end["reason"] == "finished", f"{job} ended otherwise", end)
        demand(answer(job, end["value"]) == job.right, f"{job} should be {job.right}", end)
        demand(not events(log, "violated"), f"{job} has violations", events(log, "violated"))
        opened = [event["ticket"] for event in events(log, "ticket_opened")]
        closed = [event["ticket"] for event in events(log, "ticket_completed")]
        demand(sorted(opened) == sorted(closed), f"{job} has open tickets", opened, closed)
        demand(len(set(opened)) == len(opened), f"{job} has a ticket twice", opened)
        missing = [step for step in range(job.steps) if (job.name, step) not in done]
        demand(not missing, f"{job} was never really done", missing)
