"""Count the tasks that clients do right through the gateway.

    cd benches; python -m gateway_clients --help
    python -m gateway_clients --gguf model.gguf --out rows.jsonl
    python -m gateway_clients --gguf model.gguf --out rows.jsonl --forge …/bin/python --tasks 10

The same tasks go to an agent of callslip, to clients through the gateway, to the same clients at
llama.cpp's own server, and to the openai SDK through forge (`forge-guardrails`, which needs Python
3.12). A row is written for each task, and rows that are there are not measured again. The
environments of the clients are those of `make compare`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from comparison.environments import CACHE, prepare
from comparison.peers import PEERS
from eval_runs import for_nothing, is_right, read_log
from eval_tasks import HELD_OUT, TASKS, Task
from eval_tools import EFFECTS

from callslip import Agent, Limits, LocalModel, Run, RunFailed
from gateway_clients.job import MAX_REQUESTS, MAX_TOKENS
from gateway_clients.processes import Client, Done
from gateway_clients.servers import Counted, forge, gateway_at

CLIENTS = {
    "openai_sdk": ("openai SDK", Path(sys.executable)),
    "pydantic_ai": ("pydantic-ai", CACHE / "pydantic_ai" / "bin" / "python"),
    "langgraph": ("LangGraph", CACHE / "langgraph" / "bin" / "python"),
    "smolagents": ("smolagents", CACHE / "smolagents" / "bin" / "python"),
}
FORGE = {
    "forge, prompt mode": ["--backend-capability", "prompt"],
    "forge, respond tool": ["--backend-capability", "prompt", "--inject-respond-tool"],
}


class Way(NamedTuple):
    """A client and the server that it calls.

    Attributes:
        client: Its name in the table.
        through: The server.
        work: Works on a task.
        counted: The gateway, if that is the server.
    """

    client: str
    through: str
    work: Callable[[Task], Done]
    counted: Counted | None = None


def by_agent(model: LocalModel, options: argparse.Namespace) -> Callable[[Task], Done]:
    """Return a function that gives a task to an agent of callslip."""

    def work(task: Task) -> Done:
        agent = Agent(
            model,
            protocol=options.protocol,
            tools=task.tools,
            limits=Limits(turns=MAX_REQUESTS, seconds=options.limit),
            max_tokens=MAX_TOKENS,
        )
        began, error = time.monotonic(), ""
        try:
            run = agent.run_sync(task.text).run
        except RunFailed as failure:
            error, run = f"{type(failure).__name__}: {failure}"[:400], cast("Run", failure.run)
        logged = read_log(run)
        return {
            "made": logged.made,
            "answer": logged.answer,
            "error": error,
            "seconds": round(time.monotonic() - began, 1),
            "requests": len(logged.asked),
            "refused": sum(logged.codes.values()),
            "changes": list(logged.codes),
        }

    return work


def by_client(client: Client, limit: float) -> Callable[[Task], Done]:
    """Return a function that gives a task to a client."""

    def work(task: Task) -> Done:
        forms = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in task.tools
        ]
        return client.work({"text": task.text, "forms": forms}, limit)

    return work


@contextlib.contextmanager
def opened(options: argparse.Namespace) -> Iterator[list[Way]]:
    """Start the model and the servers, and yield the rows of the table."""
    with contextlib.ExitStack() as stack:
        # The prompts of one client must not make the next one faster.
        model = stack.enter_context(
            LocalModel(options.gguf, threads=options.threads, disk_cache=False)
        )
        url, counted = stack.enter_context(gateway_at(model, options.protocol))
        ways = [Way("callslip's agent", "no server", by_agent(model, options))]
        log = options.out.with_suffix(".log")

        def add(name: str, through: str, url: str, key: str, counted: Counted | None) -> None:
            title, python = CLIENTS[name]
            client = Client(name, python, url, key, log)
            stack.callback(client.close)
            ways.append(Way(title, through, by_client(client, options.limit), counted))

        for name in CLIENTS:
            add(name, "gateway", url, "none", counted)
        for name in CLIENTS:
            add(name, "llama.cpp", model.base_url, model.api_key, None)
        for title, more in FORGE.items() if options.forge else ():
            at = stack.enter_context(forge(options.forge, model.base_url, more, log))
            add("openai_sdk", title, at, model.api_key, None)
        yield ways


def measure(way: Way, task: Task) -> Done:
    """Return the row of one task."""
    if way.counted is not None:
        way.counted.reset()
    done = way.work(task)
    made = [(tool, dict(arguments)) for tool, arguments in done["made"]]
    effects = sum(tool in EFFECTS for tool, _ in made)
    needed = sum(tool in EFFECTS for tool, _ in task.calls)
    row = {
        "client": way.client,
        "through": way.through,
        "task": task.text,
        "right": is_right(task, made, done["answer"]),
        "needless": max(for_nothing(task, made), effects - needed),
        **done,
    }
    if way.counted is not None:
        row["requests"] = len(way.counted.statuses)
        row["refused"] = way.counted.refused
        row["statuses"] = way.counted.statuses
        row["changes"] = way.counted.changes
    return row


def table(rows: list[Done]) -> str:
    """Return the table of the rows."""
    lines = [
        "| client | through | right | calls | needless effects | refused | seconds a task |",
        "|---|---|---|---|---|---|---|",
    ]
    for client, through in dict.fromkeys((row["client"], row["through"]) for row in rows):
        own = [row for row in rows if (row["client"], row["through"]) == (client, through)]
        refused = sum(row["refused"] for row in own) if "refused" in own[0] else "unknown"
        lines.append(
            f"| {client} | {through} | {sum(row['right'] for row in own)} of {len(own)} "
            f"| {sum(len(row['made']) for row in own)} | {sum(row['needless'] for row in own)} "
            f"| {refused} | {sum(row['seconds'] for row in own) / len(own):.1f} |"
        )
    return "\n".join(lines)


def main(options: argparse.Namespace) -> None:
    for peer in PEERS:
        if peer.name in CLIENTS:
            prepare(peer)
    tasks = [*TASKS, *HELD_OUT][: options.tasks]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lines = options.out.read_text("utf-8").splitlines() if options.out.exists() else []
    rows: list[Done] = [json.loads(line) for line in lines]
    known = {(row["client"], row["through"], row["task"]) for row in rows}
    with opened(options) as ways, options.out.open("a", encoding="utf-8") as out:
        # In blocks: all clients have done the same tasks when it is stopped.
        for start in range(0, len(tasks), options.block):
            for way in ways:
                if not (way.client + " " + way.through).startswith(tuple(options.only)):
                    continue
                for task in tasks[start : start + options.block]:
                    if (way.client, way.through, task.text) in known:
                        continue
                    row = measure(way, task)
                    rows.append(row)
                    print(json.dumps(row, ensure_ascii=False), file=out, flush=True)
    print(table(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", help="the model file; default: the bundled one")
    parser.add_argument("--protocol", default="react", choices=["react", "chatty"])
    parser.add_argument("--tasks", type=int, help="how many of the tasks")
    parser.add_argument("--block", type=int, default=5, help="tasks that a client does in a row")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for a task")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--forge", type=Path, help="a Python with forge-guardrails")
    parser.add_argument(
        "--only", nargs="+", default=[""], help='how rows begin: "callslip", "openai SDK gateway"'
    )
    parser.add_argument(
        "--out", type=Path, default=Path(".cache/gateway_clients.jsonl"), help="the rows"
    )
    main(parser.parse_args())
