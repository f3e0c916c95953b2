"""Scripts whose process dies, whose interpreter makes room, and that wait for a person."""

import asyncio
import functools
import json
import threading
import time

import pytest

from callslip import Agent, ScriptedModel, TicketStore, replay, tool
from callslip._scripts import live
from callslip._scripts.engine import CallsDue, ScriptCall
from callslip._scripts.runner import ScriptRunner
from callslip._scripts.waiting import WAITING
from script_engine import StubEngine
from scripted import act, finish

SEQUENTIAL = """
total = 0
for n in range(20):
    total += await pay(n=n * 2 + total % 2)
    print(n, total, random.random())
return total
"""

TOGETHER = """
async def chain(k):
    total = 0
    for n in range(4):
        total += await pay(n=100 * k + n)
    return total
print(await gather(*[chain(k) for k in range(3)]))
return now() > 0
"""


def agent_of(code, pay, engine, store, *, tools=(), **options):
    """An agent whose model writes one script and answers; without code, it only answers."""
    calls = [act("execute_python_code", code=code)] if code else []
    model = ScriptedModel([*calls, finish("done")])
    runner = ScriptRunner(engine=engine, **options)
    return Agent(model, tools=[pay, *tools], python=runner, store=store)


def payments(made, **options):
    @tool(**options)
    async def pay(n: int) -> int:
        """Pay."""
        made.append(n)
        return n * n

    return pay


def kinds(lines):
    return [next(iter(json.loads(line)["event"])) for line in lines]


def head(lines):
    """The log of the run above, up to the start of its script."""
    return lines[: kinds(lines).index("ticket_opened") + 1]


def restored(path, *logs):
    store = TicketStore(path)
    for lines in logs:
        store.import_run(lines, trust=True)
    return store


@pytest.mark.parametrize("code", [SEQUENTIAL, TOGETHER])
@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_a_process_that_dies_anywhere_repeats_and_loses_nothing(code, effect):
    made = []
    pay = payments(made, effect=effect)
    with TicketStore() as store:
        done = agent_of(code, pay, StubEngine(), store).run_sync("go")
        above, below = done.run.export().splitlines(), store.run(f"{done.run.id}.T1").export()
    below, expected = below.splitlines(), sorted(made)
    value = done.run.tickets[0].result
    for cut in range(1, len(below) + 1):
        made.clear()
        lines = below[:cut]
        events = [json.loads(line)["event"] for line in lines]
        opened = {
            e["ticket_opened"]["ticket"]: e["ticket_opened"] for e in events if "ticket_opened" in e
        }
        ended = {e["ticket_completed"]["ticket"] for e in events if "ticket_completed" in e}
        arguments = {ticket: one["arguments"]["n"] for ticket, one in opened.items()}
        before = sorted(arguments[ticket] for ticket in ended)
        with restored(None, head(above), lines) as store:
            engine = StubEngine()
            run = agent_of(None, pay, engine, store).resume_sync(done.run.id).run
            result = run.tickets[0].result
            assert not engine.open
            # What follows from the last reply of a cut log was perhaps done.
            may_be_open = kinds(lines)[-1] == "model_replied" and result["status"] != "ok"
            if effect == "once" and (len(opened) > len(ended) or may_be_open):
                # It may have been made: nothing else is, and the script can not catch it.
                assert (result["status"], made) == ("in_doubt", [])
                continue
            assert result == value, cut
            assert sorted(before + made) == expected, cut
            # Where the store would have ended too: it keeps what follows from one input together.
            if cut == len(below) or kinds(below)[cut] in {"model_replied", "ticket_completed"}:
                assert replay(store.run(f"{done.run.id}.T1").export()).finished


def test_a_try_around_a_payment_does_not_catch_a_doubt(tmp_path):
    code = """
for attempt in range(3):
    try:
        return await pay(n=1)
    except BaseException:
        print("again")
"""
    made = []
    pay = payments(made)
    with TicketStore(tmp_path / "first.sqlite") as store:
        done = agent_of(code, pay, StubEngine(), store).run_sync("go")
        above = done.run.export().splitlines()
        below = store.run(f"{done.run.id}.T1").export().splitlines()
    cut = kinds(below).index("ticket_completed")
    with restored(tmp_path / "second.sqlite", head(above), below[:cut]) as store:
        run = agent_of(None, pay, StubEngine(), store).resume_sync(done.run.id).run
    assert made == [1]
    result = run.tickets[0].result
    assert (result["status"], result["stdout"]) == ("in_doubt", "")
    assert "not known whether" in result["error"]["message"]
    assert result["notes"] == ['T1: line 4: pay {"n":1}: in_doubt']


def changes(at, change):
    """An interpreter whose step of this number is another one."""
    return StubEngine(wrong=lambda count, step: change(step) if count == at else step)


