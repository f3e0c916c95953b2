"""What a model does right in each protocol: calls of a public benchmark, and whole runs.

    python benches/eval.py --gguf model.gguf                   # a local model
    python benches/eval.py --url http://127.0.0.1:8080/v1 --model qwen   # any server like OpenAI's
    python benches/eval.py --only runs --gguf model.gguf --protocol chatty --grammar on --verbose

Five tables. "calls" is the function-calling benchmark of the package `bfcl-eval`, with callslip's
protocols beside the prompt of the benchmark. "runs" are whole runs over tasks that are in no
prompt (`--held-out`: those that prompts are not tuned on), and "steps" are tasks whose second call
needs the result of the first. "bounds" are tasks whose tools have bounds and patterns. "decisions"
are sixty tasks in one step, in two calls, and without a tool; calls with an effect that a task does
not need are counted there (`--held-out`: the half that nothing is tuned on).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bfcl import CATEGORIES, Benchmark
from eval_bounds import BOUNDED
from eval_calls import OWN_PROMPT, CallScore, score_calls
from eval_decisions import DECISIONS, half
from eval_runs import Score, counted, work
from eval_steps import STEPS
from eval_tasks import HELD_OUT, TASKS, Task

from callslip import Agent, Limits, LocalModel
from callslip.protocols import find_protocol

ROOT = Path(__file__).parents[1]
PROTOCOLS = ("react", "chatty", "ticket")
TABLES = ("calls", "runs", "steps", "bounds", "decisions")


@contextlib.contextmanager
def opened(options: argparse.Namespace) -> Iterator[Callable[..., object]]:
    """The model of the options."""
    if options.url is None:
        # What the last configuration has read must not make this one faster.
        with LocalModel(options.gguf, threads=options.threads, disk_cache=False) as model:
            yield model
        return
    from openai import OpenAI

    from callslip.models import as_model

    client = OpenAI(base_url=options.url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    more = {"grammar": options.form} if options.form else {}
    yield as_model(client, model=options.model, temperature=0, **more)


def calls_table(options: argparse.Namespace) -> None:
    """Print what is right of the benchmark's cases."""
    benchmark = Benchmark(options.bfcl)
    print(
        f"\n| prompt | grammar | {' | '.join(options.category)} | replies a case "
        "| input tokens a case | output tokens a case | seconds |\n"
        + "|---" * (6 + len(options.category))
        + "|"
    )
    configurations = [(OWN_PROMPT, False)] if options.own else []
    configurations += [(one, on == "on") for one in options.protocol for on in options.grammar]
    for protocol, grammar in configurations:
        with opened(options) as model:
            scores = [
                score_calls(
                    benchmark,
                    model,
                    protocol,
                    category,
                    options.cases,
                    grammar=grammar,
                    max_tokens=options.max_tokens,
                    verbose=options.verbose,
                )
                for category in options.category
            ]
        total = CallScore(
            **{
                field.name: sum(getattr(one, field.name) for one in scores)
                for field in dataclasses.fields(CallScore)
            }
        )
        n = max(total.cases, 1)
        print(
            f"| {protocol} | {'on' if grammar else 'off'} "
            + "".join(f"| {one.right} of {one.cases} " for one in scores)
            + f"| {total.replies / n:.1f} | {total.input_tokens / n:.0f} "
            f"| {total.output_tokens / n:.0f} | {total.seconds:.0f} |",
            flush=True,
        )


def runs_table(options: argparse.Namespace, tasks: Sequence[Task]) -> None:
    """Print how many tasks whole runs do right."""
    print(
        "\n| protocol | grammar | right | calls right | first replies valid | turns a task | calls "
        "| first prompt, tokens | prompts of a task, tokens | violations | seconds |\n"
        + "|---" * 11
        + "|"
    )
    for protocol in options.protocol:
        for grammar in options.grammar:
            score = evaluate(options, tasks, protocol, grammar=grammar == "on")
            n = max(score.tasks, 1)
            codes = counted(score.codes)
            print(
                f"| {protocol} | {grammar} | {score.right} of {score.tasks} | {score.called} "
                f"| {score.valid} | {score.turns / n:.1f} | {score.calls} "
                f"| {score.first_tokens / n:.0f} "
                f"| {score.input_tokens / n:.0f} | {codes} | {score.seconds:.0f} |",
                flush=True,
            )


