"""Scripts that call tools, run by Monty."""

import asyncio
import functools
import json
import os
import time
from pathlib import Path

import pydantic_monty
import pytest

from callslip import (
    Agent,
    Limits,
    MontyRunner,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip._scripts.engine import Function
from callslip._scripts.monty import MontyEngine
from callslip._scripts.stubs import stubs_for
from callslip._scripts.waiting import WAITING
from scripted import act, finish


class Tools:
    """Tools that say what they did."""

    def __init__(self):
        self.made = []

        @tool(readonly=True)
        def orders(customer: str) -> list[int]:
            """Return the orders of a customer."""
            self.made.append(customer)
            return [1, 2, 3]

        @tool
        async def pay(order: int, note: str = "") -> str:
            """Pay an order."""
            self.made.append(order)
            if order == 13:
                raise ValueError("no such order")
            return f"paid {order}{note}"

        @tool(needs_approval=True)
        async def send(to: str) -> str:
            """Send something."""
            self.made.append(to)
            return f"sent to {to}"

        self.all = [orders, pay, send]


RUNNER = MontyRunner()
UNCHECKED = MontyRunner(check=False)


def agent_of(code, tools, runner=RUNNER, store=None):
    calls = [act("execute_python_code", code=code)] if code else []
    model = ScriptedModel([*calls, finish("done")])
    return Agent(model, tools=tools.all, python=runner, store=store)


def result_of(code, tools, runner=RUNNER):
    done = agent_of(code, tools, runner).run_sync("go", approve=lambda ticket: True)
    assert not len(WAITING)
    return done.run.tickets[0].result


ALL = """
import asyncio, datetime, random, time
async def chain(k):
    total = []
    for order in await orders(customer=f"c{k}"):
        if order == 2 and k == 1:
            try:
                await pay(order=13)
            except RuntimeError as error:
                print(k, error)
        total.append(await pay(order=order + 20 * k, note=str(random.randint(0, 99))))
    return total
rows = await asyncio.gather(*[chain(k) for k in range(4)])
for name in {f"n{len(row)}" for row in rows}:
    print(await call("send", to=name), datetime.datetime.now(), datetime.date.today(), time.time())
print(hash("x") == hash("x"), random.random(), {"a", "b", "c"})
[row[0] for row in rows]
"""


def test_a_script_calls_tools_and_its_result_says_all():
    tools = Tools()
    result = result_of(ALL, tools)
    assert result["status"] == "ok", result
    assert result["calls"] == {"made": 17, "failed": 1, "denied": 0}
    assert result["stdout"].startswith("1 Error calling tool 'pay': ValueError: no such order")
    assert "sent to n3" in result["stdout"]
    assert [text.partition("d")[0] for text in result["value"]] == ["pai"] * 4
    assert sorted(map(str, tools.made)).count("13") == 1


def test_a_script_that_is_begun_anew_at_every_step_is_the_same(monkeypatch):
    tools = Tools()
    first = agent_of(ALL, tools).run_sync("go", approve=lambda ticket: True).run
    monkeypatch.setattr(WAITING, "_most", 0)
    made = list(tools.made)
    tools.made.clear()
    again = agent_of(ALL, tools).run_sync("go", approve=lambda ticket: True).run
    assert first.tickets[0].result["status"] == again.tickets[0].result["status"] == "ok"
    assert again.tickets[0].result["calls"] == first.tickets[0].result["calls"]
    assert sorted(map(str, tools.made)) == sorted(map(str, made))
    (child,) = again._children
    assert child.turns > 4
    assert replay(child.export()).finished


SYNC = """
names = ["ann", "bob"]
found = {name: orders(customer=name) for name in names}
print(found)
print(pay(order=found["ann"][0]), pay(found["bob"][1]))
"""


def test_a_script_without_await_has_one_meaning():
    tools = Tools()
    result = result_of(SYNC, tools)
    assert result["stdout"].endswith("paid 1 paid 2\n"), result
    assert tools.made == ["ann", "bob", 1, 2]


FAULTS = [
    "await pay(order='x')",
    "await pay()",
    "await pay(order=1, more=2)",
    "await pay(ordr=1)",
    "await gone(order=1)",
    "await orders(customer=3)",
    "await orders(customer=None)",
    "print(undefined)\nawait pay(order=1)",
    "import numpy\nawait pay(order=1)",
    "from requests import get\nawait pay(order=1)",
    "await pay(order=1)\nawait pay(order=[1])",
    "await pay(order=1)\nx = 1 + 'a'",
    "await pay(order=1)\ndef f(:",
    "await pay(order=1)\nclass A(B):\n    pass",
    "await pay(order={'order': 1})",
    "await pay(order=1.5)",
    "rows = await orders(customer='a')\nawait pay(order=str(rows))",
    "await pay(order=1, note=2)",
    "x: int = 'a'\nawait pay(order=1)",
    "await send(to=[1])",
]


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_that_the_check_finds_is_told_before_anything_runs(code):
    tools = Tools()
    # In front of it stands what would have an effect.
    result = result_of(f"print('begun')\nawait pay(order=7)\n{code}", tools)
    assert (result["status"], result["stdout"], tools.made) == ("error", "", [])
    assert result["error"]["message"].startswith("nothing of the script was run: main.py:")


RIGHT = [
    ALL,
    SYNC,
    "x = await orders(customer='a')\nawait pay(order=x[0], note='n')",
    "for n in [1, 2]:\n    await pay(order=n)",
    "await call('pay', order=1)",
    "import json\njson.dumps(await orders(customer='a'))",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    n: int\nawait pay(order=A(1).n)",
    "import asyncio\nawait asyncio.gather(*[pay(order=n) for n in range(3)])",
]


@pytest.mark.parametrize("code", RIGHT)
def test_right_scripts_pass_the_check(code):
    result = result_of(code, Tools())
    assert result["status"] == "ok", result


TRIED = """
while True:
    try:
        {}
    except BaseException:
        pass
"""

ENDLESS = {
    "cpu": (TRIED.format("pass"), "TimeoutError"),
    "memory": ("x = []" + TRIED.format("x.append('y' * 100_000)"), "MemoryError"),
    "depth": ("def f():\n    return f()\nf()", "RecursionError"),
    "output": (TRIED.format("print('x' * 100_000)"), "TimeoutError"),
    "clock": ("import time" + TRIED.format("time.time()"), "RuntimeError"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_limits_of_a_script_hold_and_can_not_be_caught(kind):
    code, expected = ENDLESS[kind]
    runner = MontyRunner(check=False, cpu_seconds=0.2, memory_bytes=16 << 20)
    result = result_of(code, Tools(), runner)
    assert (result["status"], result["error"]["type"]) == ("error", expected)
    assert len(result["stdout"]) <= (256 << 10) + 100


def test_calls_in_a_loop_reach_the_limit_of_the_run():
    code = (
        "while True:\n    try:\n        await pay(order=1)\n    except BaseException:\n        pass"
    )
    tools = Tools()
    runner = MontyRunner(run_limits=Limits(turns=None, tickets=5))
    result = result_of(code, tools, runner)
    assert (result["status"], tools.made) == ("limit", [1] * 5)


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.listdir('/')",
        "open('/etc/passwd').read()",
        "import socket",
        "import subprocess",
        "from pathlib import Path\nPath('/etc/passwd').read_text()",
        "import os\nos.environ['HOME']",
        "__import__('os').system('true')",
    ],
)
def test_there_is_nothing_of_this_machine(code):
    result = result_of(code, Tools(), UNCHECKED)
    assert result["status"] == "error", result
    assert "root:" not in json.dumps(result)


def test_values_that_are_no_json_are_shown_or_refused():
    assert result_of("{1}", Tools())["value"] == "{1}"
    code = "try:\n    await call('pay', order={1})\nexcept TypeError as error:\n    print(error)"
    tools = Tools()
    result = result_of(code, tools)
    assert "expected JSON values for pay" in result["stdout"]
    assert tools.made == []


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


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A child that has ended stays until its parent asks for it.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("state", ["in a step", "in a call", "waits for a person"])
@on_loop
async def test_a_cancelled_run_ends_its_interpreter(tmp_path, state, monkeypatch):
    tools, sessions = Tools(), []

    @tool
    async def slow() -> None:
        """Never end."""
        tools.made.append("slow")
        await asyncio.sleep(60)

    tools.all = [*tools.all, slow]
    code = {
        "in a step": "await pay(order=1)\nwhile True:\n    pass",
        "in a call": "await slow()",
        "waits for a person": "await send(to='ann')",
    }[state]
    start = MontyEngine.start

    def started(self, *args, **options):
        sessions.append(start(self, *args, **options))
        return sessions[-1]

    monkeypatch.setattr(MontyEngine, "start", started)
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = agent_of(code, tools, store=store).start("go")
        await until(lambda: sessions and run._children and run._children[0].tickets)
        await asyncio.sleep(0.2)
        (session,) = sessions
        assert session._worker.process is not None
        at = time.perf_counter()
        run.cancel()
        await until(lambda: session._worker.is_closed)
        assert time.perf_counter() - at < 0.1
        if state == "in a step":
            await until(lambda: not is_alive(session._worker.process))
    assert not len(WAITING)


def kinds(lines):
    return [next(iter(json.loads(line)["event"])) for line in lines]


def test_another_process_goes_on_from_the_log():
    code = (
        "total = 0\nfor n in range(6):\n    print(await pay(order=n), total)\n    total += n\ntotal"
    )
    tools = Tools()
    with TicketStore() as store:
        done = agent_of(code, tools, store=store).run_sync("go")
        above = done.run.export().splitlines()
        below = store.run(f"{done.run.id}.T1").export().splitlines()
        expected = done.run.tickets[0].result
    above = above[: kinds(above).index("ticket_opened") + 1]
    for cut in [at + 1 for at, kind in enumerate(kinds(below)) if kind == "ticket_completed"]:
        before = tools.made[:]
        tools.made.clear()
        with TicketStore() as store:
            store.import_run(above)
            store.import_run(below[:cut])
            # A process that has never run a script.
            runner = MontyRunner()
            run = agent_of(None, tools, runner, store).resume_sync(done.run.id).run
        assert run.tickets[0].result == expected
        assert len(tools.made) == 6 - kinds(below[:cut]).count("ticket_completed")
        assert before


def test_the_clock_is_the_time_of_the_last_outcome():
    code = """
import datetime, time
zone = datetime.timezone(datetime.timedelta(hours=2))
before = time.time()
await pay(order=1)
now = datetime.datetime.now(datetime.timezone.utc)
[before, time.time(), time.time_ns(), now.timestamp(), now.isoformat(),
 datetime.datetime.now(zone).isoformat(), datetime.datetime.now().isoformat()]
"""
    agent = agent_of(code, Tools())
    run = agent.run_sync("go", approve=lambda ticket: True).run
    (child,) = run._children
    before, after, nanoseconds, stamp, *shown = run.tickets[0].result["value"]
    ended = next(event.at for event in child.log if event.kind == "ticket_completed")
    assert before == child.log[0].at
    assert after == ended
    assert nanoseconds // 10**9 == int(ended)
    assert stamp == pytest.approx(ended, abs=1e-5)
    assert [text[-6:] for text in shown[:2]] == ["+00:00", "+02:00"]
    assert "+" not in shown[2]


def test_the_model_reads_what_a_script_can_do_in_few_words():
    with_scripts = agent_of("", Tools()).system_prompt
    without = Agent(ScriptedModel([]), tools=Tools().all).system_prompt
    added = len(with_scripts) - len(without)
    assert 0 < added / 4 <= 150
    assert "Without yield, with, del and inheritance." in with_scripts


def test_tools_may_be_imported():
    code = "from tools import pay, orders\nif True:\n    from tools import pay\nawait pay(order=1)"
    assert result_of(code, Tools())["value"] == "paid 1"


def test_the_log_names_the_interpreter():
    done = agent_of("1", Tools()).run_sync("go", approve=lambda ticket: True)
    (child,) = done.run._children
    started = json.loads(child.export().splitlines()[0])["event"]["run_started"]
    assert started["setup"]["protocol"]["script"]["engine"] == f"monty {pydantic_monty.__version__}"


def test_stubs_are_made_from_schemas():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": ["string", "null"]},
            "c": {"enum": ["x"]},
            "d": {"type": "array"},
        },
        "required": ["d", "a"],
        "additionalProperties": False,
    }
    functions = [
        Function("f", schema),
        Function("other", schema),
        Function("class", schema),
        Function("GET /pets", schema),
        Function("g", {"properties": {"a-b": {}}}),
    ]
    assert stubs_for("await f(1); class; g()", functions, is_async=True).splitlines() == [
        "from typing import Any",
        "async def call(tool: str, /, **arguments: Any) -> Any: ...",
        "async def f(a: int, d: list[Any], b: str | None = ..., c: Any = ...) -> Any: ...",
        "async def g(*values: Any, **arguments: Any) -> Any: ...",
    ]


def test_wrong_options_are_told():
    for options, message in [
        ({"calls": "some"}, "expected calls='all', 'readonly' or a list of names: got 'some'"),
        ({"calls": [3]}, "expected calls as a list of texts"),
        ({"run_limits": 3}, "expected run_limits=Limits"),
        ({"cpu_seconds": -1}, "expected cpu_seconds to be"),
        ({"memory_bytes": 3}, "expected memory_bytes to be"),
        ({"check": 1}, "check"),
    ]:
        with pytest.raises(UsageError, match=message.replace("(", r"\(")):
            MontyRunner(**options)
