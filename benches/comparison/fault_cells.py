"""What a cell of the table of faults says, from the record of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from comparison.call_faults import OF_TEXT
from comparison.faults import Fault
from comparison.task import TASK

Record = Mapping[str, Any]

NOTHING = ("", "None")
"""Answers of a run that has none."""


def is_silent(record: Record) -> bool:
    """Whether the run ends as if it had succeeded, and neither model nor program learns more."""
    is_empty = record["ended"] == "answers" and record["text"] in NOTHING
    return is_empty and not record["executions"]


def has_died(record: Record) -> bool:
    """Whether the run ends with an exception, or with a status in place of one, or never."""
    is_status = record["ended"] == "answers" and record["text"].startswith("status ")
    return record["ended"] in {"raises", "hangs"} or is_status


def is_leaked(fault: Fault, record: Record) -> bool:
    """Whether the user reads a call as the answer."""
    is_answer = record["ended"] == "answers" and not record["executions"]
    return fault.name in OF_TEXT and is_answer and '"arguments"' in record["text"]


def cell(fault: Fault, record: Record) -> str:
    match fault.name:
        case "fails":
            return f"{counted(record['executions'], 'call')}, {ending(record)}"
        case "timeout":
            return f"{ending(record)}, {counted(record['requests'], 'request')}"
        case "hang":
            words = {"cancelled": "ends", "goes on": "goes on", "hangs": "hangs"}
            return words.get(record["ended"], ending(record))
    if record["executions"]:
        return executes(fault, record)
    if record["requests"] > 1 and record["ended"] == "answers":
        return "asks again" if record["told"] == TASK else "tells"
    return ending(record)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def executes(fault: Fault, record: Record) -> str:
    amounts = [amount for _, amount in record["executed"]]
    if fault.name in {"twice", "same_id"}:
        return f"executes {'both' if len(amounts) == 2 else 'one'}"
    unusual = [amount for amount in amounts if amount not in {"5", "5.0"}]
    shown = f"executes {', '.join(f'`{amount}`' for amount in unusual)}" if unusual else "executes"
    return f"**{shown}**" if fault.must_refuse else shown


def ending(record: Record) -> str:
    match record["ended"]:
        case "raises":
            return f"raises `{record['error']}`"
        case "hangs":
            return f"no end in {record['seconds']:.0f} s"
        case "answers" if record["text"] in NOTHING:
            return "empty answer"
        case "answers" if record["text"].startswith("status "):
            return "status"
        case "answers":
            return "an answer"
    return str(record["ended"])
