"""Whole runs of agents, over tasks that are in no prompt, in each protocol.

A task is right where all calls that it needs ran with the right arguments, none where it needs
none, and the final answer holds the value. Prompts and settings are the defaults of `Agent`, but
for the number of turns and the length of a reply.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from eval_tasks import Task

from callslip import Agent, Run, RunFailed
from callslip.events import ModelReplied, RunFinished, TicketCompleted, TicketOpened, Violated

__all__ = ["Logged", "Score", "counted", "for_nothing", "is_right", "read_log", "work"]


@dataclasses.dataclass
class Score:
    """What came of the tasks in one configuration."""

    tasks: int = 0
    called: int = 0
    right: int = 0
    valid: int = 0
    turns: int = 0
    calls: int = 0
    for_nothing: int = 0
    input_tokens: int = 0
    first_tokens: int = 0
    seconds: float = 0.0
    codes: Counter[str] = dataclasses.field(default_factory=Counter)


def counted(codes: Counter[str]) -> str:
    """Return the codes of violations with their numbers, the commonest first."""
    return ", ".join(f"{count} {code}" for code, count in codes.most_common()) or "none"


def same(got: object, expected: object) -> bool:
    """Whether an argument is the expected one, whatever the letter case."""
    if isinstance(expected, str) and isinstance(got, str):
        return got.strip().casefold() == expected.casefold()
    if isinstance(expected, list) and isinstance(got, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    return got == expected


def ran(task: Task, made: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether all calls ran that the task needs."""
    if not task.calls:
        return not made
    return all(any(is_meant(one, call) for one in made) for call in task.calls)


def is_meant(made: tuple[str, dict[str, Any]], call: tuple[str, Mapping[str, object]]) -> bool:
    """Whether a call that was made is the one that a task needs."""
    (tool, arguments), (name, expected) = made, call
    return tool.removeprefix("POST /") == name and all(
        same(arguments.get(key), value) for key, value in expected.items()
    )


def for_nothing(task: Task, made: Sequence[tuple[str, dict[str, Any]]]) -> int:
    """Count the calls with an effect that were made and that the task does not need."""
    effects = {tool.name for tool in task.tools if not tool.readonly}
    return sum(
        one[0].removeprefix("POST /") in effects
        and not any(is_meant(one, call) for call in task.calls)
        for one in made
    )


def is_answered(task: Task, answer: str) -> bool:
    """Whether an answer holds what it has to hold."""
    found = [value.casefold() in answer.casefold() for value in task.values]
    return bool(answer) and (not found or (all if task.all_values else any)(found))


def is_right(task: Task, made: Sequence[tuple[str, dict[str, Any]]], answer: str) -> bool:
    """Whether a task is done: the calls ran that it needs, and the answer holds the value."""
    return ran(task, made) and is_answered(task, answer)


@dataclasses.dataclass
class Logged:
    """What a run did, from its log.

    Attributes:
        made: The calls that ended well.
        opened: The number of calls, failed ones too.
        answer: The answer; empty if there is none.
        asked: The input tokens of each request.
        codes: The violations.
        first_is_valid: Whether the first reply was accepted.
    """

    made: list[tuple[str, dict[str, Any]]] = dataclasses.field(default_factory=list)
    opened: int = 0
    answer: str = ""
    asked: list[int] = dataclasses.field(default_factory=list)
    codes: Counter[str] = dataclasses.field(default_factory=Counter)
    first_is_valid: bool = True


def read_log(run: Run) -> Logged:
    """Return what a run did."""
    logged = Logged()
    opened: dict[str, tuple[str, dict[str, Any]]] = {}
    for event in run.log:
        match event:
            case TicketOpened(ticket_id=ticket, tool=tool, arguments=arguments):
                opened[ticket] = (tool, dict(arguments))
            case TicketCompleted(ticket_id=ticket, outcome="ok"):
                logged.made.append(opened[ticket])
            case ModelReplied(usage=usage):
                logged.asked.append(0 if usage is None else usage.input_tokens)
            case Violated(violation={"code": code}):
                logged.codes[code] += 1
                logged.first_is_valid &= len(logged.asked) != 1
            case RunFinished(value=value) if value is not None:
                logged.answer = value if isinstance(value, str) else json.dumps(value)
    logged.opened = len(opened)
    return logged


def work(agent: Agent, task: Task, score: Score, *, verbose: bool) -> None:
    """Let the agent work on one task."""
    error = ""
    try:
        run = agent.run_sync(task.text).run
    except RunFailed as failure:
        error, run = f"{type(failure).__name__}: {failure}", cast("Run", failure.run)
    logged = read_log(run)
    right = is_right(task, logged.made, logged.answer)
    score.tasks += 1
    score.called += ran(task, logged.made)
    score.right += right
    score.valid += logged.first_is_valid
    score.turns += len(logged.asked)
    score.calls += logged.opened
    score.for_nothing += for_nothing(task, logged.made)
    score.input_tokens += sum(logged.asked)
    score.first_tokens += logged.asked[0] if logged.asked else 0
    score.codes += logged.codes
    if verbose:
        print(
            f"  {'right' if right else 'WRONG'}: {task.text}\n    answer: {logged.answer!r} {error}"
        )
        for message in run.messages[1:] if not right else ():
            print("    " + f"[{message['role']}] {message['content']}".replace("\n", "\n      "))
