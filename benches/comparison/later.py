"""Runs of some kinds or peers that are put on the page of an earlier run of all, and said there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["UNMEASURED", "notes", "take"]

Data = Mapping[str, Any]

UNMEASURED = {"unmeasured": True}
"""A figure of a peer that came later, when another build was measured."""
TABLES = {
    "faults": "Faults of a model",
    "calls": "Faults of tool calls",
    "loop": "CPU a step",
    "memory": "Memory of many agents",
    "durable": "Durable turns",
    "imports": "Import and size",
}


def take(page: dict[str, Any], later: Data, rows: Mapping[str, dict[str, Any]]) -> None:
    """Put the figures of a later run into the data of the page.

    Args:
        page: The data of the page, which is changed.
        later: The data of the later run.
        rows: What is known of each peer before it is measured, in the order of the page.
    """
    known = page["peers"]
    page["peers"] = {name: known.get(name) or _begun(page, row) for name, row in rows.items()}
    for kind in later["minutes"]:
        found = {name: one[kind] for name, one in later["peers"].items() if kind in one}
        for name, figures in found.items():
            page["peers"][name][kind] = figures
        with_all = all(name in found for name, one in page["peers"].items() if kind in one)
        names = [] if with_all else [page["peers"][name]["title"] for name in found]
        page.setdefault("later", {})[kind] = {"date": later["date"], "peers": names}


def _begun(page: Data, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a peer that the run of the page did not have."""
    sizes = page["sizes"]
    none: dict[str, Data] = {
        "loop": dict.fromkeys(map(str, sizes["turns"]), UNMEASURED),
        "memory": dict.fromkeys(map(str, sizes["agents"]), UNMEASURED),
    }
    if "installed" not in row:
        return row | none
    # The environment is that of callslip, whose size was that of the build on the page.
    installed = page["peers"]["callslip"]["installed"]
    version = page["peers"]["callslip"]["version"]
    kept: dict[str, Data] = dict.fromkeys([*sizes["durable"], "crash"], UNMEASURED)
    none |= {"durable": kept, "imports": UNMEASURED}
    return row | {"installed": installed, "version": version} | none


def notes(data: Data) -> Iterator[str]:
    """Yield what the page says of a run that was taken."""
    for kind, run in data.get("later", {}).items():
        names = " and ".join(f"*{name}*" for name in run["peers"])
        what = f"{TABLES[kind]}, {names}" if names else TABLES[kind]
        yield f"Measured later, on {run['date']}: {what}."
    names = " and ".join(f"*{one['title']}*" for one in data["peers"].values() if _is_late(one))
    if names:
        yield (
            f"{names} have no figures in the other tables, because figures of another build and day"
            " can't be compared."
        )


def _is_late(one: Data) -> bool:
    return UNMEASURED in one.get("loop", {}).values()