@pytest.mark.parametrize("at", [1, 2, 5])
@pytest.mark.parametrize(
    "change",
    [
        lambda step: CallsDue([ScriptCall("pay", {"n": 7}, 4)]),
        lambda step: CallsDue([ScriptCall(one.tool, one.arguments, 5) for one in step.calls]),
        lambda step: CallsDue([*step.calls, *step.calls]),
        lambda step: CallsDue(step.calls, "other"),
        lambda step: CallsDue([]),
    ],
)
def test_a_step_that_differs_from_the_record_ends_the_script(tmp_path, at, change):
    made = []
    pay = payments(made, effect="idempotent")
    with TicketStore(tmp_path / "first.sqlite") as store:
        done = agent_of(SEQUENTIAL, pay, StubEngine(), store).run_sync("go")
        above = done.run.export().splitlines()
        below = store.run(f"{done.run.id}.T1").export().splitlines()
    made.clear()
    # Six calls were made, and their outcomes are there.
    cut = [at for at, kind in enumerate(kinds(below)) if kind == "ticket_completed"][5] + 1
    with restored(tmp_path / "second.sqlite", head(above), below[:cut]) as store:
        engine = changes(at, change)
        run = agent_of(None, pay, engine, store).resume_sync(done.run.id).run
        result = run.tickets[0].result
        assert (result["status"], made) == ("diverged", [])
        assert engine.steps == at
        assert not engine.open
        assert len(result["notes"]) == 6
        assert store.run(f"{done.run.id}.T1").tickets[-1].outcome == "ok"


@pytest.mark.parametrize("field", ['"n":1}', '"line":', '"pay"'])
def test_a_record_that_was_changed_ends_the_script(tmp_path, field):
    made = []
    pay = payments(made, effect="idempotent")
    with TicketStore(tmp_path / "first.sqlite") as store:
        done = agent_of(SEQUENTIAL, pay, StubEngine(), store).run_sync("go")
        above = done.run.export().splitlines()
        below = store.run(f"{done.run.id}.T1").export().splitlines()
    made.clear()
    other = {'"n":1}': '"n":9}', '"line":': '"line":1', '"pay"': '"p\\u0061y"'}[field]
    place = kinds(below).index("model_replied")
    changed = json.loads(below[place])
    reply = changed["event"]["model_replied"]
    if field == '"n":1}':
        field = '"n":0}'
    assert field in reply["text"]
    reply["text"] = reply["text"].replace(field, other)
    below[place] = json.dumps(changed)
    cut = kinds(below).index("ticket_completed") + 1
    with restored(tmp_path / "second.sqlite", head(above), below[:cut]) as store:
        run = agent_of(None, pay, StubEngine(), store).resume_sync(done.run.id).run
        assert (run.tickets[0].result["status"], made) == ("diverged", [])


def on_loop(test):
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def run(*args, **options):
        asyncio.run(test(*args, **options))

    return run


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")


def sender(made):
    @tool(needs_approval=True)
    async def send(to: str) -> str:
        """Send."""
        made.append(to)
        return f"sent to {to}"

    return send


@pytest.mark.parametrize("compacts", [False, True])
@on_loop
async def test_a_person_decides_later_elsewhere_and_an_edit_is_a_note(tmp_path, compacts):
    code = """
async def slow():
    return await send(to="ann")
async def quick():
    return [await pay(n=n) for n in range(5)]
a, b = await gather(slow(), quick())
print(a, b)
return await pay(n=7)
"""
    made = []
    send, pay = sender(made), payments(made)
    first = StubEngine()
    with TicketStore(tmp_path / "first.sqlite") as store:
        agent = agent_of(code, pay, first, store, tools=[send])
        run = agent.start("go")
        # One call that waits for a person holds up no other.
        await until(lambda: len(made) == 5 and len(WAITING) == 1)
        await until(lambda: store.run(f"{run.id}.T1").turns == 6)
        assert len(first.open) == 1
        child = store.run(f"{run.id}.T1")
        await until(
            lambda: len(kinds(child.export().splitlines())) and child.log[-1].kind == "moved"
        )
        above, below = run.export().splitlines(), child.export().splitlines()
        run.cancel()
        await until(lambda: not first.open)
    assert made == [0, 1, 2, 3, 4]
    made.clear()
    with restored(tmp_path / "second.sqlite", above, below) as store:
        if compacts:
            store.compact(f"{run.id}.T1")
            assert len(store.run(f"{run.id}.T1").log) == 1
        other = store.run(f"{run.id}.T1")
        (ticket,) = [
            one for one in other.tickets if one.status == "AWAITING_APPROVAL" or not one.outcome
        ]
        other.approve(ticket, arguments={"to": "eve"})
        engine = StubEngine()
        agent = agent_of(None, pay, engine, store, tools=[send])
        result = (await agent.resume(run.id)).run.tickets[0].result
    assert made == ["eve", 7]
    assert result["status"] == "ok"
    assert result["stdout"] == "sent to eve [0, 1, 4, 9, 16]\n"
    assert result["notes"] == [
        'T1 was made with other arguments, which a person has put in: {"to":"eve"}'
    ]
    assert [replaying for *_, replaying in engine.started] == [True]


