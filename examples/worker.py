"""A worker in the background: a folder of tasks, a folder of answers.

    python examples/worker.py tasks answers
    echo "What is an orchard?" > tasks/orchard.txt     # soon there is answers/orchard.txt

Each file in the first folder is a task. The runs are in `worker.sqlite`: a worker that was stopped
or killed resumes them when it starts again, so no task is lost and none is done twice. Stop it with
Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from callslip import Agent, Run, RunFailed, as_model
from callslip.models import Model


async def stand_in(messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """Answer in place of a model, slowly."""
    task = messages[-1]["content"].partition("\n\n")[0]
    for word in f"I have thought about this: {task}".split(" "):
        await asyncio.sleep(0.05)
        yield word + " "


class Worker:
    """Works on the files of a folder.

    Args:
        agent: The agent, which has a store.
        tasks: The folder of tasks.
        answers: The folder for the answers.
        at_once: The number of tasks that are worked on at once.
    """

    def __init__(self, agent: Agent, tasks: Path, answers: Path, at_once: int) -> None:
        self._agent = agent
        self._tasks = tasks
        self._answers = answers
        self._places = asyncio.Semaphore(at_once)

    async def work(self) -> None:
        """Work until the task of this is cancelled."""
        store = self._agent.store
        assert store is not None
        # The task of a run begins with the name of its file, so a run is found again by it.
        kept = {run.task.partition("\n")[0]: run.run_id for run in store.runs()}
        begun = set()
        async with asyncio.TaskGroup() as group:
            while True:
                for file in sorted(self._tasks.glob("*.txt")):
                    if file.name not in begun and not (self._answers / file.name).exists():
                        begun.add(file.name)
                        group.create_task(self._do(file, kept.get(file.name)))
                await asyncio.sleep(0.2)

    async def _do(self, file: Path, run_id: str | None) -> None:
        async with self._places:
            if run_id is None:
                text = await asyncio.to_thread(file.read_text, "utf-8")
                run = self._agent.start(f"{file.name}\n{text.strip()}")
            else:
                run = self._agent.start(run=run_id)
            await self._write(run, file.name)

    async def _write(self, run: Run, name: str) -> None:
        try:
            text = str((await run).value)
        except RunFailed as error:
            text = f"failed: {error}"
        # A file that is there is whole.
        part = self._answers / f".{name}"
        part.write_text(text.strip() + "\n", "utf-8")
        part.replace(self._answers / name)


async def serve(worker: Worker) -> None:
    """Let the worker work until a signal comes."""
    working = asyncio.create_task(worker.work())
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, working.cancel)
    print("working", flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await working


def main() -> None:
    """Work."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--model", help="a model of OpenAI; default: a few lines of Python")
    parser.add_argument("--store", default="worker.sqlite")
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    model: Model = stand_in
    if options.model:
        from openai import AsyncOpenAI

        model = as_model(AsyncOpenAI(), model=options.model)
    for folder in (options.tasks, options.answers):
        folder.mkdir(parents=True, exist_ok=True)
    agent = Agent(model, protocol="chatty", store=options.store)
    asyncio.run(serve(Worker(agent, options.tasks, options.answers, options.at_once)))


if __name__ == "__main__":
    main()
