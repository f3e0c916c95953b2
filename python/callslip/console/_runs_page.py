"""The page of all runs: those that wait for a person first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self
from urllib.parse import urlencode

from callslip.console._addresses import key_of
from callslip.console._source import Listing
from callslip.look._markup import Content, Markup, el, joined
from callslip.look._numbers import count, moment
from callslip.look._text import Texts
from callslip.runs._stored import state_word
from callslip.store import StoredRun

__all__ = ["COLUMNS", "Filter", "runs_sections"]

_MOST = 100
_TEXTS = Texts(limit=200, redact=None)
_STATES = ("waiting", "running", "finished", "failed")
COLUMNS = ("Run", "State", "Turns", "Violations", "Tokens", "Cost", "Started")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs are shown.

    Attributes:
        state: `"waiting"`, `"running"`, `"finished"`, `"failed"`, or empty for any.
        agent: The name of their agent; empty for any.
        text: What their task or id contains; empty for any.
        page: Which hundred of them, from 1.
    """

    state: str = ""
    agent: str = ""
    text: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the filter of an address."""
        state = query.get("state", "")
        return cls(
            state=state if state in _STATES else "",
            agent=query.get("agent", "").strip(),
            text=query.get("text", "").strip(),
            page=max(1, int(page)) if (page := query.get("page", "1")[:6]).isdecimal() else 1,
        )

    def address(self, path: str) -> str:
        """Return an address with this filter."""
        return f"{path}?{urlencode(asdict(self))}"

    def has(self, run: StoredRun, waits: int) -> bool:
        """Whether a run is shown, of whose calls this many wait."""
        if self.agent and run.agent != self.agent:
            return False
        if self.text and self.text.casefold() not in f"{run.task}\n{run.run_id}".casefold():
            return False
        match self.state:
            case "waiting":
                return waits > 0
            case "running":
                return run.status == "running"
            case "finished":
                return run.stop_reason == "finished"
            case "failed":
                return run.status == "finished" and run.stop_reason != "finished"
            case _:
                return True

    def form(self) -> Markup:
        """Return the form that chooses the runs."""
        states = [el("option", one, selected=one == self.state) for one in _STATES]
        state = el("select", el("option", "any", value=""), states, name="state")
        agent = el("input", name="agent", value=_TEXTS.line(self.agent))
        text = el("input", name="text", value=_TEXTS.line(self.text))
        return el(
            "form",
            el("label", "State ", state),
            el("label", "Agent ", agent),
            el("label", "Task or id ", text),
            el("button", "Show"),
            class_="filter",
        )


def runs_sections(
    listing: Listing, chosen: Filter, base: str, place: tuple[str, str | None]
) -> dict[str, list[Markup]]:
    """Return the parts of the page, each with its pieces.

    Args:
        listing: The runs.
        chosen: Which of them are shown.
        base: The beginning of the addresses of all pages.
        place: The name of the store, and the process that owns it, if it is another one.
    """
    waits = _waits(listing)
    known = {run.run_id for run in listing.runs}
    found = [
        run
        for run in listing.runs
        if run.parent_run not in known and chosen.has(run, waits.get(run.run_id, 0))
    ]
    found.sort(key=lambda run: run.run_id not in waits)
    first = (chosen.page - 1) * _MOST
    rows = [_row(run, waits.get(run.run_id, 0), base) for run in found[first : first + _MOST]]
    waiting = sum(run.run_id in waits for run in found)
    title = f"{count(waiting, 'run')} waiting for you" if waiting else count(len(found), "run")
    end: list[Content] = []
    if chosen.page > 1:
        before = replace(chosen, page=chosen.page - 1).address(f"{base}/")
        end += [el("a", "Runs before", id="before", href=before), " "]
    if (left := len(found) - first - len(rows)) > 0:
        after = replace(chosen, page=chosen.page + 1).address(f"{base}/")
        end.append(el("a", count(left, "more run"), id="after", href=after))
    if not found:
        end = ["No run is like this" if listing.runs else "No runs yet"]
    head = [el("h1", title), el("p", _TEXTS.line(_place(*place)), class_="soft")]
    return {"head": head, "form": [chosen.form()], "rows": rows, "end": [el("p", end)]}


def _place(name: str, owner: str | None) -> str:
    return name if owner is None else f"{name}, which {owner} has open: this console only reads it"


def _waits(listing: Listing) -> dict[str, int]:
    """Return how many calls wait in each run with the runs below it, by its id."""
    parents = {run.run_id: run.parent_run for run in listing.runs}
    waits: dict[str, int] = {}
    for run_id, tickets in listing.waiting.items():
        above: str | None = run_id
        seen: set[str] = set()
        while above is not None and above not in seen:
            seen.add(above)
            waits[above] = waits.get(above, 0) + len(tickets)
            above = parents.get(above)
    return waits


def _row(run: StoredRun, waits: int, base: str) -> Markup:
    line = _TEXTS.line
    if waits:
        state, kind = ("1 call waits" if waits == 1 else f"{waits} calls wait"), "wait"
    else:
        state = state_word(run).replace("_", " ")
        kind = "soft" if run.status == "running" or run.stop_reason == "finished" else "bad"
    tokens = run.usage.input_tokens + run.usage.output_tokens
    cost = f"{run.usage.cost:.4f}" if run.usage.cost else ""
    key = key_of(run.run_id)
    about = line(run.agent if run.protocol is None else f"{run.agent} · {run.protocol}")
    cells: tuple[Content, ...] = (
        (
            el("a", line(run.task) or "(no task)", id=key, href=f"{base}/runs/{key}"),
            el("div", about, class_="soft"),
        ),
        el("span", line(state), class_=f"badge {kind}"),
        f"{run.turns:,}",
        el("span", f"{run.violations:,}", class_="bad") if run.violations else "0",
        f"{tokens:,}" if tokens else "",
        cost,
        el("time", moment(run.started_at), data_at=repr(run.started_at)),
    )
    named = zip(COLUMNS, cells, strict=True)
    return joined(el("td", cell, data_name=name) for name, cell in named)
