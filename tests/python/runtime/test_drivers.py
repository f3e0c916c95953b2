"""Both drivers: loops, threads, mixes of sync and async, cancellation, fork, exit."""

import asyncio
import contextvars
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from callslip import (
    Agent,
    Delta,
    FunctionModel,
    ModelError,
    ScriptedModel,
    TicketProtocol,
    UsageError,
    tool,
)
from random_cases import cases
from scripted import turn_of

# Of runs that are to stop a loop.
pytestmark = pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'


def call(name, **args):
    return json.dumps({"thought": "t", "action": name, "args": json.dumps(args)})


def finish(answer="done"):
    return json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": answer, "task_successful": True}
    )


SCRIPT = [call("here", n=1), call("there", n=2), finish()]


@tool
def here(n: int) -> int:
    """Sync."""
    return n


@tool
async def there(n: int) -> int:
    """Async."""
    await asyncio.sleep(0)
    return n


def replies(messages):
    return SCRIPT[turn_of(messages)]


def sync_whole(messages):
    return replies(messages)


async def async_whole(messages):
    await asyncio.sleep(0)
    return replies(messages)


def sync_stream(messages):
    text = replies(messages)
    yield from (text[at : at + 5] for at in range(0, len(text), 5))


async def async_stream(messages):
    text = replies(messages)
    for at in range(0, len(text), 5):
        await asyncio.sleep(0)
        yield text[at : at + 5]


class Callable:
    async def __call__(self, messages):
        return replies(messages)


def returns_a_coroutine(messages):
    return async_whole(messages)


MODELS = [sync_whole, async_whole, sync_stream, async_stream, Callable(), returns_a_coroutine]


def agent(model):
    return Agent(model, protocol="react", tools=[here, there])


def check(result):
    assert result.value == "done"
    assert [ticket.result for ticket in result.tickets] == [1, 2]


@pytest.fixture(params=MODELS, ids=lambda model: getattr(model, "__name__", "callable_object"))
def model(request):
    return request.param


def test_asyncio(model):
    check(asyncio.run(agent(model).run("x")))


def test_uvloop(model):
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        check(runner.run(agent(model).run("x")))


def test_a_plain_thread(model):
    results = []
    thread = threading.Thread(target=lambda: results.append(agent(model).run_sync("x")))
    thread.start()
    thread.join(60)
    check(results[0])


def test_sync(model):
    check(agent(model).run_sync("x"))


def test_sync_inside_a_running_loop(model):
    async def cell():
        return agent(model).run_sync("x")

    check(asyncio.run(cell()))


def test_many_runs_of_one_agent_side_by_side(model):
    one = agent(model)

    async def all_of_them():
        return await asyncio.gather(*(one.run("x") for _ in range(20)))

    for result in asyncio.run(all_of_them()):
        check(result)


def test_streamed_events(model):
    async def watch():
        seen = []
        async with agent(model).stream("x") as run:
            async for event in run:
                seen.append(event)
        return seen, run.result

    seen, result = asyncio.run(watch())
    check(result)
    kinds = [event.kind for event in seen if not isinstance(event, Delta)]
    assert kinds == [event.kind for event in result.run.log]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_finished"
    if model in (sync_stream, async_stream):
        answer = "".join(delta.text for delta in seen if isinstance(delta, Delta.Answer))
        assert answer == "done"


def test_leaving_a_stream_early_cancels_the_run():
    closed = []

    async def forever(messages):
        try:
            while True:
                await asyncio.sleep(0.01)
                yield " "
        finally:
            closed.append(1)

    async def watch():
        async with Agent(forever).stream("x") as run:
            async for _ in run:
                await asyncio.sleep(0.05)
                break
        return run.run

    run = asyncio.run(watch())
    assert run.stop_reason == "cancelled"
    assert closed == [1]


def test_context_variables_reach_tools_and_models():
    variable = contextvars.ContextVar("variable", default="unset")
    seen = []

    @tool
    def look() -> str:
        """Look."""
        seen.append(variable.get())
        return "x"

    @tool
    async def alook() -> str:
        """Look."""
        seen.append(variable.get())
        return "x"

    def model(messages):
        seen.append(variable.get())
        return [call("look"), call("alook"), finish()][turn_of(messages)]

    variable.set("mine")
    one = Agent(model, tools=[look, alook])
    one.run_sync("x")
    asyncio.run(one.run("x"))
    assert seen == ["mine"] * 10


def test_a_failing_client_ends_the_run_and_keeps_it():
    def model(messages):
        raise ConnectionError("no route")

    with pytest.raises(ModelError, match="ConnectionError: no route") as caught:
        Agent(model).run_sync("x")
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert caught.value.run.stop_reason == "model_error"
    with pytest.raises(ModelError):
        asyncio.run(Agent(model).run("x"))


def test_a_result_that_is_no_reply():
    with pytest.raises(ModelError, match="None"):
        Agent(lambda messages: None).run_sync("x")


def test_an_unexpected_call_shows_the_unanswered_messages():
    with pytest.raises(ModelError, match="the task"):
        Agent(ScriptedModel([])).run_sync("the task")


