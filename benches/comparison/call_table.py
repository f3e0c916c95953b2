"""The table of faulty tool calls, from the data of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from comparison.call_faults import CALL_FAULTS, COERCED
from comparison.fault_cells import has_died, is_leaked

__all__ = ["HEAD", "counts", "explained", "rows"]

Data = Mapping[str, Any]

REFUSED = [fault for fault in CALL_FAULTS if fault.must_refuse]
HEAD = (
    "peer",
    f"executes, of {len(REFUSED)}",
    "these are",
    f"run dies, of {len(CALL_FAULTS)}",
    "the call is the answer",
    '`"5e3"` as a number',
)


def rows(peer: Data) -> Iterator[list[str]]:
    """Yield the rows of a peer: one, or one for each of its protocols."""
    if "failed" in peer["calls"] or "over" in peer["calls"]:
        yield [peer["title"], "failed", *[""] * 4]
        return
    for title, records in peer["calls"].items():
        executed, died, leaked = counts(records)
        yield [
            title or peer["title"],
            f"**{len(executed)}**",
            ", ".join(executed) or "-",
            str(died),
            str(leaked),
            "executes" if records[COERCED]["executions"] else "refuses",
        ]


def counts(records: Mapping[str, Data]) -> tuple[list[str], int, int]:
    """Return the titles of what is executed wrongly, and how many runs die and leak."""
    executed = [fault.title for fault in REFUSED if records[fault.name]["executions"]]
    died = sum(has_died(records[fault.name]) for fault in CALL_FAULTS)
    leaked = sum(is_leaked(fault, records[fault.name]) for fault in CALL_FAULTS)
    return executed, died, leaked


def explained(*, must_refuse: bool) -> str:
    """Return the faults as a list, with the reason why each is counted or not."""
    return "\n".join(
        f"- **{fault.title}**: {fault.why}."
        for fault in CALL_FAULTS
        if fault.must_refuse == must_refuse
    )
