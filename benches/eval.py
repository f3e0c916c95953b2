"""Whole runs of agents on a local model, over tasks that are in no prompt, in each protocol.

    python benches/eval.py --gguf model.gguf              # all protocols, grammar on and off
    python benches/eval.py --gguf model.gguf --protocol chatty --grammar on --verbose
    python benches/eval.py --gguf model.gguf --held-out   # tasks that prompts are not tuned on

A task is right where all calls that it needs ran with the right arguments, and the final answer
holds the value. Prompts and settings are the defaults of `Agent`, but for the number of steps and
the length of a reply.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from eval_tasks import HELD_OUT, TASKS, Task

from callslip import Agent, CallslipError, Limits, LocalModel
from callslip.protocols import find_protocol


@dataclasses.dataclass
class Score:
    """What came of the tasks in one configuration."""

    tasks: int = 0
    called: int = 0
    right: int = 0
    turns: int = 0
    calls: int = 0
    input_tokens: int = 0
    first_tokens: int = 0
    seconds: float = 0.0
    codes: Counter[str] = dataclasses.field(default_factory=Counter)


def same(got: object, expected: object) -> bool:
    """Whether an argument is the expected one, whatever the letter case."""
    if isinstance(expected, str) and isinstance(got, str):
        return got.strip().casefold() == expected.casefold()
    if isinstance(expected, list) and isinstance(got, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    return got == expected


def ran(task: Task, made: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether all calls ran that the task needs."""
    return all(
        any(
            tool.removeprefix("POST /") == name
            and all(same(arguments.get(key), value) for key, value in expected.items())
            for tool, arguments in made
        )
        for name, expected in task.calls
    )


def work(agent: Agent, task: Task, score: Score, *, verbose: bool) -> None:
    """Let the agent work on one task."""
    error = ""
    try:
        run = agent.run_sync(task.text).run
    except CallslipError as failure:
        error, run = f"{type(failure).__name__}: {failure}", failure.run
    opened: dict[int, tuple[str, dict[str, Any]]] = {}
    made: list[tuple[str, dict[str, Any]]] = []
    answer = ""
    asked: list[int] = []
    for event in run.log:
        match event.kind, event.data:
            case "ticket_opened", {"ticket": ticket, "tool": tool, "arguments": arguments}:
                opened[ticket] = (tool, arguments)
            case "ticket_completed", {"ticket": ticket, "outcome": {"ok": _}}:
                made.append(opened[ticket])
            case "model_replied", {"usage": usage}:
                asked.append((usage or {}).get("input_tokens", 0))
            case "violated", {"violation": {"code": code}}:
                score.codes[code] += 1
            case "run_finished", {"value": value} if value is not None:
                answer = value if isinstance(value, str) else json.dumps(value)
    called = ran(task, made)
    right = called and any(value.casefold() in answer.casefold() for value in task.values)
    score.tasks += 1
    score.called += called
    score.right += right
    score.turns += len(asked)
    score.calls += len(opened)
    score.input_tokens += sum(asked)
    score.first_tokens += asked[0] if asked else 0
    if verbose:
        print(f"  {'right' if right else 'WRONG'}: {task.text}\n    answer: {answer!r} {error}")
        for message in run.messages[1:] if not right else ():
            print("    " + f"[{message['role']}] {message['content']}".replace("\n", "\n      "))
        sys.stdout.flush()


def evaluate(options: argparse.Namespace, protocol: str, *, grammar: bool) -> Score:
    """Run all tasks in one configuration."""
    score = Score()
    more: dict[str, Any] = {}
    if options.template:
        more["template"] = options.template
    if options.examples is not None:
        more["examples"] = options.examples == "on"
    began = time.perf_counter()
    tasks = (HELD_OUT if options.held_out else TASKS)[: options.tasks]
    with LocalModel(options.gguf, threads=options.threads, disk_cache=False) as model:
        for task in tasks:
            agent = Agent(
                model,
                protocol=dataclasses.replace(find_protocol(protocol), **more),  # type: ignore[arg-type]
                tools=task.tools,
                grammar=grammar,
                limits=Limits(steps=6),
                max_tokens=options.max_tokens,
            )
            work(agent, task, score, verbose=options.verbose)
    score.seconds = time.perf_counter() - began
    return score


def main(options: argparse.Namespace) -> None:
    """Run all configurations that are asked for, and print a table."""
    print(
        "| protocol | grammar | right | calls right | turns a task | calls | first prompt, tokens "
        "| prompts of a task, tokens | violations | seconds |\n" + "|---" * 10 + "|"
    )
    for protocol in options.protocol:
        for grammar in options.grammar:
            score = evaluate(options, protocol, grammar=grammar == "on")
            n = max(score.tasks, 1)
            codes = (
                ", ".join(f"{count} {code}" for code, count in score.codes.most_common()) or "none"
            )
            print(
                f"| {protocol} | {grammar} | {score.right} of {score.tasks} | {score.called} "
                f"| {score.turns / n:.1f} | {score.calls} | {score.first_tokens / n:.0f} "
                f"| {score.input_tokens / n:.0f} | {codes} | {score.seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", help="the model file; default: the bundled one")
    parser.add_argument("--protocol", nargs="+", default=["react", "chatty", "ticket"])
    parser.add_argument("--grammar", nargs="+", default=["on", "off"], choices=["on", "off"])
    parser.add_argument(
        "--template", type=Path, help="a system prompt in place of the built-in one"
    )
    parser.add_argument("--examples", choices=["on", "off"], help="in place of the default")
    parser.add_argument(
        "--held-out", action="store_true", help="the tasks that prompts are not tuned on"
    )
    parser.add_argument("--tasks", type=int, help="how many of the tasks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--verbose", action="store_true", help="show each run")
    main(parser.parse_args())
