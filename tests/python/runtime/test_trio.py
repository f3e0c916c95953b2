"""Under trio, every async entry says what to call instead, at once, and leaves nothing behind."""

import asyncio
import sys
import threading

import pytest
import trio

from callslip import Agent, ScriptedModel, TicketStore, UsageError, tool
from callslip.fleet import Fleet
from callslip.mcp import MCPServer
from callslip.sandbox import PythonRunner
from scripted import act, finish

INSTEAD = "await trio.to_thread.run_sync"


def refused(function):
    """Return what is said when trio runs this async function."""
    with pytest.raises(UsageError) as caught:
        trio.run(function)
    told, _, hint = str(caught.value).partition("; ")
    assert told == "expected a running event loop of asyncio: got that of trio"
    before, _, instead = hint.partition(INSTEAD)
    assert before == "under trio, call "
    return instead


async def entered(context):
    async with context:
        pass


async def first(items):
    return await anext(aiter(items))


@pytest.fixture
def store(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        yield store


def agent_with(store):
    asked = []

    def model(messages):
        asked.append(messages)
        return finish("done")

    return Agent(model, store=store), asked


ENTRIES = {
    "run": lambda agent: agent.run("go"),
    "stream": lambda agent: entered(agent.stream("go")),
    "resume": lambda agent: agent.resume("x"),
    "resume_all": lambda agent: agent.resume_all(),
    "hand_over": lambda agent: agent.hand_over(Agent(lambda _: finish("1")).run_sync("go").run),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_agent_begins_nothing(store, entry):
    agent, asked = agent_with(store)
    assert refused(lambda: ENTRIES[entry](agent)) == "(agent.run_sync, task)"
    assert (store.runs(), asked) == ([], [])


def test_a_run_is_not_started(store):
    agent, asked = agent_with(store)

    async def start():
        agent.start("go")

    assert refused(start) == "(agent.run_sync, task)"
    assert (store.runs(), asked) == ([], [])


def test_a_stored_run_is_not_continued(store):
    agent, asked = agent_with(store)
    run = agent.run_sync("go").run
    before = run.export()

    async def start():
        agent.start(run=run.id, say="more")

    async def stream():
        async with agent.stream(run=run.id, say="more"):
            pass

    for entry in (start, stream):
        assert refused(entry) == "(agent.run_sync, task)"
    assert (len(asked), store.run(run.id).export()) == (1, before)


def test_the_hint_works(store):
    agent, _ = agent_with(store)

    async def main():
        return await trio.to_thread.run_sync(agent.run_sync, "go")

    assert trio.run(main).value == "done"


@pytest.mark.parametrize("of", ["run", "store"])
def test_a_run_is_not_watched(store, of):
    agent, _ = agent_with(store)
    run = agent.run_sync("go").run
    source = run.watch if of == "run" else lambda: store.watch(run.id)
    assert refused(lambda: first(source())) == "(asyncio.run, main())"


def test_a_run_under_way_in_another_thread_is_not_awaited(store):
    begun, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        begun.set()
        go_on.wait(60)
        return "waited"

    agent = Agent(ScriptedModel([act("wait"), finish("done")]), tools=[wait], store=store)
    results = []
    worker = threading.Thread(target=lambda: results.append(agent.run_sync("go")))
    worker.start()
    assert begun.wait(60)
    run = store.run(store.runs()[0].run_id)

    async def main():
        await run

    assert refused(main) == "(asyncio.run, main())"
    go_on.set()
    worker.join(60)
    assert results[0].value == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no sandbox on Windows")
def test_no_script_is_run():
    runner = PythonRunner()
    assert refused(lambda: runner.arun("print(1)")) == "(runner.run, code)"
    with runner.session() as session:
        assert refused(lambda: session.arun("print(1)")) == "(runner.run, code)"


def test_no_server_is_connected():
    server = MCPServer.stdio(sys.executable, ["-c", "raise SystemExit"])
    assert refused(server.connect) == "(asyncio.run, main())"


def test_no_worker_and_no_run_of_a_fleet(database):
    with TicketStore(database) as store:
        fleet = Fleet(store, agents=[Agent(lambda _: finish("done"), name="clerk")])
        given = {
            "submit": ("clerk", "go"),
            "result": ("x",),
            "work": (),
            "drive": ("x",),
            "due": (),
            "sweep": (),
        }
        for name, arguments in given.items():
            said = refused(lambda name=name, given=arguments: getattr(fleet, name)(*given))
            assert said.startswith(f"(asyncio.run, fleet.{name}(")
        assert store.query("SELECT * FROM callslip.run") == []

        async def main():
            return await trio.to_thread.run_sync(asyncio.run, fleet.submit("clerk", "go"))

        assert trio.run(main)
