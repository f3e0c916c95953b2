"""What must hold after a kill and at the end: the logs beside what was counted outside."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

from crash.jobs import Job, answer
from crash.ledger import Line
from crash.logs import Key, Logs, Record, events, job_of, parent_of, task_of, ticket_of


class Wrong(AssertionError):  # noqa: N818  # what it says is a verdict
    """A promise was broken."""


def demand(holds: object, what: str, *details: object) -> None:
    if not holds:
        raise Wrong(what + "".join(f"\n  {detail}" for detail in details))


def nothing_was_lost(before: Logs, after: Logs, finished: dict[str, Any]) -> None:
    """Each log goes on where it stood, and what the process said is finished is finished."""
    for run, log in before.runs.items():
        demand(run in after.runs, f"run {run} is gone")
        there = after.runs[run]
        for record, now in itertools.zip_longest(log, there[: len(log)]):
            demand(now == record, f"the log of run {run} has changed", record, now)
    for run, value in finished.items():
        ends = events(after.runs.get(run, []), "run_finished")
        demand(ends, f"run {run} was said to be finished: its log does not say so")
        demand(ends[0]["value"] == value, f"run {run} was said to end with {value}", ends)


def nothing_was_repeated(before: Logs, since: list[Line]) -> None:
    """What was finished in the logs when the process died was not begun again."""
    replied, completed = before.replied(), before.completed()
    decided = completed.keys() | set(before.approved())
    for line in since:
        if line["at"] == "asked":
            asked = (line["run"], line["ticket"])
            demand(asked not in decided, "somebody was asked again who had decided", line)
        if line["at"] != "start":
            continue
        if line["kind"] == "model":
            demand(line["turn"] >= replied[line["job"]], "a reply that is kept was asked for", line)
        else:
            known = (line["run"], line["ticket"]) in completed
            demand(not known, "a call that is finished was made again", line)


def nothing_is_left_below(logs: Logs) -> None:
    """A run below another one is known to it, and is over when its ticket is completed."""
    completed, unfinished = logs.completed(), logs.unfinished()
    opened = dict(logs.tickets("ticket_opened"))
    for run, log in logs.runs.items():
        parent = parent_of(log)
        if parent is None:
            continue
        demand(opened.get(parent, {}).get("kind") == "task", f"run {run} has no ticket", parent)
        demand(run not in unfinished or parent not in completed, f"run {run} was left", parent)


def approvals_hold(logs: Logs, lines: list[Line]) -> None:
    """Nothing is done that nobody approved of; what was asked for or decided is not lost."""
    asked_for, approved, denied = logs.asked_for(), logs.approved(), logs.denied()
    completed = logs.completed()
    for key, count in Counter(approved).items():
        demand(count == 1 and key in asked_for, f"{key} was approved of {count} times")
    decisions: dict[Key, set[bool]] = defaultdict(set)
    for line in lines:
        key = (line.get("run", ""), line.get("ticket", ""))
        if line["at"] == "asked":
            decisions[key].add(line["denied"])
        elif line["at"] == "decided" and line["alone"]:
            there = key in (denied if line["denied"] else approved)
            demand(there, "a decision between two processes was lost", line)
        elif line["at"] == "start" and key in asked_for:
            demand(key in approved, "a call was made before it was approved of", line)
    demand(decisions.keys() >= denied | set(approved), "something was decided that nobody asked")
    for key in approved:
        demand(decisions[key] == {False}, f"{key} is approved of, but was denied")
    for key in denied:
        demand(decisions[key] == {True}, f"{key} is denied, but was approved of")
        demand(f"{key[0]}.{key[1]}" not in logs.runs, f"{key} was denied, and begun")
    if logs.awaiting_approval is not None:
        waiting = asked_for - set(approved) - completed.keys()
        demand(
            logs.awaiting_approval == waiting,
            "another list of what waits",
            logs.awaiting_approval,
            waiting,
        )


def approvals_count(logs: Logs, lines: list[Line]) -> None:
    """A call that was approved of between two processes is made by the next one, not in doubt."""
    alone = {
        (line["run"], line["ticket"]) for line in lines if line["at"] == "decided" and line["alone"]
    }
    for run, log in logs.runs.items():
        lives: dict[str, int] = {}
        for record in log:
            event = record["event"]
            if "approved" in event and (run, ticket_of(event["approved"])) in alone:
                lives[ticket_of(event["approved"])] = 0
            elif event.get("noted") == {"note": "resumed"}:
                lives = {ticket: count + 1 for ticket, count in lives.items()}
            elif "ticket_completed" in event and "in_doubt" in event["ticket_completed"]["outcome"]:
                ticket = ticket_of(event["ticket_completed"])
                demand(lives.get(ticket) != 1, f"{run}/{ticket} was approved of and never made")


def effects_are_as_declared(lines: list[Line]) -> None:
    """Over all lives: `once` once, the others with one key a ticket, and each step done once."""
    calls = [line for line in lines if line["kind"] == "tool" and line["at"] in {"start", "effect"}]
    starts = Counter((line["key"], line["tool"]) for line in calls if line["at"] == "start")
    asked = Counter(line["key"] for line in lines if line["at"] == "reconcile")
    for (key, name), count in starts.items():
        if name in {"charge", "ship", "sign"}:
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
            effects[line["job"], line["step"]] += line["tool"] in {"charge", "ship", "sign"}
    for ticket, used in keys.items():
        demand(len(used) == 1, f"ticket {ticket} had several keys", used)
    for key, used_for in tickets.items():
        demand(len(used_for) == 1, f"key {key} stood for several calls", used_for)
    for step, by in done.items():
        demand(len(by) == 1, f"step {step} was done with several keys", by)
    for step, count in effects.items():
        demand(count <= 1, f"step {step} was done {count} times")


def jobs_are_done(jobs: list[Job], logs: Logs, lines: list[Line]) -> None:
    """Each job and each below it has one run, with the right value, and every step is done."""
    runs: dict[str, list[str]] = defaultdict(list)
    for run, log in logs.runs.items():
        runs[job_of(log).name].append(run)
    names = {part.name for job in jobs for part in job.tree()}
    demand(runs.keys() <= names, "there are runs of no job", runs.keys() - names)
    done = {(line["job"], line["step"]) for line in lines if line["at"] == "effect"}
    for name in names:
        demand(len(runs[name]) == 1, f"{name} has runs {runs[name]}")
        job_is_done(logs.runs[runs[name][0]], done)
    for run, log in logs.runs.items():
        children_are_known(run, log, logs)


def job_is_done(log: list[Record], done: set[tuple[str, int]]) -> None:
    job = job_of(log)
    ends = events(log, "run_finished")
    demand(len(ends) == 1, f"{job} ended {len(ends)} times")
    end = ends[0]
    demand(end["reason"] == "finished", f"{job} ended otherwise", end)
    demand(answer(task_of(log), end["value"]) == job.right, f"{job} should be {job.right}", end)
    demand(not events(log, "violated"), f"{job} has violations", events(log, "violated"))
    opened = [ticket_of(event) for event in events(log, "ticket_opened")]
    closed = [ticket_of(event) for event in events(log, "ticket_completed")]
    demand(sorted(opened) == sorted(closed), f"{job} has open tickets", opened, closed)
    demand(len(set(opened)) == len(opened), f"{job} has a ticket twice", opened)
    missing = [
        step for step in range(job.steps) if not job.is_part(step) and (job.name, step) not in done
    ]
    demand(not missing, f"{job} was never really done", missing)


def children_are_known(run: str, log: list[Record], logs: Logs) -> None:
    """Each task that was not denied has a run, whose value is what its ticket says."""
    below = {parent_of(log): child for child, log in logs.runs.items()}
    outcomes = {ticket_of(event): event["outcome"] for event in events(log, "ticket_completed")}
    for event in events(log, "ticket_opened"):
        child = below.get((run, ticket_of(event)))
        outcome = outcomes[ticket_of(event)]
        if event.get("kind") != "task" or "denied" in outcome:
            demand(child is None, f"run {child} is below a call", event)
            continue
        demand(child is not None and "ok" in outcome, f"a task has no run in {run}", event, outcome)
        value = events(logs.runs[str(child)], "run_finished")[0]["value"]
        told = outcome["ok"]
        demand(told == value, f"run {child} ended with {value}, its parent was told {told}")
