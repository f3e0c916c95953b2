"""What must hold when all runs of a sequence are over, whoever has done what to them meanwhile."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from callslip import Run, TicketStore, replay
from sequences.crew import ONCE
from sequences.ledger import Line

GIVEN_UP = {"cancelled", "not_begun"}


class Judge:
    """Reads the logs of a store and the ledger beside it.

    Args:
        store: The store, with no run under way.
        lines: The ledger.
    """

    def __init__(self, store: TicketStore, lines: list[Line]) -> None:
        self._store, self._lines = store, lines
        self._is_shared = store.address is not None
        self._runs: dict[str, Run[Any]] = {
            row.run_id: store.run(row.run_id) for row in store.runs()
        }
        self._acts = {tuple(line["id"]): line for line in lines if line["kind"] == "begin"}
        self._calls = [line for line in lines if line["kind"] == "call"]
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def check(self) -> list[str]:
        """Return what is wrong, in words."""
        for line in self._lines:
            if line["kind"] == "fault":
                self._demand(False, f"fault: {line}")
        for run in self._runs.values():
            self._check_over(run)
        self._check_calls()
        self._check_messages()
        self._check_decisions()
        self._check_cancels()
        self.seen.update(runs=len(self._runs), calls=len(self._calls))
        return self.wrong

    def _demand(self, holds: object, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    def _check_over(self, run: Run[Any]) -> None:
        self._demand(run.finished, f"{run.id} is left open")
        left = [ticket.id for ticket in run.tickets if ticket.outcome is None]
        self._demand(not left, f"{run.id} has open tickets {left}")
        self._demand(replay(run).export() == run.export(), f"{run.id} does not replay")
        self.seen[f"{run.stop_reason}"] += 1

    def _check_calls(self) -> None:
        """A call has been made as often as its outcome says."""
        made = Counter((line["run"], line["ticket"]) for line in self._calls)
        for run in self._runs.values():
            for ticket in run.tickets:
                times = made[run.id, ticket.id]
                told = (
                    f"{ticket.tool} {run.id} {ticket.id} ({ticket.outcome}) was made {times} times"
                )
                if ticket.tool in ONCE:
                    self._demand(times <= 1, told)
                    if ticket.outcome == "ok":
                        self._demand(times == 1, told)
                if ticket.outcome == "denied" or self._outcome(run.id, ticket.id) == "not_begun":
                    self._demand(times == 0, told)
        known = {(run.id, ticket.id) for run in self._runs.values() for ticket in run.tickets}
        self._demand(made.keys() <= known, f"calls of no ticket: {made.keys() - known}")

    def _outcome(self, run_id: str, ticket: str) -> str | None:
        log = self._runs[run_id].log
        ends = [one.outcome for one in log if _is(one, "ticket_completed", ticket)]
        return ends[-1] if ends else None

    def _answers(self, *names: str) -> list[tuple[Line, str | None]]:
        """The acts of these names, each with `acknowledged`, `refused` or nothing."""
        answered = {
            tuple(one["of"]): one["kind"]
            for one in self._lines
            if "at_ack" not in one and "of" in one
        }
        return [(act, answered.get(key)) for key, act in self._acts.items() if act["act"] in names]

    def _check_messages(self) -> None:
        said: Counter[str] = Counter()
        for run in self._runs.values():
            log = run.log
            for event in log:
                if event.kind == "user_said":
                    said[event.text] += 1
            last = max((e.seq for e in log if e.kind == "user_said"), default=-1)
            asked = any(e.kind == "model_asked" and e.seq > last for e in log)
            if last >= 0 and run.stop_reason == "finished":
                self._demand(asked, f"{run.id} ended without reading its last message")
        waiting = self._waiting_messages()
        for act, answer in self._answers("send"):
            times = said[act["text"]] + waiting[act["text"]]
            allowed = {"acknowledged": {1}, "refused": {0}}.get(answer or "", {0, 1})
            self._demand(
                times in allowed, f"{act['text']} to {act['run']} ({answer}) came {times} times"
            )
            self.seen[f"send {answer}"] += 1

    def _waiting_messages(self) -> Counter[str]:
        """Messages to child runs that are over: they wait for whoever resumes those."""
        if not self._is_shared:
            return Counter()
        rows = self._store.query("SELECT run, body FROM callslip.inbox WHERE kind = 'say'")
        below = {run.id for run in self._runs.values() if run.log[0].parent_run is not None}
        return Counter(json.loads(row["body"])["text"] for row in rows if row["run"] in below)

    def _check_decisions(self) -> None:
        decided: dict[tuple[str, str], list[str]] = defaultdict(list)
        for act, answer in self._answers("approve", "deny"):
            self.seen[f"{act['act']} {answer}"] += 1
            if answer == "acknowledged":
                decided[act["run"], act["ticket"]].append(act["act"])
        for (run_id, ticket), acts in decided.items():
            log = self._runs[run_id].log
            found = ["approve" for one in log if _is(one, "approved", ticket)]
            found += [
                "deny"
                for one in log
                if _is(one, "ticket_completed", ticket) and one.outcome == "denied"
            ]
            if self._is_shared and not found and self._outcome(run_id, ticket) in GIVEN_UP:
                # A cancel came first that another process had told the run.
                self.seen["decisions after a cancel"] += 1
                continue
            told = f"{run_id} {ticket} was decided {acts[:5]}: the log has {found}"
            self._demand(acts == found, told)

    def _check_cancels(self) -> None:
        """After a cancel was acknowledged, only calls of turns that somebody asked for later."""
        for line in self._lines:
            if line["kind"] != "stands" or line["seq"] is None:
                continue
            top = self._runs[self._acts[tuple(line["of"])]["run"]]
            end = max(
                (
                    e.seq
                    for e in top.log
                    if e.kind == "run_finished"
                    and e.seq <= line["seq"]
                    # Else it ended between the acknowledgement and the reading.
                    and not (self._is_shared and e.at > line["time_ack"])
                ),
                default=None,
            )
            if end is None:
                # Its driver in another process has heard of it later.
                self._demand(self._is_shared, f"{top.id} was cancelled, and its log has no end")
                self.seen["cancels elsewhere"] += 1
                continue
            self.seen["cancels"] += 1
            for call in self._calls:
                begun = call["begun"] or call["at"]
                if begun > line["at_ack"] and not self._may_follow(top, end, call):
                    late = (begun - line["at_ack"]) / 1e6
                    self.wrong.append(
                        f"{call['tool']} {call['run']} {call['ticket']} was made {late:.1f} ms "
                        f"after {top.id} was cancelled"
                    )

    def _may_follow(self, top: Run[Any], end: int, call: Line) -> bool:
        """Whether a call was opened after the run, or one between it and the call, was taken up."""
        run, ticket = self._runs[call["run"]], call["ticket"]
        while run.id != top.id:
            opened = _opened(run, ticket)
            if any(e.kind == "run_finished" and e.seq < opened for e in run.log):
                return True
            begun = run.log[0]
            if begun.parent_run is None:
                return True
            run, ticket = self._runs[begun.parent_run], begun.parent_ticket
        return _opened(top, ticket) > end


def _is(event: Any, kind: str, ticket: str) -> bool:
    return event.kind == kind and event.ticket_id == ticket


def _opened(run: Run[Any], ticket: str) -> int:
    return next(e.seq for e in run.log if _is(e, "ticket_opened", ticket))
