"""Calls of BFCL that the check of values refuses: the expected ones, and those that a model makes.

An expected call has several allowed values for an argument. It is refused by mistake if some
argument is refused with each of them.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bfcl import Benchmark, Call, Case

from callslip import Agent, Limits, LocalModel, RunFailed, ScriptedModel
from callslip.events import Violated
from callslip.tools import Tool
from callslip.tools._schema_tool import SchemaTool

__all__ = [
    "EXPECTED",
    "Level",
    "Recorded",
    "Refusals",
    "expected_calls",
    "judge",
    "recorded_calls",
    "tally",
]

Level = Literal["stated", "strict"]

EXPECTED = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""The files whose expected calls are judged."""


@dataclass
class Refusals:
    """What came of the expected calls of one level.

    Attributes:
        calls: The calls.
        refused: The refused ones.
        unread: The calls that break the schema of their own tool: they are not judged.
        left: One line for each refused call.
    """

    calls: int = 0
    refused: int = 0
    unread: int = 0
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Recorded:
    """The calls that a model made in a case.

    Attributes:
        category: The category of the case.
        case: The case.
        calls: The calls, in the names of tools.
        right: Whether they are the expected ones.
    """

    category: str
    case: Case
    calls: list[Call]
    right: bool


def expected_calls(benchmark: Benchmark, file: str, level: Level) -> Refusals:
    """Judge all expected calls of a file."""
    found = Refusals()
    for case in benchmark.cases_of(file):
        for call in case.expected:
            for name, allowed in call.items():
                required = _required(case, name)
                options = {
                    key: [_plain(value) for value in values if value != ""]
                    for key, values in allowed.items()
                    if key in required or "" not in values
                }
                found.calls += 1
                options = {key: values for key, values in options.items() if values}
                why = _refused_whatever(case, _plain_name(name), options, level)
                if why == "unread":
                    found.unread += 1
                elif why:
                    found.refused += 1
                    found.left.append(f"{case.name} {why} | {case.text[-300:]!r}")
    return found


def _refused_whatever(
    case: Case, name: str, options: Mapping[str, Sequence[object]], level: Level
) -> str:
    """Which argument is refused with each of its values; empty if none is."""
    at = dict.fromkeys(options, 0)
    while True:
        arguments = {key: options[key][position] for key, position in at.items()}
        codes = judge(case, [{name: arguments}], level)
        if codes is None:
            return "unread"
        if not codes:
            return ""
        for pointer in codes:
            key = pointer.split("/")[1]
            if key not in at or at[key] + 1 == len(options[key]):
                return f"{name}.{key} = {json.dumps(options.get(key))}"
            at[key] += 1


def judge(case: Case, calls: Sequence[Call], level: Level) -> list[str] | None:
    """Return the JSON pointers of the refused values of a reply.

    Returns:
        The pointers; `None` if the reply is refused for another reason.
    """
    block = [
        {"call_id": f"c{at}", "tool_name": name, "arguments": arguments}
        for at, call in enumerate(calls)
        for name, arguments in call.items()
    ]
    agent = Agent(
        ScriptedModel([f"<tool>{json.dumps(block)}</tool>"]),
        protocol="chatty",
        delegate=False,
        tools=list(_tools(case)),
        instructions=case.system or None,
        values=level,
        limits=Limits(turns=1, max_violations=0),
        on_limit="raise",
    )
    try:
        agent.run_sync(case.text)
    except RunFailed as failure:
        for event in failure.run.log:
            if isinstance(event, Violated):
                violation: Any = event.violation
                if violation["code"] != "unstated_value":
                    return None
                return [pointer for pointer, _ in violation["refused"]["values"]]
    return []


def recorded_calls(
    benchmark: Benchmark, model: LocalModel, counts: Mapping[str, int]
) -> Iterator[Recorded]:
    """Let a model answer cases with the values unchecked, and yield the calls of its first reply.

    Args:
        benchmark: The benchmark.
        model: The model.
        counts: How many cases of each category.
    """
    for category, count in counts.items():
        for case in benchmark.cases(category, count):
            calls: list[Call] = []
            agent = Agent(
                model,
                protocol="chatty",
                delegate=False,
                tools=list(_tools(case, calls)),
                values="any",
                limits=Limits(turns=1),
                on_limit="raise",
                max_tokens=200,
            )
            # It ends at its one turn.
            with contextlib.suppress(RunFailed):
                agent.run_sync(case.text)
            right = benchmark.is_right(category, case, calls, dots=False)
            yield Recorded(category, case, calls, right)


def _tools(case: Case, calls: list[Call] | None = None) -> Iterator[Tool[..., Any]]:
    for name, description, schema in case.schemas():
        plain = _plain_name(name)

        def perform(arguments: dict[str, Any], _: object, name: str = plain) -> str:
            if calls is not None:
                calls.append({name: arguments})
            return "done"

        yield SchemaTool(perform, name=plain, description=description, parameters=schema)


def _plain_name(name: str) -> str:
    return re.sub(r"\.", "_", name)


def _required(case: Case, name: str) -> set[str]:
    for one in case.functions:
        if one["name"] == name:
            return set(one["parameters"].get("required", ()))
    return set()


def _plain(value: object) -> object:
    """The first allowed value of each field of an object."""
    if isinstance(value, Mapping):
        fields = {
            key: next((one for one in allowed if one != ""), None)
            if isinstance(allowed, list)
            else allowed
            for key, allowed in value.items()
        }
        return {key: _plain(one) for key, one in fields.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def tally(recorded: Sequence[Recorded], level: Level) -> dict[str, Counter[str]]:
    """Count the replies with calls and the refused ones, by what they are."""
    found: dict[str, Counter[str]] = {
        name: Counter() for name in ("right", "wrong, a tool fits", "wrong, no tool fits")
    }
    for one in recorded:
        if not one.calls:
            continue
        fits = "no tool fits" if one.category == "irrelevance" else "a tool fits"
        kind = "right" if one.right else f"wrong, {fits}"
        found[kind]["replies"] += 1
        found[kind]["refused"] += bool(judge(one.case, one.calls, level))
    return found
