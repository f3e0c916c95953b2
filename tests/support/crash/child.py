"""The process that is killed: it goes on with every job of a plan until all of them are done.

    python -m crash.child plan.json

It says "ready" before it opens the store, then each job that ended, then "done"; or "left" where it
was only there to approve of calls.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callslip import Agent, Event, RunResult, TicketStore
from crash.agents import Desk, agents
from crash.approver import Approver
from crash.jobs import Job
from crash.ledger import Ledger


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def ended(job: Job, result: RunResult) -> None:
    say(json.dumps({"job": job.name, "run": result.run.id, "value": result.value}))


def begun(store: TicketStore, jobs: list[Job]) -> dict[str, str]:
    """The runs that an earlier process began, by job: they are in the store or were never begun."""
    names = {job.task: job.name for job in jobs}
    return {names[run.task]: run.run_id for run in store.runs() if run.task in names}


async def watched(agent: Agent, job: Job, approver: Approver, *, children: bool) -> RunResult:
    """Begin a job and watch it; its calls, and at times those below it, are approved from here."""
    async with agent.stream(job.task, children=children) as run:
        async for event in run:
            if isinstance(event, Event) and getattr(event, "needs_approval", False):
                for ticket in run.awaiting_approval if approver.chance else ():
                    approver.decide_on(run.run, ticket)
    return run.result


async def work_async(
    plan: dict[str, Any], jobs: list[Job], desk: Desk, store: TicketStore, approver: Approver
) -> None:
    workers = agents(desk, store, asynchronous=True, streams=plan["streams"])
    runs = begun(store, jobs)

    async def one(job: Job) -> None:
        agent = workers[job.protocol]
        if job.name in runs:
            ended(job, await agent.resume(runs[job.name]))
        elif plan["driver"] == "streamed":
            ended(job, await watched(agent, job, approver, children=plan["mixed"]))
        else:
            ended(job, await agent.run(job.task))

    async def rest(protocol: str) -> None:
        by_run = {run: job for job in jobs for name, run in runs.items() if name == job.name}
        for run, result in (await workers[protocol].resume_all()).items():
            if isinstance(result, BaseException):
                raise result
            if run in by_run:
                ended(by_run[run], result)

    async def approve() -> None:
        """On the loop that the runs are on."""
        while True:
            await asyncio.sleep(0.01)
            approver.look()

    approving = None
    if plan["approves"] == "loop":
        approving = asyncio.create_task(approve())
    async with asyncio.TaskGroup() as group:
        if plan["all"]:
            for protocol in workers:
                group.create_task(rest(protocol))
        for job in jobs:
            if job.name not in runs or not plan["all"]:
                group.create_task(one(job))
    if approving is not None:
        approving.cancel()
        await asyncio.wait([approving])
        if not approving.cancelled():
            approving.result()


def work_sync(plan: dict[str, Any], jobs: list[Job], desk: Desk, store: TicketStore) -> None:
    workers = agents(desk, store, asynchronous=plan["mixed"], streams=plan["streams"])
    runs = begun(store, jobs)

    def one(job: Job) -> None:
        agent = workers[job.protocol]
        if job.name in runs:
            ended(job, agent.resume_sync(runs[job.name]))
        else:
            ended(job, agent.run_sync(job.task))

    if plan["all"]:
        for agent in workers.values():
            for result in agent.resume_all_sync().values():
                if isinstance(result, BaseException):
                    raise result
    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(one, jobs))


@contextmanager
def approving(plan: dict[str, Any], approver: Approver) -> Iterator[None]:
    if plan["approves"] == "loop":
        yield
    else:
        with approver:
            yield


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    jobs = [Job(**job) for job in plan["jobs"]]
    ledger = Ledger(Path(plan["ledger"]))
    desk = Desk(ledger)
    say("ready")
    store = TicketStore(plan["database"], durability=plan["durability"])
    approver = Approver(ledger, store, plan["chance"])
    if plan["visit"]:
        approver.visit()
    if plan["driver"] == "nobody":
        store.close()
        say("left")
        return
    with approving(plan, approver):
        if plan["driver"] == "sync":
            work_sync(plan, jobs, desk, store)
        else:
            asyncio.run(work_async(plan, jobs, desk, store, approver))
    store.close()
    say("done")


if __name__ == "__main__":
    main()
