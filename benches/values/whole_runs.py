"""Whole runs of a small model, with and without the check of values.

A call is made for nothing if no call is due, or if it isn't the one that is due. Only calls of
tools with an effect count. Every run has the defaults of `LocalModel`, four turns and replies of at
most 160 tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

from callslip import Agent, Limits, LocalModel, Run, RunFailed
from callslip.events import RunFinished, Violated
from callslip.protocols import ProtocolName
from callslip.tools import ValueLevel
from values.tasks import FITTING, MISSING, NO_TOOL, ValueTask

__all__ = ["Row", "whole_runs"]

KINDS: Mapping[str, Sequence[ValueTask]] = {
    "no tool": NO_TOOL,
    "missing": MISSING,
    "fitting": FITTING,
}
_REFUSAL = re.compile(r"in no message and no result|was not executed|answer without a tool")
# Names and ids of the example; it has the words of its labels too.
_VALUE = re.compile(r"\S+@\S+|[A-Z][a-z]{3,}(?: \d{4})?|QF-\d{4}")
_LABELS = frozenset({"Example", "Observation"})


@dataclass
class Row:
    """What came of the tasks in one configuration.

    Attributes:
        tasks: The number of tasks, by kind.
        for_nothing: The tasks with a call with an effect that was made for nothing, by kind.
        right: The tasks whose due call was made.
        refusals: The runs that ended with the text of a refusal.
        failed: The runs that ended without an answer.
        examples: The values of the runtime's example in calls that were made and in answers.
        codes: The violations.
        notes: One line for each run.
    """

    tasks: Counter[str] = field(default_factory=Counter)
    for_nothing: Counter[str] = field(default_factory=Counter)
    right: int = 0
    refusals: int = 0
    failed: int = 0
    examples: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def whole_runs(
    model: LocalModel,
    protocol: ProtocolName,
    levels: Sequence[str],
    kinds: Sequence[str],
    tasks: int | None = None,
) -> Iterator[dict[str, Row]]:
    """Let the model work on each task at each level, and yield the rows so far.

    Args:
        model: The model.
        protocol: The name of the protocol.
        levels: The levels of all values; `"default"` for that of the model.
        kinds: Names of `KINDS`.
        tasks: How many tasks of each kind; `None` for all.
    """
    rows = {level: Row() for level in levels}
    in_turn = zip_longest(*([(kind, task) for task in KINDS[kind][:tasks]] for kind in kinds))
    for kind, task in (one for round_ in in_turn for one in round_ if one is not None):
        for level, row in rows.items():
            agent = Agent(
                model,
                protocol=protocol,
                tools=task.tools,
                values=None if level == "default" else cast("ValueLevel", level),
                limits=Limits(turns=4),
                max_tokens=160,
            )
            _work(agent, task, kind, row)
        yield rows


def _work(agent: Agent[Any], task: ValueTask, kind: str, row: Row) -> None:
    error = ""
    try:
        run = agent.run_sync(task.text).run
    except RunFailed as failure:
        error, run = type(failure).__name__, cast("Run", failure.run)
    made = calls_made(run)
    answer, codes = "", []
    for event in run.log:
        match event:
            case Violated(violation={"code": code}):
                codes.append(code)
            case RunFinished(value=value) if value is not None:
                answer = value if isinstance(value, str) else json.dumps(value)
    effects = {tool.name for tool in task.tools if not tool.readonly}
    for_nothing = [call for call in made if call[0] in effects and not _is_due(task, *call)]
    row.tasks[kind] += 1
    row.for_nothing[kind] += bool(for_nothing)
    row.right += any(_is_due(task, *call) for call in made)
    row.refusals += _REFUSAL.search(answer) is not None
    row.failed += bool(error)
    row.examples += len(_example_values(agent, task, [json.dumps(made), answer]))
    row.codes.update(codes)
    row.notes.append(
        f"{task.text} -> {made} {'FOR NOTHING ' if for_nothing else ''}{codes} {answer!r} {error}"
    )


def calls_made(run: Run[Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the calls of a run that had a result: the tool and its arguments."""
    return [
        (ticket.tool, ticket.arguments or {}) for ticket in run.tickets if ticket.outcome == "ok"
    ]


def _is_due(task: ValueTask, name: str, arguments: Mapping[str, Any]) -> bool:
    if task.call is None or name != task.call[0]:
        return False
    return all(_same(arguments.get(key), value) for key, value in task.call[1].items())


def _same(got: object, expected: object) -> bool:
    if isinstance(got, str) and isinstance(expected, str):
        return got.strip().casefold() == expected.casefold()
    return got == expected


def _example_values(agent: Agent[Any], task: ValueTask, texts: Sequence[str]) -> set[str]:
    """The values of the example in texts of a run."""
    shown = " ".join(one["content"] for one in agent.protocol.example_messages(task.tools))
    values = {value for value in _VALUE.findall(shown) if value not in task.text} - _LABELS
    return {value for value in values if any(value in text for text in texts)}
