"""A real agent on a real model, in all three protocols.

    python examples/demo.py                     # SmolLM2-135M-Instruct, on one core of this machine
    python examples/demo.py --gguf model.gguf   # another local model
    OPENAI_API_KEY=… python examples/demo.py --model gpt-4.1-mini
    python examples/demo.py --base-url http://localhost:8000/v1 --model NAME

Nothing here is scripted: what is shown is what the model wrote and what the tools returned, and a
wrong answer is shown as wrong. A small model chooses tools and copies values well, under a grammar,
and writes poor closing sentences: most tasks therefore end at the tool's result.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from callslip import (
    Agent,
    ChattyProtocol,
    Delta,
    Event,
    Limits,
    LocalModel,
    Progress,
    ReactProtocol,
    Run,
    RunFailed,
    TicketProtocol,
    Tool,
    as_model,
    tool,
)
from callslip.events import (
    ModelReplied,
    Moved,
    RunFinished,
    TicketCompleted,
    TicketOpened,
    Violated,
)

PROMPTS = Path(__file__).parent / "prompts"
WEATHER = {"Cairo": "31 degrees, sunny", "Lima": "22 degrees, dry", "Vienna": "4 degrees, snow"}
WORDS = {"meadow": "a field of grass", "orchard": "a garden of fruit trees"}


@tool
def remind(
    time: Annotated[str, Field(pattern="^[0-9]{1,2}:[0-9]{2}$")],
    text: Annotated[str, Field(pattern="^[a-z]{1,12}( [A-Za-z]{1,12}){0,5}$")],
) -> str:
    """Set a reminder."""
    return f"I will remind you at {time} to {text}"


@tool(readonly=True)
def weather(city: Annotated[str, Field(pattern="^[A-Z][a-z]{1,15}$")]) -> str:
    """Get the weather in a city."""
    return WEATHER.get(city, "18 degrees, light rain")


@tool(readonly=True)
def dictionary(word: Annotated[str, Field(pattern="^[a-z]{2,20}$")]) -> str:
    """Look up the meaning of a word."""
    return WORDS.get(word, f"no entry for {word}")


@tool(readonly=True)
def calculate(
    expression: Annotated[str, Field(pattern="^[0-9]{1,6} [-+*/] [0-9]{1,6}$")],
) -> float:
    """Calculate an expression."""
    number: float = eval(expression, {"__builtins__": {}})  # digits and operators only
    return number


TOOLS: list[Tool[..., Any]] = [remind, weather, dictionary, calculate]


@dataclass
class Task:
    """What is asked, and what the tool must return for it."""

    text: str
    result: Any
    to_the_end: bool = False


TASKS = [
    Task("What is the weather in Cairo?", WEATHER["Cairo"], to_the_end=True),
    Task("What is 25 times 4?", 100, to_the_end=True),
    Task("What does the word orchard mean?", WORDS["orchard"]),
    Task("Remind me at 17:30 to call Anna.", "I will remind you at 17:30 to call Anna"),
    Task("What is 130 plus 45?", 175),
    Task("Tell me the weather in Vienna.", WEATHER["Vienna"]),
]


@dataclass
class Score:
    """What became of the tasks of one round."""

    replies: int = 0
    valid: int = 0
    tasks: int = 0
    right: int = 0
    seconds: float = 0.0
    answers: list[bool] = field(default_factory=list)
    last: Run | None = None


class Screen:
    """Shows a run as it happens: thoughts, calls, tickets, violations, answers."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._kind = ""

    def show(self, event: Event | Delta | Progress) -> None:
        """Show one event."""
        match event:
            case Delta.Thoughts(text=text) | Delta.Reasoning(text=text):
                self._stream("thoughts", text, "dim italic")
            case Delta.Text(text=text):
                self._stream("text", text, "dim")
            case Delta.Answer(text=text):
                self._stream("answer", text, "bold")
            case Delta.Tool(name=name):
                self._stream("call", f"{name} ", "cyan")
            case Delta.Arguments(text=text):
                self._stream("call", text, "cyan")
            case Violated(violation=violation):
                self.line("violation", violation["message"], "red")
            case TicketOpened(ticket_id=ticket, description=description):
                self.line("ticket", f"{ticket} opened: {description}", "yellow")
            case TicketCompleted(ticket_id=ticket, outcome=outcome, result=result, error=error):
                self.line("ticket", f"{ticket} {outcome}: {error or result}", "yellow")
            case RunFinished(reason=reason, error=str(error)) if reason != "violations":
                self.line("ended", error, "red")

    def _stream(self, kind: str, text: str, style: str) -> None:
        if kind != self._kind:
            self._end()
            self._kind = kind
            self.console.print(f"    {kind:>9}  ", style="dim", end="")
        text = escape(text.replace("\n", "\n" + " " * 15))
        self.console.print(text, style=style, end="", highlight=False, soft_wrap=True)

    def line(self, kind: str, text: str, style: str) -> None:
        """Show a whole line."""
        self._end()
        self.console.print(f"    {kind:>9}  ", style="dim", end="")
        self.console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def _end(self) -> None:
        if self._kind:
            self.console.print()
            self._kind = ""