def test_run_sync_inside_a_tool_is_refused():
    inner = Agent(ScriptedModel([finish()]))

    @tool
    def nested() -> str:
        """Run another agent."""
        return inner.run_sync("y").value

    model = ScriptedModel([call("nested"), finish()])
    result = Agent(model, tools=[nested]).run_sync("x")
    assert "UsageError" in result.tickets[0].error
    assert "await agent.run" in result.tickets[0].error


def test_an_async_tool_may_run_another_agent():
    @tool
    async def nested() -> str:
        """Run another agent."""
        return (await Agent(ScriptedModel([finish("inner")])).run("y")).value

    result = Agent(ScriptedModel([call("nested"), finish()]), tools=[nested]).run_sync("x")
    assert result.tickets[0].result == "inner"


async def pending():
    await asyncio.sleep(120)


@pytest.mark.parametrize("place", ["model", "stream", "tool", "sync_tool", "sync_model"])
def test_cancellation_at_each_await(place):
    entered = threading.Event()
    release = threading.Event()

    async def model(messages):
        if place == "model":
            entered.set()
            await pending()
        return call("work")

    async def stream(messages):
        yield "{"
        entered.set()
        await pending()

    def sync_model(messages):
        entered.set()
        release.wait(120)
        return finish()

    @tool
    async def work() -> str:
        """Work."""
        entered.set()
        await pending()

    @tool(name="work")
    def sync_work() -> str:
        """Work."""
        entered.set()
        release.wait(120)
        return "late"

    models = {"stream": stream, "sync_model": sync_model}
    tools = [sync_work] if place == "sync_tool" else [work]
    one = Agent(models.get(place, model), tools=tools)

    async def main():
        before = asyncio.all_tasks()
        task = asyncio.create_task(one.run("x"))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert time.monotonic() - began < 20
        assert asyncio.all_tasks() == before
        return caught.value.run

    try:
        run = asyncio.run(main())
    finally:
        release.set()
    assert run.stop_reason == "cancelled"
    assert all(ticket.outcome == "cancelled" for ticket in run.tickets)


def test_a_timeout_around_a_run_is_the_callers():
    async def model(messages):
        await pending()

    async def main():
        async with asyncio.timeout(0.05):
            await Agent(model).run("x")

    with pytest.raises(TimeoutError):
        asyncio.run(main())


PROGRAM = """
import asyncio
from callslip import Agent, FunctionModel, tool
from tests_script import script, tools
async def main():
    result = await Agent(FunctionModel(script), tools=tools).run("x")
    assert result.value == "done"
asyncio.run(main())
"""


def program(tmp_path, text):
    (tmp_path / "tests_script.py").write_text(
        "import asyncio, json\n"
        "from callslip import tool\n"
        "@tool\n"
        "def here(n: int) -> int:\n    '''Sync.'''\n    return n\n"
        "@tool\n"
        "async def there(n: int) -> int:\n    '''Async.'''\n    return n\n"
        "tools = [here, there]\n"
        f"REPLIES = {SCRIPT!r}\n"
        "def script(messages):\n"
        "    said = [m for m in messages if m['role'] == 'assistant']\n"
        "    return REPLIES[len(said) - 2]  # two of the example\n"
    )
    path = tmp_path / "main.py"
    path.write_text(text)
    return [sys.executable, str(path)]


@pytest.mark.random_cases
def test_a_script_that_ends_right_after_its_last_await_exits_0_each_time(tmp_path):
    command = program(tmp_path, PROGRAM)
    codes = []
    for _ in range(cases(10)):
        pair = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
        for process in pair:
            _, errors = process.communicate(timeout=200)
            codes.append((process.returncode, errors))
    assert codes == [(0, b"")] * cases(10) * 2


def test_fork_then_run(tmp_path):
    text = """
import os, sys, asyncio
from callslip import Agent, FunctionModel
from tests_script import script, tools
agent = Agent(FunctionModel(script), tools=tools)
agent.run_sync("x")
asyncio.run(agent.run("x"))
pid = os.fork()
if pid == 0:
    assert agent.run_sync("x").value == "done"
    assert asyncio.run(agent.run("x")).value == "done"
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run(
        program(tmp_path, text), capture_output=True, timeout=200, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("where", ["model", "tool", "async_model"])
def test_ctrl_c_answers_at_once_and_keeps_the_run(tmp_path, where):
    text = f"""
import asyncio, os, signal, threading, time, json
from callslip import Agent, tool
WHERE = {where!r}
began = None
def interrupt():
    global began
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
def wait():
    threading.Timer(0.2, interrupt).start()
    time.sleep(120)
@tool
def work() -> str:
    '''Work.'''
    wait()
def model(messages):
    if WHERE == "model":
        wait()
    return json.dumps({{"thought": "t", "action": "work", "args": "{{}}"}})
async def async_model(messages):
    threading.Timer(0.2, interrupt).start()
    await asyncio.sleep(120)
try:
    Agent(async_model if WHERE == "async_model" else model, tools=[work]).run_sync("x")
