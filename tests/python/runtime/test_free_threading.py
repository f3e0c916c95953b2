"""Fifty threads share everything that can be shared. On a free-threaded Python they run at once."""

import asyncio
import json
import subprocess
import sys
import sysconfig
import threading
import time
from collections import Counter
from typing import TypedDict

import pytest

from callslip import Agent, ChattyProtocol, FunctionModel, TicketStore, UsageError, tool
from callslip._threads import pool
from callslip.runs._messages import MessageCache
from callslip.tools._annotation import shape_of
from scripted import act, block, finish

THREADS = 50
IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def often():
    """With a GIL, threads take turns far more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*functions, times=THREADS):
    """Call each function with its number in so many threads at once, and return the results."""
    calls = [(function, number) for number in range(times) for function in functions]
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)
    errors = []

    def work(position, function, number):
        barrier.wait(60)
        try:
            results[position] = function(number)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(position, *call), daemon=True)
        for position, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def doubling(messages):
    """Ask for a number to be doubled, then say what came of it."""
    last = messages[-1]["content"]
    if last.startswith("TOOL_EXECUTION_RESULT"):
        return last.rpartition(" ")[2]
    return block(("a", "double", {"number": int(last.split()[0])}))


def agent_of(store=None, model=doubling, **options):
    return Agent(model, protocol="chatty", tools=[double], store=store, **options)


@pytest.fixture
def store(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite", durability="normal") as store:
        yield store


@pytest.mark.skipif(not IS_FREE_THREADED, reason="this Python has a GIL")
@pytest.mark.parametrize("modules", ["callslip", "callslip, callslip.store, callslip.agent"])
def test_an_import_leaves_the_gil_off(modules):
    code = f"import sys, {modules}; callslip.Agent, callslip.tool; print(sys._is_gil_enabled())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_one_agent_and_one_store(store):
    agent = agent_of(store)

    def run(number):
        result = agent.run_sync(str(number))
        assert result.value == str(2 * number)
        return result.run.id

    def run_on_a_loop(number):
        async def both():
            return await asyncio.gather(agent.run(str(number)), agent.run(str(number + 100)))

        results = asyncio.run(both())
        assert [one.value for one in results] == [str(2 * number), str(2 * number + 200)]
        return [result.run.id for result in results]

    def look(_):
        for one in store.runs(limit=5):
            run = store.run(one.run_id)
            assert len(run.messages) >= 2
            assert all(ticket.tool == "double" for ticket in run.tickets)
        store.tickets(limit=5)
        return store.query("SELECT count(*) AS runs FROM runs")[0]["runs"]

    ids = together(run, run_on_a_loop, look)
    found = [
        one
        for given in ids
        if not isinstance(given, int)
        for one in ([given] if isinstance(given, str) else given)
    ]
    assert len(set(found)) == 3 * THREADS
    finished = store.runs(status="finished")
    assert {one.run_id for one in finished} == set(found)
    assert {ticket.status for ticket in store.tickets()} == {"COMPLETED"}
    assert len(store.tickets()) == 3 * THREADS


def test_one_protocol_and_its_readers():
    protocol = ChattyProtocol()
    replies = [
        block(("a", "double", {"number": number, "text": "é" * number}))
        for number in range(THREADS)
    ]
    alone = [repr(protocol.parse(reply)) for reply in replies]

    def read(number):
        reply = replies[number]
        reader = protocol.reader()
        for character in reply:
            reader.push(character)
            assert len(reader.snapshot().calls) <= 1
        assert repr(protocol.parse(reply)) == alone[number]
        return repr(reader.finish())

    assert together(read) == alone


def test_one_reader():
    """The order of the pieces is theirs, but each is read once, and the end comes once."""
    reader = ChattyProtocol().reader()
    pieces = ["x" * 10, "x" * 20_000]

    def push(number):
        deltas, _ = reader.push(pieces[number % 2])
        return sum(len(delta.text) for delta in deltas)

    def look(_):
        snapshot = reader.snapshot()
        assert set(snapshot.text + (snapshot.answer or "")) <= {"x"}
        repr(snapshot)

    def end(_):
        try:
            return reader.finish()
        except ValueError as error:
            return str(error)

    together(push, look)
    ends = together(end)
    replies = [one for one in ends if not isinstance(one, str)]
    assert [len(reply.raw) for reply in replies] == [THREADS // 2 * 20_010]
    assert Counter(one for one in ends if isinstance(one, str)) == {
        "the reader is finished: make a new one for the next reply": THREADS - 1
    }


def test_one_snapshot_of_calls_that_arrive():
    """Lists and objects grow in place, while all look at them."""
    reader = ChattyProtocol().reader()
    calls = [
        (f"c{number}", "double", {"number": number, "list": [1, {"a": "b" * 50}]})
        for number in range(60)
    ]
    text = block(*calls)
    lock, position = threading.Lock(), [0]

    def push(_):
        while True:
            with lock:
                start = position[0]
                position[0] += 40
                if start >= len(text):
                    return
                reader.push(text[start : start + 40])

    def look(_):
        for _ in range(30):
            for call in reader.snapshot().calls:
                assert isinstance(call.arguments, dict)
                json.dumps(call.arguments)
                repr(call)

    together(push, look, times=10)
    snapshot = reader.snapshot()
    assert [(call.call_id, call.tool, call.arguments) for call in snapshot.calls] == calls


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def test_one_run_with_calls_to_approve(store):
    asked = [block(*((f"c{number}", "pay", {"amount": number}) for number in range(10))), "done"]
    agent = Agent(
        FunctionModel(lambda _: asked.pop(0)), protocol="chatty", tools=[pay], store=store
    )
    run_of, approved = [], Counter()

    async def main():
        async with agent.stream("go") as stream:
            run_of.append(stream.run)
            decided = False
            async for _ in stream:
                if len(stream.awaiting_approval) == 10 and not decided:
                    decided = True
                    tickets = list(stream.awaiting_approval)
                    outcomes = await asyncio.to_thread(decide, stream.run, tickets)
                    approved.update(outcomes)
        return stream.result.value

    def decide(run, tickets):
        def approve(number):
            try:
                run.approve(tickets[number % 10], by=f"person {number}")
            except UsageError:
                return "refused"
            return "approved"

        def look(_):
            assert len(run.tickets) == 10
            assert run.messages[0]["role"] == "system"
            assert run.log[0].kind == "run_started"
            run.trace()
            return str(run) and None

        return [one for one in together(approve, look, times=30) if one is not None]

    assert asyncio.run(main()) == "done"
    assert approved == {"approved": 10, "refused": 20}
    (run,) = run_of
    assert Counter(event.kind for event in run.log)["approved"] == 10


def test_the_messages_of_one_run():
    """Each message is there once, whoever reads them first."""
    given = iter([*(act("double", number=number) for number in range(5)), finish("done")])
    run = Agent(lambda _: next(given), tools=[double]).run_sync("go").run

    class Slow:
        def message(self, position):
            time.sleep(0.001)
            return run._core.message(position)

    messages = MessageCache(Slow()).until(len(run.messages))
    alone = list(run.messages)
    assert all(one == alone for one in together(lambda _: list(messages), times=20))


def test_one_stream_of_events():
    agent = agent_of(model=FunctionModel(doubling, chunk_size=3))
    with agent.stream_sync("21") as stream:
        items = together(lambda _: list(stream), times=10)
    kinds = Counter(item.kind for some in items for item in some if hasattr(item, "kind"))
    expected = Counter(event.kind for event in stream.run.log)
    assert kinds == expected
    assert stream.result.value == "42"


def test_a_stream_that_another_thread_reads_is_not_closed():
    begun, go_on = threading.Event(), threading.Event()

    def model(_):
        begun.set()
        go_on.wait(60)
        return "done"

    with Agent(model, protocol="chatty").stream_sync("go") as stream:
        reading = threading.Thread(target=lambda: list(stream))
        reading.start()
        assert begun.wait(60)
        with pytest.raises(UsageError) as caught:
            stream.close()
        go_on.set()
        reading.join(60)
    assert str(caught.value) == (
        "expected a stream that nobody reads: got one for whose next item a thread waits; call "
        "stream.run.cancel(), which ends it there"
    )
    assert stream.result.value == "done"


def test_one_watch_on_many_loops(store):
    run = agent_of(store).run_sync("21").run
    watch = run.watch()

    def take(_):
        async def all_of_them():
            return [event.kind async for event in watch]

        return asyncio.run(all_of_them())

    kinds = together(take, times=20)
    assert sorted(kind for some in kinds for kind in some) == sorted(
        event.kind for event in run.log
    )


def test_a_stream_on_another_loop_says_what_to_use():
    async def enter():
        stream = agent_of().stream("21")
        await stream.__aenter__()

        def elsewhere():
            async def item():
                return await anext(stream)

            with pytest.raises(UsageError) as caught:
                asyncio.run(item())
            return str(caught.value)

        said = await asyncio.to_thread(elsewhere)
        await stream.__aexit__(None, None, None)
        return said

    assert asyncio.run(enter()) == (
        "expected the event loop on which the stream was entered: got another; use run.watch(), "
        "which any number of loops can read"
    )


def test_messages_to_one_run(store):
    ready, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        ready.set()
        go_on.wait(60)
        return "waited"

    replies = iter([block(("a", "wait", {})), "done"])
    agent = Agent(lambda _: next(replies), protocol="chatty", tools=[wait], store=store)
    started = []

    async def main():
        run = agent.start("go")
        started.append(run)
        await asyncio.to_thread(ready.wait, 60)
        await asyncio.to_thread(together, lambda number: run.send(f"message {number}") and None)
        go_on.set()
        return await run

    assert asyncio.run(main()).value == "done"
    said = [event.text for event in started[0].log if event.kind == "user_said"]
    assert sorted(said) == sorted(f"message {number}" for number in range(THREADS))


def slowly(annotation):
    time.sleep(0.001)
    return annotation


class Leaf(TypedDict):
    """A leaf."""

    name: "slowly(str)"


def test_one_annotation():
    """Whoever describes a type first, no other thread takes it for a recursive one."""
    shapes = together(lambda _: shape_of(list[Leaf]), times=20)
    assert len({json.dumps(shape and shape.schema) for shape in shapes}) == 1


def test_one_tool():
    class Local(TypedDict):
        value: int

    for _ in range(20):

        @tool
        def local(it: "Local") -> None:
            """Local."""

        assert len({json.dumps(one) for one in together(lambda _: local.parameters, times=8)}) == 1


def test_the_pool_and_its_loop_are_made_once():
    pool._reset()
    loops = together(lambda _: pool.on_loop(asyncio.sleep(0, threading.get_ident)).result().get())
    assert len(set(loops)) == 1
    threads = [one for one in threading.enumerate() if one.name == "callslip-loop"]
    names = together(lambda _: pool.submit(threading.current_thread).result().get().name)
    assert set(names) <= {f"callslip_{number}" for number in range(pool.WORKERS)}
    assert threads