@on_loop
async def test_a_process_keeps_so_many_interpreters_that_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(WAITING, "_most", 3)
    made = []
    send, pay = sender(made), payments(made)
    code = "a = await pay(n=1)\nb = await send(to='ann')\nprint(a, b)\nreturn await pay(n=a + 2)"
    engine = StubEngine()
    agents = [agent_of(code, pay, engine, None, tools=[send]) for _ in range(10)]
    with TicketStore(tmp_path / "runs.sqlite") as store:
        runs = [agent.replace(store=store).start("go") for agent in agents]
        await until(lambda: all(run._children and run._children[0].tickets[1:] for run in runs))
        await until(lambda: len(engine.open) <= 3)
        assert len(WAITING) == 3
        for run in runs:
            run._children[0].approve("T2")
        results = [(await run).run.tickets[0].result for run in runs]
    assert {result["stdout"] for result in results} == {"1 sent to ann\n"}
    assert (sorted(map(str, made)), not engine.open) == (
        ["1"] * 10 + ["3"] * 10 + ["ann"] * 10,
        True,
    )
    # Seven at least were made again, and were told what they had been told.
    assert sum(replaying for *_, replaying in engine.started) >= 7


@pytest.mark.parametrize("state", ["in a step", "in a call", "waits for a person"])
@on_loop
async def test_a_cancelled_run_ends_its_interpreter(tmp_path, state):
    made, begun = [], threading.Event()
    send = sender(made)

    @tool
    async def pay(n: int) -> int:
        """Pay, never."""
        begun.set()
        await asyncio.sleep(60)
        return n

    @tool
    async def mark() -> None:
        """Say that a step follows."""
        begun.set()

    code = {
        "in a step": "await mark()\nclosed.wait(30)",
        "in a call": "await pay(n=1)",
        "waits for a person": "await send(to='ann')",
    }[state]
    engine = StubEngine()
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = agent_of(code, pay, engine, store, tools=[send, mark]).start("go")
        await until(lambda: engine.open and run._children and run._children[0].tickets)
        await until(lambda: begun.is_set() or state == "waits for a person")
        await asyncio.sleep(0.02)
        at = time.perf_counter()
        run.cancel()
        await until(lambda: not engine.open)
        assert time.perf_counter() - at < 0.1
        await until(lambda: run._children[0].finished)
    assert len(WAITING) == 0


@pytest.mark.parametrize("code", [SEQUENTIAL, TOGETHER])
def test_an_interpreter_that_is_made_anew_at_every_step_runs_the_same_script(monkeypatch, code):
    made = []
    pay = payments(made)
    engine = StubEngine()
    done = agent_of(code, pay, engine, None).run_sync("go")
    expected, count = sorted(made), done.run._children[0].turns
    assert len(engine.started) == 1
    value = done.run.tickets[0].result["value"]
    made.clear()
    monkeypatch.setattr(WAITING, "_most", 0)
    again = agent_of(code, pay, engine, None).run_sync("go")
    assert again.run.tickets[0].result["value"] == value
    assert sorted(made) == expected
    assert len(engine.started) >= count / 2
    assert not engine.open


def test_replaying_makes_no_call(tmp_path):
    made = []
    pay = payments(made)
    with TicketStore(tmp_path / "first.sqlite") as store:
        done = agent_of(TOGETHER, pay, StubEngine(), store).run_sync("go")
        child = store.run(f"{done.run.id}.T1")
        before = list(made)
        assert replay(child.export()).export() == child.export()
        assert made == before


def test_a_step_reads_no_more_than_is_new(monkeypatch):
    read = []
    outcomes, steps = live._core.script_outcomes, live._core.script_steps

    def counted(function):
        def call(core, known):
            rows = function(core, known)
            read.append(len(rows))
            return rows

        return call

    monkeypatch.setattr(live._core, "script_outcomes", counted(outcomes))
    monkeypatch.setattr(live._core, "script_steps", counted(steps))
    code = "for n in range(90):\n    await pay(n=n)"
    agent_of(code, payments([]), StubEngine(), None).run_sync("go")
    # Each step has one outcome and one reply that is due; the result reads all of them once.
    assert max(read[:-1]) == 1