except KeyboardInterrupt as error:
    took = time.monotonic() - began
    assert took < 30, took
    assert error.run.stop_reason == "cancelled"
    assert all(ticket.outcome == "cancelled" for ticket in error.run.tickets)
    print("interrupted")
"""
    command = program(tmp_path, text)
    done = subprocess.run(command, capture_output=True, timeout=200, check=False, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


CTRL_C_IN_A_LOOP = """
import asyncio, json, os, signal, threading, time
from callslip import Agent, tool

began = None

def interrupt():
    global began
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

async def model(messages):
    threading.Timer(0.2, interrupt).start()
    await asyncio.sleep(120)

def quick(messages):
    fields = {"action": "FINISH", "final_answer": "x", "task_successful": True}
    return json.dumps({"thought": "", **fields})

def run_sync():
    handler = signal.getsignal(signal.SIGINT)
    try:
        Agent(model).run_sync("x")
    except KeyboardInterrupt as error:
        took = time.monotonic() - began
        assert took < 30, took
        assert error.run.stop_reason == "cancelled"
        print("interrupted")
    assert signal.getsignal(signal.SIGINT) is handler
    assert Agent(quick).run_sync("x").value == "x"
    assert signal.getsignal(signal.SIGINT) is handler

async def main():
    run_sync()
    # What was answered here is not answered once more by the loop.
    await asyncio.sleep(0.01)
    print("went on")
"""


def _interrupted(tmp_path, text):
    python, *rest = program(tmp_path, CTRL_C_IN_A_LOOP + text)
    command = [python, "-W", "ignore::RuntimeWarning", *rest]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False, text=True)
    return done.stdout, done.stderr, done.returncode


def test_ctrl_c_answers_at_once_where_run_sync_holds_up_a_loop(tmp_path):
    done = _interrupted(tmp_path, "asyncio.run(main())")
    assert done == ("interrupted\nwent on\n", "", 0)


def test_the_program_s_own_handler_of_ctrl_c_is_left_alone(tmp_path):
    text = """
def own(number, frame):
    print("own")
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, own)
asyncio.run(main())
"""
    assert _interrupted(tmp_path, text) == ("own\ninterrupted\nwent on\n", "", 0)


def test_run_sync_in_a_loop_of_another_thread_leaves_signals_alone():
    async def main():
        return Agent(FunctionModel(lambda _: finish())).run_sync("x").value

    told = []
    thread = threading.Thread(target=lambda: told.append(asyncio.run(main())))
    thread.start()
    thread.join()
    assert told == ["done"]


def test_a_task_must_be_text():
    with pytest.raises(UsageError, match="expected the task as text"):
        Agent(FunctionModel(replies)).run_sync(7)


def test_nothing_of_ours_runs_before_a_run():
    code = (
        "import threading, callslip\n"
        "callslip.Agent(lambda m: 'x')\n"
        "assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ}, timeout=200)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("where", ["tool", "model"])
def test_what_was_cancelled_inside_does_not_cancel_the_run(where, wait):
    async def cancelled_inside():
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    @tool
    async def work() -> str:
        """Work."""
        await cancelled_inside()
        return "never"

    async def model(messages):
        if where == "model":
            await cancelled_inside()
        if turn_of(messages) > 0:
            return (
                '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'
            )
        return '{"thought": "", "action": "work", "args": "{}"}'

    agent = Agent(model, tools=[work])

    def run():
        return asyncio.run(agent.run("go")) if wait else agent.run_sync("go")

    if where == "tool":
        result = run()
        assert result.tickets[0].error == "Error calling tool 'work': CancelledError."
    else:
        with pytest.raises(ModelError, match="CancelledError"):
            run()


def test_a_task_that_was_cancelled_before_can_work_on():
    @tool
    async def stubborn() -> str:
        """Be stubborn."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "no"
        return "never"

    reply = "<thoughts>x</thoughts><output>{}</output>".format
    replies = [
        reply('{"type": "CALL", "route": "/stubborn", "payload": {}, "description": "d"}'),
        reply('{"type": "RETURN", "value": 1}'),
    ]

    def model(messages):
        return replies[turn_of(messages)]

    agent = Agent(
        model, protocol=TicketProtocol(grace=0), tools=[stubborn], on_open_tickets="cancel"
    )

    async def cleanup():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            first = await agent.run("go")
            second = await agent.run("go")
            return first.value, second.value, asyncio.current_task().cancelling()

    async def main():
        task = asyncio.create_task(cleanup())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(main()) == (1, 1, 1)


def test_what_a_call_leaves_behind_is_no_part_of_it():
    left = []

    @tool
    async def begin() -> str:
        """Begin."""

        async def later():
            await asyncio.sleep(0.05)
            return await inner.run("later")

        left.append(asyncio.create_task(later()))
        return "begun"

    inner = Agent(lambda messages: FINISH)
    calls = ['{"thought": "", "action": "begin", "args": "{}"}', FINISH]
    outer = Agent(lambda messages: calls[turn_of(messages)], tools=[begin])

    async def main():
        await outer.run("go")
        return await left[0]

    assert asyncio.run(main()).run.log[0].parent_run is None
