"""Processes that are killed while a script makes calls: none is made twice, none is lost."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from callslip import TicketStore
from random_cases import SEED

SUPPORT = Path(__file__).parents[2] / "support"

PROGRAM = """
import asyncio, os, sys
from callslip import Agent, FunctionModel, TicketStore, tool
from callslip._scripts.runner import ScriptRunner
from script_engine import StubEngine
from scripted import act, finish, turn_of

folder, wish = sys.argv[1:]
CODE = '''
async def chain(k):
    total = 0
    for n in range(5):
        total += await pay(n=10 * k + n)
    return total
return await gather(*[chain(k) for k in range(4)])
'''

@tool(effect=wish)
async def pay(n: int) -> int:
    "Pay."
    with open(folder + "/effects", "a") as file:
        file.write(f"{n}\\n")
    await asyncio.sleep(0.002)
    return n

def agent_of(code, **options):
    replies = [act("execute_python_code", code=code), finish("done")]
    model = FunctionModel(lambda messages: replies[turn_of(messages)])
    return Agent(model, tools=[pay], python=ScriptRunner(engine=StubEngine()), **options)

# What is imported late is there.
agent_of("return 1").run_sync("go")
agent = agent_of(CODE, store=TicketStore(folder + "/runs.sqlite", durability="normal"))
print("ready", flush=True)
agent.run_sync("go", key="one")
"""


def work(folder, effect, seconds):
    """Let a process work for a time. Returns whether it has come to the end."""
    command = [sys.executable, "-c", PROGRAM, str(folder), effect]
    paths = [str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return False


@pytest.mark.random_cases
@pytest.mark.timeout(240)
@pytest.mark.parametrize("effect", ["once", "pure"])
def test_killed_processes_repeat_and_lose_nothing(tmp_path, effect):
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    kills = doubts = 0
    for job in range(3):
        folder = tmp_path / str(job)
        folder.mkdir()
        most = 0.1
        while not work(folder, effect, rng.uniform(0.0, most)):
            kills += 1
            # A slow machine needs more time to come to the end.
            most *= 1.3
            assert kills < 200
        made = Counter(map(int, (folder / "effects").read_text().split()))
        with TicketStore(folder / "runs.sqlite") as store:
            (run,) = [store.run(row.run_id) for row in store.runs() if ".T" not in row.run_id]
            script = store.run(f"{run.id}.T1")
            result = run.tickets[0].result
            ended = Counter(one.arguments["n"] for one in script.tickets if one.outcome == "ok")
            doubtful = {one.arguments["n"] for one in script.tickets if one.outcome == "in_doubt"}
        # What ended well was made, and the log has each call once.
        assert not ended - made
        assert max(ended.values(), default=1) == 1
        if effect == "once":
            assert max(made.values(), default=1) == 1
            assert set(made) <= set(ended) | doubtful
        doubts += bool(doubtful)
        if doubtful:
            assert result["status"] == "in_doubt"
        else:
            assert result["status"] == "ok", json.dumps(result)
            assert set(ended) == {10 * k + n for k in range(4) for n in range(5)}
    print(f"{kills} kills, {doubts} scripts in doubt")
    assert kills > 0