def decisions_table(options: argparse.Namespace) -> None:
    """Print how many tasks of each kind are right, and how many calls were made for nothing."""
    print(
        f"\n| protocol | grammar | {' | '.join(DECISIONS)} | calls with an effect for nothing "
        "| turns a task | violations | seconds |\n" + "|---" * (6 + len(DECISIONS)) + "|"
    )
    for protocol in options.protocol:
        for grammar in options.grammar:
            scores = []
            for kind, tasks in DECISIONS.items():
                if options.verbose:
                    print(f"{protocol}, {kind}:")
                chosen = half(tasks, held_out=options.held_out)
                scores.append(evaluate(options, chosen, protocol, grammar=grammar == "on"))
            codes = counted(sum((one.codes for one in scores), Counter[str]()))
            turns = sum(one.turns for one in scores) / max(sum(one.tasks for one in scores), 1)
            print(
                f"| {protocol} | {grammar} "
                + "".join(f"| {one.right} of {one.tasks} " for one in scores)
                + f"| {sum(one.for_nothing for one in scores)} | {turns:.1f} | {codes} "
                f"| {sum(one.seconds for one in scores):.0f} |",
                flush=True,
            )


def evaluate(
    options: argparse.Namespace, tasks: Sequence[Task], protocol: str, *, grammar: bool
) -> Score:
    """Run tasks in one configuration."""
    score = Score()
    more: dict[str, Any] = {}
    if options.template:
        more["template"] = options.template
    if options.examples is not None:
        more["examples"] = options.examples == "on"
    began = time.perf_counter()
    with opened(options) as model:
        for task in tasks[: options.tasks]:
            agent = Agent(
                model,
                protocol=dataclasses.replace(find_protocol(protocol), **more),  # type: ignore[arg-type]
                tools=task.tools,
                grammar=grammar,
                limits=Limits(turns=6),
                max_tokens=options.max_tokens,
            )
            work(agent, task, score, verbose=options.verbose)
    score.seconds = time.perf_counter() - began
    return score


def main(options: argparse.Namespace) -> None:
    """Print the tables that are asked for."""
    if "calls" in options.only:
        calls_table(options)
    if "runs" in options.only:
        runs_table(options, HELD_OUT if options.held_out else TASKS)
    if "steps" in options.only:
        runs_table(options, STEPS)
    if "bounds" in options.only:
        runs_table(options, BOUNDED)
    if "decisions" in options.only:
        decisions_table(options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--gguf", help="the model file; default: the bundled one")
    parser.add_argument("--url", help="the base URL of a server like OpenAI's, with --model")
    parser.add_argument("--model", default="", help="the model's name at the server")
    parser.add_argument("--form", help="as_model(grammar=…) for that server")
    parser.add_argument("--protocol", nargs="+", default=list(PROTOCOLS), choices=PROTOCOLS)
    parser.add_argument("--grammar", nargs="+", default=["on", "off"], choices=["on", "off"])
    parser.add_argument("--category", nargs="+", default=list(CATEGORIES), choices=CATEGORIES)
    parser.add_argument("--cases", type=int, default=100, help="cases of each category")
    parser.add_argument(
        "--no-own", dest="own", action="store_false", help="without the benchmark's own prompt"
    )
    parser.add_argument("--bfcl", type=Path, default=ROOT / ".cache" / "bfcl")
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
    parser.add_argument("--verbose", action="store_true", help="show each case and run")
    main(parser.parse_args())
