"""Fifty runs, three workers, and one of them is killed: `make fleet-demo`, or `python demo.py URL`.

The model is a function, so no key is needed. The database may be any that this user may migrate.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter

from callslip import Agent, TicketStore, tool
from callslip.events import Noted
from callslip.fleet import Fleet, migrate

RUNS = 50
WORKERS = 3
SLOTS = 4
REFUNDS = 6
"""Begun by a worker before it is killed."""
LEASE = 3.0
TIMEOUT = 50.0

NAME = os.environ.get("FLEET_DEMO_WORKER", "")


@tool(effect="pure")
async def look_up(order: int) -> str:
    """Look an order up."""
    await asyncio.sleep(0.2)
    return f"order {order} was paid, says {NAME}"


@tool(effect="idempotent")
async def refund(order: int) -> str:
    """Refund an order."""
    # Whoever kills the worker waits for this.
    print("refunding", flush=True)
    await asyncio.sleep(0.4)
    return f"order {order} was refunded by {NAME}"


def model(messages: list[dict[str, str]]) -> str:
    """In the place of a model: it looks the order up, refunds it, and says so."""
    last = messages[-1]["content"]
    if "was refunded" in last:
        end = {"final_answer": "It is refunded.", "task_successful": True}
        return json.dumps({"thought": "Done.", "action": "FINISH", **end})
    action = "refund" if "was paid" in last else "look_up"
    return json.dumps({"thought": "Next.", "action": action, "args": {"order": 7}})


async def work(url: str) -> None:
    """Be a worker, until the process that started it ends or says so."""
    with TicketStore(url) as store:
        fleet = Fleet(store, [Agent(model, tools=[look_up, refund], name="support")], lease=LEASE)
        working = asyncio.create_task(fleet.work(slots=SLOTS))
        loop = asyncio.get_running_loop()

        def end_with_parent() -> None:
            sys.stdin.read()
            loop.call_soon_threadsafe(working.cancel)

        threading.Thread(target=end_with_parent, daemon=True).start()
        await asyncio.wait([working])


def start_worker(url: str, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, url]
    environment = {**os.environ, "FLEET_DEMO_WORKER": name}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe)


async def main(url: str) -> bool:
    migrate(url)
    began = time.monotonic()
    with TicketStore(url) as store:
        fleet = Fleet(store)
        runs = [await fleet.submit("support", f"Refund order {n}.") for n in range(RUNS)]
        print(f"{RUNS} runs are submitted, {WORKERS} workers start")
        workers = {name: start_worker(url, name) for name in names()}
        victim = names()[0]
        try:
            results = [asyncio.ensure_future(fleet.result(run_id)) for run_id in runs]
            async with asyncio.timeout(TIMEOUT):
                await asyncio.to_thread(wait_for_refunds, workers[victim])
                workers[victim].kill()
                print(f"{victim} is killed with -9 amid its runs")
                await asyncio.gather(*results)
        finally:
            for process in workers.values():
                stop(process)
        return report(store, runs, victim, time.monotonic() - began)


def wait_for_refunds(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    for _ in range(REFUNDS):
        process.stdout.readline()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Have a worker leave its runs, and see it end."""
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def names() -> list[str]:
    return [f"worker {number + 1}" for number in range(WORKERS)]


def report(store: TicketStore, runs: list[str], victim: str, seconds: float) -> bool:
    """Print what came of it. Returns whether all is as it should be."""
    calls: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    taken_over = 0
    for run in map(store.run, runs):
        taken_over += any(isinstance(one, Noted) and one.note == "resumed" for one in run.log)
        for ticket in run.tickets:
            kinds[f"{ticket.outcome}"] += 1
            calls.update(name for name in names() if str(ticket.result).endswith(name))
    ended = sum(run.status == "finished" for run in map(store.run, runs))
    rows = [("", "calls in the logs", "process")]
    rows += [
        (name, str(calls[name]), "killed with -9" if name == victim else "ended when it was told")
        for name in names()
    ]
    print()
    for row in rows:
        print("  {:<10} {:>18}   {}".format(*row))
    print(f"\n  {ended} of {len(runs)} runs ended, each with exactly 2 calls: {kinds['ok']} in all")
    print(f"  {taken_over} of them were taken over from {victim}, {LEASE:g} s after its last beat")
    print(f"  {seconds:.1f} s in all")
    return ended == len(runs) and kinds == {"ok": 2 * len(runs)}


if __name__ == "__main__":
    if NAME:
        asyncio.run(work(sys.argv[1]))
    else:
        sys.exit(0 if asyncio.run(main(sys.argv[1])) else 1)