async def work(agent: Agent, task: Task, screen: Screen, score: Score) -> None:
    """Let the agent work on one task, and judge what came of it."""
    screen.console.print(f"  [bold]{escape(task.text)}[/bold]")
    began = time.perf_counter()
    results: list[Any] = []
    answer: str | None = None
    moved = False
    async with agent.stream(f"Task: {task.text}") as stream:
        with suppress(RunFailed):
            async for event in stream:
                screen.show(event)
                match event:
                    case ModelReplied():
                        score.replies += 1
                    case Moved():
                        score.valid += 1
                        moved = True
                    case TicketCompleted(result=result):
                        results.append(result)
                    case RunFinished(value=value):
                        answer = None if value is None else str(value)
                if results and moved and not task.to_the_end:
                    break
    took = time.perf_counter() - began
    right = task.result in results
    if right or score.last is None:
        score.last = stream.run
    score.tasks += 1
    score.right += right
    score.seconds += took
    verdict = "right" if right else f"wrong, due was {task.result!r}"
    screen.line("result", f"{verdict} ({took:.1f} s)", "green" if right else "red")
    if task.to_the_end:
        right = answer is not None and says(answer, task.result)
        score.answers.append(right)
        said = (
            "right"
            if right
            else "wrong: none was given"
            if answer is None
            else f"wrong: {answer!r}"
        )
        screen.line("answer", said, "green" if right else "red")
    screen.console.print()


def says(answer: str, result: Any) -> bool:
    """Whether the answer contains the whole result, and not as a part of another number or word."""
    return re.search(rf"(?<![\w.]){re.escape(str(result))}(?!\w|[.,]\d)", answer) is not None


def agents(model: Any, *, grammar: bool, small: bool) -> Iterator[tuple[str, Agent]]:
    """Make an agent in each protocol."""
    for kind in (ReactProtocol, ChattyProtocol, TicketProtocol):
        name = kind.__name__.removesuffix("Protocol").lower()
        # Under a grammar, a small model does well with one call and then an answer, without
        # thoughts. Without one, its first violation ends the run.
        yield (
            name,
            Agent(
                model,
                protocol=kind(template=PROMPTS / f"{name}.txt", first_move="call", thoughts=0),
                tools=TOOLS,
                # A small model delegates what it is asked itself.
                delegate=False,
                grammar=grammar,
                limits=Limits(turns=1 if grammar else 6, max_violations=0 if small else 3),
                max_tokens=(320 if grammar else 96) if small else None,
            ),
        )


@contextmanager
def open_model(options: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Give the model that the options ask for, and its name."""
    if options.base_url or (os.environ.get("OPENAI_API_KEY") and not options.gguf):
        from openai import OpenAI

        client = OpenAI(base_url=options.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
        yield as_model(client, model=options.model), options.model
        return
    with LocalModel(options.gguf) as model:
        yield model, Path(options.gguf).name if options.gguf else "SmolLM2-135M-Instruct"


async def main(options: argparse.Namespace) -> None:
    """Run every task in every protocol, with and without the grammar."""
    console = Console()
    screen = Screen(console)
    last: Run | None = None
    table = Table(title="What came of it", title_justify="left")
    table.add_column("protocol")
    table.add_column("grammar")
    for heading in ("valid replies", "results right", "answers right", "seconds a task"):
        table.add_column(heading, justify="right")
    with open_model(options) as (model, name):
        console.print(f"The model is [bold]{escape(name)}[/bold].\n")
        constrained = "grammar" in Agent(model)._model.accepts  # noqa: SLF001
        for grammar in (True, False) if constrained else (False,):
            for protocol, agent in agents(model, grammar=grammar, small=constrained):
                kind = "with the grammar" if grammar else "free"
                console.rule(f"{protocol}, {kind}", align="left")
                score = Score()
                for task in TASKS[: options.tasks]:
                    await work(agent, task, screen, score)
                said = f"{sum(score.answers)} of {len(score.answers)}" if score.answers else "none"
                if last is None or score.right:
                    last = score.last
                table.add_row(
                    protocol,
                    "yes" if grammar else "no",
                    f"{score.valid} of {score.replies}",
                    f"{score.right} of {score.tasks}",
                    said,
                    f"{score.seconds / max(1, score.tasks):.1f}",
                )
    console.print(table)
    if last is not None:
        path = Path(tempfile.mkdtemp(prefix="callslip-demo-")) / "trace.html"
        last.to_html(path, open="all")
        console.print(f"A run, turn by turn, is in {path}: open it in a browser.", soft_wrap=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", help="a model file for llama.cpp")
    parser.add_argument("--base-url", help="address of an OpenAI-compatible server")
    parser.add_argument("--model", default="gpt-4.1-mini", help="name of the model at the server")
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="how many of the tasks")
    asyncio.run(main(parser.parse_args()))
