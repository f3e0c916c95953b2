"""`callslip status` lists runs that a process has, without an event for long."""

import asyncio
import json
import subprocess
import sys
import threading

import psycopg
import pytest

from callslip import Agent, TicketStore, tool
from callslip.cli import main
from callslip.fleet import status
from scripted import act, finish, turn_of

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("database")
    return str(tmp_path / "runs.sqlite")


def said(*replies):
    return lambda messages: replies[turn_of(messages)]


class Stop:
    """Something that goes on until it is told to end."""

    def __init__(self):
        self.began, self.ends = threading.Event(), threading.Event()

    def __call__(self):
        self.began.set()
        self.ends.wait(60)


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def told(capsys, place, *options):
    assert main(["status", place, *options]) == 0
    return capsys.readouterr().out


def lines_of(capsys, place):
    text = told(capsys, place, "--silent", "0")
    return [line for line in text.splitlines() if line.startswith("silent:")]


def while_stopped(stop, agent, look):
    """Run the agent in a thread, look at it in its call or request, and let it end."""
    runs = []

    async def drive():
        run = agent.start("go")
        runs.append(run)
        return await run

    driving = threading.Thread(target=lambda: asyncio.run(drive()))
    driving.start()
    try:
        assert stop.began.wait(30)
        look(runs[0])
    finally:
        stop.ends.set()
        driving.join()
    return runs[0]


def test_a_call_that_hangs(place, capsys):
    stop = Stop()

    @tool
    def render() -> str:
        """Render."""
        stop()
        return "there"

    def look(run):
        (line,) = lines_of(capsys, place)
        assert f"run {run.id} of 'painter'" in line
        assert "T1 render in progress" in line
        assert f"store.run('{run.id}').cancel()" in line
        assert "timeout= of the tool" in line
        # Nothing is silent for ten minutes yet.
        assert "silent" not in told(capsys, place)
        assert told(capsys, place, "--metric", "silent") == "0\n"
        (found,) = json.loads(told(capsys, place, "--json", "--silent", "0"))["silent"]
        assert (found["calls"], found["asks_model"]) == (["T1 render"], False)

    with TicketStore(place) as store:
        agent = Agent(said(act("render"), finish()), tools=[render], store=store, name="painter")
        while_stopped(stop, agent, look)
        assert lines_of(capsys, place) == []


def test_a_model_that_hangs(place, capsys):
    stop = Stop()

    def model(messages):
        stop()
        return finish()

    def look(run):
        (line,) = lines_of(capsys, place)
        assert f"run {run.id} of 'agent'" in line
        assert "the model is asked" in line
        assert "Retrying(model, timeout=…)" in line

    with TicketStore(place) as store:
        while_stopped(stop, Agent(model, store=store), look)


def test_who_waits_for_a_person_is_not_silent(place, capsys):
    async def main_():
        with TicketStore(place) as store:
            run = Agent(said(act("pay", amount=1), finish()), tools=[pay], store=store).start("go")
            async with asyncio.timeout(30):
                while not run.waiting:
                    await asyncio.sleep(0.01)
            lines = await asyncio.to_thread(lines_of, capsys, place)
            await asyncio.to_thread(run.approve, "T1")
            await run
            return lines

    assert asyncio.run(main_()) == []


@pytest.mark.parametrize("way", ["tool", "call"])
def test_only_the_run_below_is_silent(place, capsys, way):
    stop = Stop()

    @tool
    def render() -> str:
        """Render."""
        stop()
        return "there"

    with TicketStore(place) as store:
        painter = Agent(said(act("render"), finish()), tools=[render], store=store, name="painter")

        @tool
        async def ask() -> str:
            """Ask the painter."""
            return (await painter.run("Paint.")).value

        boss = {
            "tool": ([painter.as_tool(description="Paints.")], act("painter", task="Paint.")),
            "call": ([ask], act("ask")),
        }
        tools, first = boss[way]

        def look(run):
            (line,) = lines_of(capsys, place)
            assert "of 'painter'" in line
            assert run.id not in line.split(" of ")[0] or way == "tool"

        agent = Agent(said(first, finish()), tools=tools, store=store, name="boss")
        while_stopped(stop, agent, look)


def test_a_run_that_was_put_off_is_not_leased(database):
    stop = Stop()

    @tool
    def render() -> str:
        """Render."""
        stop()
        return "there"

    with TicketStore(database) as store:

        def look(run):
            assert [one.run_id for one in status(store, silent=0).silent] == [run.id]
            assert status(store, silent=0).metric("silent") == 1
            with psycopg.connect(database, autocommit=True) as connection:
                # The lease runs out: its process is gone, and the queue has the run.
                connection.execute(
                    "UPDATE pgmq.q_callslip_default SET vt = clock_timestamp() - interval '1 s'"
                )
                found = status(store, silent=0)
            assert found.silent == []

        agent = Agent(said(act("render"), finish()), tools=[render], store=store)
        while_stopped(stop, agent, look)


LEFT = """
import asyncio, os, sys
sys.path[:0] = {path!r}
from callslip import Agent, tool
from scripted import act
@tool
def render() -> str:
    "Render."
    os.kill(os.getpid(), 9)
Agent(lambda messages: act("render"), tools=[render], store={store!r}).run_sync("go")
"""


def test_a_file_that_no_process_has_open(tmp_path, capsys):
    place = str(tmp_path / "runs.sqlite")
    script = LEFT.format(path=sys.path, store=place)
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    text = told(capsys, place, "--silent", "0")
    assert text.splitlines()[0] == "1 runs running, 0 finished"
    assert "no process has the file open" in text
    assert "agent.resume_all()" in text
    assert "silent:" not in text
    with TicketStore(place):
        text = told(capsys, place, "--silent", "0")
        assert "the file is open in process" in text
        assert "silent: run" in text


def test_a_number_of_a_file(tmp_path, capsys):
    place = str(tmp_path / "runs.sqlite")
    with TicketStore(place) as store:
        Agent(said(finish()), store=store).run_sync("go")
    assert told(capsys, place, "--metric", "finished") == "1\n"
    assert main(["status", place, "--metric", "queue_age"]) == 2
    assert "pass the URL of a database" in capsys.readouterr().err
