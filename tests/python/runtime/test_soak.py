"""The soak in short, and its checks: they must see what a run or the library could leave behind."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from callslip import Agent, Run, ScriptedModel, TicketStore, tool
from callslip._threads import gate as _gate
from random_cases import SEED
from soak.checks import Process, Wrong, all_are_over, gates_held, is_over, tasks_left
from soak.soak import WARM_UP, Soak

SUPPORT = Path(__file__).parents[2] / "support"
SECONDS = float(os.environ.get("CALLSLIP_SOAK_SECONDS", "12"))
CALL = '{"thought": "", "action": "work", "args": "{}"}'
FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


@pytest.mark.random_cases
@pytest.mark.timeout(1200)
def test_mixed_runs_leave_nothing_behind():
    print(f"seed {SEED}")
    soak = subprocess.run(
        [sys.executable, "-m", "soak", str(SECONDS), "--seed", str(SEED)],
        cwd=SUPPORT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=SECONDS + 240,
        check=False,
    )
    print(soak.stdout)
    assert soak.returncode == 0, soak.stderr
    # What nobody waits for complains on standard error.
    assert soak.stderr == ""
    table = re.findall(r"^ *(\d+)  (.+)$", soak.stdout, re.MULTILINE)
    seen = {name: int(count) for count, name in table}
    assert seen["rounds"] > WARM_UP
    assert seen["runs checked"] > 20 * seen["rounds"]


@tool
def work() -> str:
    """Work."""
    return "worked"


def agent(*replies, store=None):
    return Agent(ScriptedModel(list(replies)), tools=[work], store=store)


def test_a_run_that_is_over_passes():
    assert is_over(agent(CALL, FINISH).run_sync("go").run) == 1


def cut(run, events):
    """The run as it stood after so many events."""
    store = TicketStore()
    store.import_run("".join(run.export().splitlines(keepends=True)[:events]))
    return store


def test_a_run_that_is_not_over_is_seen():
    whole = agent(CALL, FINISH).run_sync("go").run
    # Elsewhere what a reply leads to is worked out again.
    stands = [
        event.seq + 1 for event in whole.log if event.kind in {"model_asked", "ticket_opened"}
    ]
    assert len(stands) == 3
    for events in stands:
        store = cut(whole, events)
        with pytest.raises(Wrong, match="has not ended"):
            is_over(store.run(whole.id))
        with pytest.raises(Wrong, match="left"):
            all_are_over(store)
    assert all_are_over(cut(whole, len(whole.log))) == 1


def test_a_run_left_below_another_is_seen(monkeypatch):
    over = agent(FINISH).run_sync("go").run
    left = cut(over, 2).run(over.id)
    children = {over: [left], left: []}
    monkeypatch.setattr(Run, "children", property(lambda run: children.get(run, [])))
    with pytest.raises(Wrong, match="has not ended"):
        is_over(over)


def test_a_run_that_is_still_held_is_seen():
    store = TicketStore()
    run = agent(FINISH, store=store).run_sync("go").run
    assert all_are_over(store) == 1
    run._core.claim(store._native)
    with pytest.raises(Wrong, match="still held"):
        all_are_over(store)


def test_what_the_process_holds_more_than_before_is_seen():
    base = Process.now()
    assert Process.now().beyond(base) == []
    run = agent(FINISH).run_sync("go").run
    assert any(found.endswith("more objects Run") for found in Process.now().beyond(base))
    del run
    reading, writing = os.pipe()
    assert any("files" in found for found in Process.now().beyond(base))
    os.close(reading)
    os.close(writing)
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="stray")
    thread.start()
    assert "thread stray" in Process.now().beyond(base)
    over.set()
    thread.join()
    # Native threads of earlier tests may end at any time.
    base.native = -1
    assert any("native" in found for found in Process.now().beyond(base))


def test_tasks_and_gates_that_are_left_are_seen():
    async def main():
        # Apps that other tests or pages offer at their top level live as long as those.
        before = set(tasks_left())
        task = asyncio.create_task(asyncio.sleep(60))
        assert [one for one in tasks_left() if one not in before] == [str(task)]
        task.cancel()

    asyncio.run(main())
    gate = _gate.Gate(1)
    assert gates_held() == []
    with gate.held_sync("run"):
        assert gates_held() == ["<Gate: 1 of 1 inside, 0 waiting>"]


@pytest.mark.parametrize(("growth", "holds"), [(0, True), (10, False)])
def test_memory_that_grows_is_seen(tmp_path, growth, holds):
    soak = Soak(tmp_path, 1, print)
    soak.memory = [2**20 * (50 + growth * at) for at in range(20)]
    if holds:
        soak.memory_is_flat()
    else:
        with pytest.raises(Wrong, match="grows"):
            soak.memory_is_flat()


def test_what_fails_where_nobody_waits_is_heard(tmp_path):
    soak = Soak(tmp_path, 1, print)

    def fail():
        raise ZeroDivisionError

    async def main():
        asyncio.get_running_loop().set_exception_handler(soak.fault)
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)

    with soak.listening():
        asyncio.run(main())
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    assert Counter("ZeroDivisionError" in fault for fault in soak.faults) == {True: 2}
