"""docs/comparison.md: the text of page.md, with tables from the data of one run alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from comparison import call_table
from comparison.fault_cells import cell, is_silent
from comparison.faults import FAULTS
from comparison.later import notes
from comparison.sizes import WHOLE

Data = Mapping[str, Any]

__all__ = ["claims", "render", "with_claims"]

OURS = "callslip"
BASE = "bare_loop"
REFUSED = [fault for fault in FAULTS if fault.must_refuse]
OTHERS = [fault for fault in FAULTS if not fault.must_refuse]


def render(data: Data) -> str:
    """Return the whole page."""
    text = Path(__file__).with_name("page.md").read_text("utf-8")
    machine, sizes = data["machine"], data["sizes"]
    (alone, _), (each, runs) = (name.split(" x ") for name in sizes["durable"])
    return text.format(
        date=data["date"],
        machine="{system} on {kind}, {cores} shared virtual cores, Python {python}".format(
            **machine
        ),
        limit=f"{data['limit_s']:.0f}",
        short="".join([short(data), *(f"\n{note}\n" for note in notes(data))]),
        peers=peers(data),
        cpu=sizes_table(data, "loop", sizes["turns"], "cpu_us", "steps"),
        memory=sizes_table(data, "memory", sizes["agents"], "kb", "agents"),
        alone=alone,
        runs=runs,
        each=each,
        durable=durable(data),
        without=without(data),
        start=python_start(data),
        imports=sizes["imports"],
        sizes=imports(data),
        faults=faults(data),
        refused="\n".join(f"- **{fault.title}**: {fault.why}." for fault in REFUSED),
        calls=calls(data),
        calls_refused=call_table.explained(must_refuse=True),
        calls_others=call_table.explained(must_refuse=False),
        others="\n".join(f"- **{fault.title}**: {fault.why}." for fault in OTHERS),
        better="\n".join(better(data)) or "- None in this run.",
    )


def short(data: Data) -> str:
    """Return how this run differs from a whole one."""
    if data["sizes"] == WHOLE.to_json():
        return ""
    turns, agents = ("/".join(f"{size:,}" for size in some) for some in (WHOLE.turns, WHOLE.agents))
    return (
        "\n**This run is a short one**, on a machine busy with other measurements."
        f" A whole run has more rounds, and runs of {turns} steps and {agents} agents.\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def with_kind(data: Data, kind: str) -> dict[str, Data]:
    """Return the peers that have this kind of figures."""
    return {name: one for name, one in data["peers"].items() if kind in one}


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def figure(one: Data, key: str, base: Data | None = None) -> str:
    """Return a figure, with its ratio to the base; or why there is none."""
    if "unmeasured" in one:
        return "not measured"
    if "over" in one:
        return f"more than {one['over']:.0f} s"
    if "failed" in one:
        return f"failed: {one['error']}"
    if not base or key not in base:
        return number(one[key])
    ratio = one[key] / base[key]
    return (
        f"{number(one[key])} ({ratio:,.0f})" if ratio >= 10 else f"{number(one[key])} ({ratio:.1f})"
    )


def peers(data: Data) -> str:
    rows = []
    for one in with_kind(data, "installed").values():
        versions = {name.lower(): version for name, version in one["installed"]["versions"].items()}
        pinned = ", ".join(f"{name} {versions[name]}" for name in one["pinned"])
        rows.append([one["title"], pinned or one["version"], one["uses"]])
    return table(["peer", "version", "used here"], rows)


def sizes_table(data: Data, kind: str, sizes: Sequence[int], key: str, head: str) -> str:
    found = with_kind(data, kind)
    base = found.get(BASE, {}).get(kind, {})
    rows = [
        [one["title"], *(figure(one[kind][str(size)], key, base.get(str(size))) for size in sizes)]
        for one in found.values()
    ]
    return table([head, *(f"{size:,}" for size in sizes)], rows)


def durable(data: Data) -> str:
    rows = []
    alone, many = data["sizes"]["durable"]
    for one in with_kind(data, "durable").values():
        if not one["durable"]:
            continue
        runs = [one["durable"][name] for name in (alone, many)]
        figures = [figure(run, key) for key in ("turns_s", "cpu_us") for run in runs]
        syncs = number(runs[0].get("syncs", 0)) if one["counts_syncs"] else "none"
        if "unmeasured" in runs[0]:
            syncs = figure(runs[0], "syncs")
        crash = after(one["durable"]["crash"])
        rows.append([one["title"], one["durability"], *figures, syncs, *crash])
    together = f"{many.split(' x ')[1]} runs"
    speeds = [
        f"{word}, {which}" for word in ("turns/s", "CPU a turn") for which in ("one run", together)
    ]
    return table(
        ["peer", "kept by", *speeds, "syncs a turn", "made twice", "after the crash"], rows
    )


def without(data: Data) -> str:
    names = [
        f"{one['title']} ({one['without']})"
        for one in with_kind(data, "durable").values()
        if not one["durable"]
    ]
    return f"Not measured, since runs are not kept: {'; '.join(names)}." if names else ""


def after(crash: Data) -> tuple[str, str]:
    """Return which calls were made twice, and how the run that was killed ended."""
    if {"over", "failed", "unmeasured"} & crash.keys():
        return "", figure(crash, "again")
    again, never = crash["again"], crash["never"]
    words = {0: "none", 1: "the one in progress"}
    twice = words.get(len(again), f"{len(again)} calls")
    if crash["error"]:
        return twice, f"fails: {crash['error']}"
    return twice, f"{len(never)} calls are never made" if never else "finishes"


def python_start(data: Data) -> str:
    found = with_kind(data, "imports").values()
    starts = [one["imports"]["pass_ms"] for one in found if "pass_ms" in one["imports"]]
    return f"{sum(starts) / len(starts):.0f}" if starts else "-"


def import_time(one: Data) -> float:
    return float(one["imports"]["import_ms"] - one["imports"]["pass_ms"])


def imports(data: Data) -> str:
    rows = [
        [
            one["title"],
            "not measured" if "unmeasured" in one["imports"] else f"{import_time(one):,.0f}",
            f"{one['installed']['mb']:,.0f}",
            f"{one['installed']['distributions']}",
        ]
        for one in with_kind(data, "imports").values()
    ]
    return table(["peer", "import, ms", "installed, MB", "distributions"], rows)


def faults(data: Data) -> str:
    found = with_kind(data, "faults").values()
    rows = [
        [fault.title, *(cell(fault, one["faults"][fault.name]) for one in found)]
        for fault in FAULTS
    ]
    counts = [f"**{executed(one)}**" for one in found]
    silent = [str(sum(map(is_silent, one["faults"].values()))) for one in found]
    rows.append([f"**executed, of {len(REFUSED)} that must be refused**", *counts])
    rows.append([f"ends with an empty answer, of {len(FAULTS)}", *silent])
    return table(["fault", *(one["title"] for one in found)], rows)


def calls(data: Data) -> str:
    found = with_kind(data, "calls").values()
    return table(call_table.HEAD, [row for one in found for row in call_table.rows(one)])


def executed(one: Data) -> int:
    """Count the faults that must be refused and are executed."""
    return sum(one["faults"][fault.name]["executions"] > 0 for fault in REFUSED)


def better(data: Data) -> Iterator[str]:
    """Yield each kind of figure with the peers whose figure is better than ours."""
    turns, agents = data["sizes"]["turns"], data["sizes"]["agents"]
    alone, many = data["sizes"]["durable"]

    def first(kind: str, size: object, key: str, sign: int = 1) -> Callable[[Data], float | None]:
        def read(one: Data) -> float | None:
            value = ((one.get(kind) or {}).get(str(size)) or {}).get(key)
            return None if value is None else sign * value

        return read

    readings: dict[str, Callable[[Data], float | None]] = {
        **{f"CPU a step of {size:,}": first("loop", size, "cpu_us") for size in turns},
        **{f"Memory of {size:,} agents": first("memory", size, "kb") for size in agents},
        "Durable turns of one run": first("durable", alone, "turns_s", -1),
        "Durable turns of many runs": first("durable", many, "turns_s", -1),
        "Import": lambda one: import_time(one) if "import_ms" in one.get("imports", {}) else None,
        "Megabytes": lambda one: one.get("installed", {}).get("mb"),
        "Distributions": lambda one: one.get("installed", {}).get("distributions"),
    }
    for label, read in readings.items():
        ours = read(data["peers"].get(OURS, {}))
        values = {one["title"]: read(one) for one in others(data)}
        names = [
            name for name, value in values.items() if None not in (ours, value) and value < ours
        ]
        if names:
            yield f"- {label}: {', '.join(names)}."


def others(data: Data) -> list[Data]:
    """Return what callslip is compared with, without its own rows."""
    return [one for name, one in data["peers"].items() if not name.startswith(OURS)]


def claims(data: Data) -> list[str]:
    """Return the sentences of README about this page, each with a link to its table."""
    beside = [one for one in others(data) if "faults" in one]
    ours = data["peers"][OURS]
    turns, agents = data["sizes"]["turns"][0], data["sizes"]["agents"][0]
    rows = [ours, *beside]
    wrong = [executed(one) for one in beside]
    return [
        f"Of {len(REFUSED)} replies that must be refused, callslip executes {executed(ours)};"
        f" {len(beside)} other frameworks execute {min(wrong)} to {max(wrong)}"
        " ([faults](docs/comparison.md#faults-of-a-model)).",
        f"One model call and one tool call cost {span(rows, 'loop', turns, 'cpu_us', 'µs of CPU')}"
        " ([CPU](docs/comparison.md#cpu-a-step)).",
        f"With {agents:,} agents in memory, each takes {span(rows, 'memory', agents, 'kb', 'KB')}"
        " ([memory](docs/comparison.md#memory-of-many-agents)).",
    ]


def with_claims(text: str, data: Data) -> str:
    """Return the text of README with these sentences: a line with a link to a table is one."""
    for claim in claims(data):
        link = re.search(r"\(docs/comparison\.md#[\w-]+\)", claim)
        assert link, claim
        text = re.sub(
            rf"^- .*{re.escape(link[0])}.*$",
            lambda _, new=claim: f"- {new}",
            text,
            flags=re.MULTILINE,
        )
    return text


def span(rows: Sequence[Data], kind: str, size: int, key: str, unit: str) -> str:
    """Return our figure (the first row's) and the range of the other frameworks."""
    ours, *others = (one[kind][str(size)].get(key) for one in rows)
    values = [value for value in others if value is not None]
    least, greatest = number(min(values)), number(max(values))
    return f"{number(ours)} {unit} in callslip, {least} to {greatest} in the others"
