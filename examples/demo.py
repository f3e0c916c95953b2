"""A real agent on a real model: three protocols, a typed answer, an approval and a crash.

    python examples/demo.py                     # SmolLM2-135M-Instruct, on one core of this machine
    python examples/demo.py --gguf model.gguf   # another local model
    OPENAI_API_KEY=… python examples/demo.py --model gpt-4.1-mini
    python examples/demo.py --base-url http://localhost:8000/v1 --model NAME

Nothing here is scripted: the model writes each call and each answer, and the killed process is a
real one. If a model gets something wrong, the demo shows it and ends with status 1. `make eval`
measures how often models are right, with and without constrained decoding (grammar).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field
from rich.console import Console
from rich.markup import escape

from callslip import (
    Agent,
    ChattyProtocol,
    Delta,
    Limits,
    LocalModel,
    ReactProtocol,
    RunFailed,
    RunResult,
    Ticket,
    TicketProtocol,
    TicketStore,
    Tool,
    as_model,
    tool,
)
from callslip.events import ModelReplied

PROMPTS = Path(__file__).parent / "prompts"
WEATHER = {"Cairo": "31 degrees, sunny", "Lima": "22 degrees, dry", "Vienna": "4 degrees, snow"}
WORDS = {"meadow": "a field of grass", "orchard": "a garden of fruit trees"}


def remind(
    time: Annotated[str, Field(pattern="^[0-9]{1,2}:[0-9]{2}$")],
    text: Annotated[str, Field(pattern="^[a-z]{1,12}( [A-Za-z]{1,12}){0,5}$")],
) -> str:
    """Set a reminder."""
    # Calls are counted outside the process that is killed.
    with Path(os.environ["CALLSLIP_DEMO_REMINDERS"]).open("a", encoding="utf-8") as file:
        file.write(f"{time} {text}\n")
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


TOOLS: list[Tool[..., Any]] = [tool(remind), weather, dictionary, calculate]
REMINDER = "Task: Remind me at 17:30 to call Anna."


class Total(BaseModel):
    """A sum, as a program wants it."""

    total: int


class Demo:
    """Runs the parts of the demo, and shows each in a few lines.

    Args:
        console: Where the lines go.
        model: The model of all runs.
        path: The file of their store.
    """

    def __init__(self, console: Console, model: Any, path: Path) -> None:
        self._console = console
        self._model = model
        self._path = path
        self.is_right = True

    def say(self, name: str, text: str, style: str = "") -> None:
        """Show one line."""
        self._console.print(f"  {name:>9}  ", style="dim", end="")
        self._console.print(escape(text), style=style, highlight=False, soft_wrap=True)

    def check(self, name: str, text: str, *, right: bool) -> None:
        """Show a line with a verdict."""
        self.is_right &= right
        mark = "✓" if right else "✗ not what was asked for:"
        self.say(name, f"{mark} {text}", "green" if right else "red")

    def title(self, text: str) -> None:
        """Begin a part."""
        self._console.print(f"\n[bold]{text}[/bold]")

    def shown(self, result: RunResult[Any]) -> None:
        """Show the calls of a run."""
        for ticket in result.tickets:
            self.say("call", f"{call_text(ticket)} → {ticket.error or ticket.result}", "cyan")

    def protocols(self, store: TicketStore) -> None:
        """One task in each protocol."""
        self.title("1. Three protocols")
        for name, task, result in [
            ("react", "What does the word orchard mean?", WORDS["orchard"]),
            ("chatty", "What is 25 times 4?", 100),
            ("ticket", "What is the weather in Cairo?", WEATHER["Cairo"]),
        ]:
            self.say(name, task, "bold")
            began = time.perf_counter()
            run = agent(self._model, name, store).run_sync(f"Task: {task}")
            self.shown(run)
            took = time.perf_counter() - began
            right = result in [ticket.result for ticket in run.tickets]
            self.check("answer", f"{run.value} ({took:.1f} s)", right=right)

    def typed_answer(self, store: TicketStore) -> None:
        """An answer that is an object of a class."""
        self.title("2. A typed answer: class Total(BaseModel): total: int")
        task = "What is 130 plus 45?"
        self.say("chatty", task, "bold")
        run = agent(self._model, "chatty", store, returns=Total).run_sync(f"Task: {task}")
        self.shown(run)
        self.check("value", repr(run.value), right=run.value == Total(total=175))

    def approval(self, store: TicketStore) -> None:
        """A call that waits for a decision."""
        self.title("3. Human approval: remind() has needs_approval=True")

        def decide(ticket: Ticket) -> bool:
            self.say("waits", call_text(ticket), "yellow")
            self.say("approved", "by this program, in place of a person", "yellow")
            return True

        tools = [tool(remind, needs_approval=True), *TOOLS[1:]]
        self.say("chatty", REMINDER.removeprefix("Task: "), "bold")
        clerk = agent(self._model, "chatty", store, tools=tools)
        run = clerk.run_sync(REMINDER, approve=decide)
        outcomes = [ticket.outcome for ticket in run.tickets]
        self.check("call", str(run.tickets[0].result), right=outcomes == ["ok"])

    def crash(self, command: list[str], reminders: Path) -> None:
        """A run whose process is killed, and that this process ends."""
        self.title("4. A crash: kill -9 between the call and the answer")
        self.say("chatty", REMINDER.removeprefix("Task: "), "bold")
        reminders.unlink()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            run_id, _, call = process.stdout.readline().rstrip().partition(" ")
            process.kill()
        self.say("call", call, "cyan")
        self.say("killed", f"process {process.pid}, status {process.returncode}", "yellow")
        self.say("resumed", f"run {run_id[:8]}, by process {os.getpid()}", "yellow")
        with TicketStore(self._path) as store:
            run = agent(self._model, "chatty", store).resume_sync(run_id)
        made = reminders.read_text("utf-8").splitlines()
        outcomes = [ticket.outcome for ticket in run.tickets]
        text = f"the run has ended: {len(outcomes)} call in its log, {len(made)} reminder set"
        self.check("result", text, right=len(made) == 1 and outcomes == ["ok"])


def call_text(ticket: Ticket) -> str:
    """The call as the model wrote it."""
    words = ", ".join(f"{name}={value!r}" for name, value in ticket.arguments.items())
    return f"{ticket.tool}({words})"


def agent(
    model: Any,
    protocol: str,
    store: TicketStore,
    *,
    tools: list[Tool[..., Any]] | None = None,
    returns: Any = str,
) -> Agent[Any]:
    """An agent that makes one call and then answers, which a small model can do."""
    kinds = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}
    small = isinstance(model, LocalModel)
    return Agent(
        model,
        name=protocol,
        protocol=kinds[protocol](
            template=PROMPTS / f"{protocol}.txt", first_move="call", thoughts=0
        ),
        tools=tools or TOOLS,
        returns=returns,
        # A small model delegates what it is asked itself.
        delegate=False,
        grammar=small,
        limits=Limits(turns=1 if small else 6),
        max_tokens=320 if small else None,
        store=store,
    )


def arguments(options: argparse.Namespace) -> list[str]:
    """The options that choose the model, for another process."""
    chosen = {"--gguf": options.gguf, "--base-url": options.base_url, "--model": options.model}
    return [word for name, value in chosen.items() if value for word in (name, value)]


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


async def work_until_killed(options: argparse.Namespace) -> None:
    """Say when the call is made, and wait there, in the middle of the run."""
    with open_model(options) as (model, _), TicketStore(options.crash_in) as store:
        async with agent(model, "chatty", store).stream(REMINDER) as stream:
            async for event in stream:
                (ticket,) = stream.run.tickets or [None]
                # The next request is made when the outcome of the call is on disk.
                if isinstance(event, Delta | ModelReplied) and ticket and ticket.outcome:
                    print(stream.run.id, f"{call_text(ticket)} → {ticket.result}", flush=True)
                    await asyncio.Event().wait()


def main(options: argparse.Namespace) -> int:
    """Run all parts; 1 if the model got one wrong."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="callslip-demo-"))
    reminders = folder / "reminders"
    os.environ["CALLSLIP_DEMO_REMINDERS"] = str(reminders)
    path = folder / "runs.sqlite"
    with open_model(options) as (model, name):
        console.print(f"The model is [bold]{escape(name)}[/bold].")
        demo = Demo(console, model, path)
        try:
            with TicketStore(path) as store:
                demo.protocols(store)
                demo.typed_answer(store)
                demo.approval(store)
            command = [sys.executable, __file__, "--crash-in", str(path), *arguments(options)]
            demo.crash(command, reminders)
        except RunFailed as error:
            demo.check("ended", str(error), right=False)
        with TicketStore(path) as store:
            store.to_html(folder / "trace.html")
    place = folder / "trace.html"
    console.print(f"\nEvery run, turn by turn: {place}", soft_wrap=True, highlight=False)
    return 0 if demo.is_right else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", help="a model file for llama.cpp")
    parser.add_argument("--base-url", help="address of an OpenAI-compatible server")
    parser.add_argument("--model", default="gpt-4.1-mini", help="name of the model at the server")
    parser.add_argument("--crash-in", metavar="STORE", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.crash_in:
        asyncio.run(work_until_killed(chosen))
    else:
        sys.exit(main(chosen))
