"""What functions of the user's raise: what futures and tasks take for theirs, too."""

import asyncio
import concurrent.futures
import inspect
import subprocess
import sys
import threading
import time

import pytest

from callslip import (
    Agent,
    BoundedModel,
    LimitExceeded,
    Limits,
    ModelError,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    tool,
)
from scripted import act, block, delegate, finish, give, task_of, turn_of, wait

# Of runs that are to stop a loop.
pytestmark = pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")

SOON = 20.0


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class NumericError(Exception):
    def __str__(self):
        return 5  # noqa: PLE0307  # at fault


class CancellingError(Exception):
    def __str__(self):
        raise asyncio.CancelledError


class FieldlessError(Exception):
    @property
    def body(self):
        raise RuntimeError("no body")


ERRORS = [
    StopIteration(),
    StopIteration("no more replies"),
    StopAsyncIteration(),
    concurrent.futures.CancelledError(),
    asyncio.CancelledError(),
    GeneratorExit(),
    TimeoutError(),
    EOFError(),
    MemoryError(),
    MuteError(),
    FieldlessError(),
    NumericError(),
    CancellingError(),
    ValueError("half a pair: \ud83d"),
    ExceptionGroup("\udc00", [MuteError()]),
]


class Closing:
    """A stream that fails at its end."""

    def __init__(self, error):
        self.error = error
        self.chunks = iter(["a", "b"])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.chunks)

    def close(self):
        raise self.error


class ClosingAsync:
    def __init__(self, error):
        self.error = error
        self.chunks = iter(["a", "b"])

    def __aiter__(self):
        return self

    async def __anext__(self):
        for chunk in self.chunks:
            return chunk
        raise StopAsyncIteration

    async def aclose(self):
        raise self.error


def model_of(error, kind):
    def whole(messages):
        raise error

    async def whole_async(messages):
        raise error

    async def later_async(messages):
        await asyncio.sleep(0)
        raise error

    def stream(messages):
        yield "{"
        raise error

    async def stream_async(messages):
        yield "{"
        await asyncio.sleep(0)
        raise error

    return {
        "whole": whole,
        "whole async": whole_async,
        "later async": later_async,
        "coroutine": lambda messages: later_async(messages),  # noqa: PLW0108  # not known to be async
        "stream": stream,
        "stream async": stream_async,
        "close": lambda messages: Closing(error),
        "close async": lambda messages: ClosingAsync(error),
    }[kind]


async def streamed(agent):
    async with agent.stream("go") as run:
        async for _ in run:
            pass
    return run.result


async def inside(agent):
    return agent.run_sync("go")


DRIVERS = {
    "run": lambda agent: asyncio.run(agent.run("go")),
    "stream": lambda agent: asyncio.run(streamed(agent)),
    "run_sync": lambda agent: agent.run_sync("go"),
    "run_sync in a loop": lambda agent: asyncio.run(inside(agent)),
}


def soon(work, *args):
    """Call in a thread: what hangs must not hang the tests. Returns or raises as it does."""
    came: list[object] = []

    def perform():
        try:
            came.append((work(*args), None))
        except BaseException as error:
            came.append((None, error))

    thread = threading.Thread(target=perform, daemon=True)
    thread.start()
    thread.join(SOON)
    assert came, "it hangs"
    value, error = came[0]
    if error is not None:
        raise error
    return value


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "kind",
    [
        "whole",
        "whole async",
        "later async",
        "coroutine",
        "stream",
        "stream async",
        "close",
        "close async",
    ],
)
def test_whatever_a_model_raises_is_a_model_error_at_once(kind, driver):
    for number, error in enumerate(ERRORS):
        model = model_of(error, kind)
        # Each error under a bound and a limit or without them; over all of them each of the four.
        one = BoundedModel(model, 1) if number % 2 else model
        agent = Agent(one, limits=Limits(seconds=60) if number % 4 > 1 else None)
        with pytest.raises(ModelError) as caught:
            soon(DRIVERS[driver], agent)
        assert caught.value.run is not None
        assert caught.value.run.stop_reason == "model_error"
        assert caught.value.__cause__ is error
        assert type(error).__name__ in str(caught.value)


@pytest.mark.parametrize("driver", DRIVERS)
def test_replies_that_run_out_are_a_model_error(driver):
    replies = iter([act("look", at=1)])

    @tool
    def look(at: int) -> int:
        """Look."""
        return at

    agent = Agent(lambda messages: next(replies), tools=[look])
    with pytest.raises(ModelError, match="the model failed in turn 2: StopIteration$") as caught:
        soon(DRIVERS[driver], agent)
    assert [ticket.result for ticket in caught.value.run.tickets] == [1]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_childs_model_that_raises_fails_the_child_only(driver):
    for error in ERRORS:
        for kind in ("whole", "later async", "stream"):
            fails = model_of(error, kind)

            def model(messages, fails=fails):
                if task_of(messages) == "part":
                    return fails(messages)
                return [delegate("part"), wait("T1"), give("went on")][turn_of(messages)]

            agent = Agent(model, protocol=TicketProtocol(grace=0))
            result = soon(DRIVERS[driver], agent)
            assert result.value == "went on"
            assert "The agent failed: ModelError" in result.tickets[0].error


class RefusingError(ModelError):
    def __init__(self):
        """Without the run that the class above takes."""


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_models_own_model_error_gets_the_run(driver):
    def model(messages):
        raise RefusingError

    with pytest.raises(RefusingError) as caught:
        soon(DRIVERS[driver], Agent(model))
    assert caught.value.run.stop_reason == "model_error"


@pytest.mark.parametrize("driver", DRIVERS)
def test_whatever_a_history_policy_raises_is_a_usage_error(driver):
    for error in ERRORS:

        def policy(exchanges, error=error):
            raise error

        model = ScriptedModel([act("look"), finish()])

        @tool
        def look() -> str:
            """Look."""
            return "x"

        with pytest.raises(UsageError, match=r"history=…\) failed: \w+") as caught:
            soon(DRIVERS[driver], Agent(model, tools=[look], history=policy))
        assert caught.value.run is not None


def named(name, function):
    """A tool without arguments for the model."""
    if inspect.iscoroutinefunction(function):

        async def call_async() -> str:
            return await function()

        return tool(name=name, description="Fail.")(call_async)

    def call() -> str:
        return function()

    return tool(name=name, description="Fail.")(call)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_a_tool_raises_is_told(driver, asynchronous):
    for error in ERRORS:
        if isinstance(error, GeneratorExit):
            continue  # it ends what it is raised in, as SystemExit does

        def fail(error=error):
            raise error

        async def fail_async(error=error):
            raise error

        failing = named("fail", fail_async if asynchronous else fail)
        agent = Agent(ScriptedModel([act("fail"), finish("told")]), tools=[failing])
        result = soon(DRIVERS[driver], agent)
        assert result.value == "told"
        (ticket,) = result.tickets
        assert ticket.outcome == "error"
        ticket.error.encode()


class Abort(BaseException):
    """Neither an Exception nor what ends a program."""


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_group_of_a_tool_is_raised_as_it_is_by_every_driver(asynchronous, beside):
    for leaves in ([Abort()], [Abort(), ValueError("x")]):
        group = BaseExceptionGroup("of the tool", leaves)

        def fail(group=group):
            raise group

        async def fail_async(group=group):
            raise group

        def look() -> str:
            """Look."""
            return "x"

        calls = [("a", "fail", {})] + [("b", "look", {})] * beside
        for drive in DRIVERS.values():
            failing = named("fail", fail_async if asynchronous else fail)
            store = TicketStore()
            agent = Agent(
                ScriptedModel([block(*calls), "done"]),
                protocol="chatty",
                tools=[failing, look],
                store=store,
            )
            with pytest.raises(BaseExceptionGroup) as caught:
                soon(drive, agent)
            assert caught.value is group
            assert [run.stop_reason for run in store.runs()] == ["cancelled"]


@pytest.mark.parametrize("driver", ["run", "run_sync"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_a_reconcile_function_raises_leaves_the_call_in_doubt(
    driver, asynchronous, tmp_path
):
    for number, error in enumerate(ERRORS):
        if asynchronous and isinstance(error, GeneratorExit):
            continue  # it ends what it is raised in, as SystemExit does
        calls = []
        pay = paying(error, calls, asynchronous=asynchronous)
        with TicketStore(tmp_path / f"{number}.sqlite", durability="memory") as store:
            log = under_way(Agent(ScriptedModel([act("pay"), finish()]), tools=[pay], store=store))
        with TicketStore() as store:
            run_id = store.import_run(log)
            agent = Agent(ScriptedModel([finish("told")]), tools=[pay], store=store)
            if driver == "run":
                result = soon(asyncio.run, agent.resume(run_id))
            else:
                result = soon(agent.resume_sync, run_id)
            assert [ticket.outcome for ticket in result.tickets] == ["in_doubt"]
        assert calls == [1]


def paying(error, calls, *, asynchronous):
    """A tool during which the process ends, and what is asked after that fails."""

    def asked(context):
        raise error

    async def asked_async(context):
        await asyncio.sleep(0)
        raise error

    @tool(reconcile=asked_async if asynchronous else asked)
    def pay() -> str:
        """Pay."""
        calls.append(1)
        raise SystemExit

    return pay


def under_way(agent):
    """The log of a run as a process leaves it that ends during its first call."""
    with pytest.raises(SystemExit):
        agent.run_sync("go")
    (run,) = agent.store.runs()
    lines = agent.store.run(run.run_id).export().splitlines()
    opened = next(at for at, line in enumerate(lines) if "ticket_opened" in line)
    return "\n".join(lines[: opened + 1])


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_nobody_has_cancelled_but_the_caller_is_the_callers(driver):
    """Ctrl-C, or a cancel, that comes while the run's own task is running."""
    if driver.startswith("run_sync"):
        pytest.skip("run_sync has no task of its own")

    async def model(messages):
        await asyncio.sleep(0)
        return finish()

    async def main(agent):
        task = asyncio.current_task()
        task.cancel()
        try:
            if driver == "run":
                await agent.run("go")
            else:
                await streamed(agent)
        except asyncio.CancelledError:
            assert task.uncancel() == 0
            # It is not told once more.
            await asyncio.sleep(0)
            return "cancelled"
        return "went on"

    for limits in (None, Limits(seconds=60)):
        assert soon(lambda limits=limits: asyncio.run(main(Agent(model, limits=limits)))) == (
            "cancelled"
        )


def test_a_cancel_at_any_moment_of_a_run_is_the_callers():
    """At each step that the run's task takes, whoever takes it."""

    @tool
    async def look(at: int) -> int:
        """Look."""
        await asyncio.sleep(0)
        return at

    async def model(messages):
        await asyncio.sleep(0)
        return [act("look", at=1), act("look", at=2), finish()][turn_of(messages)]

    async def main(at, limits, cancelled):
        task = asyncio.current_task()
        left = at

        def trace(frame, event, arg):
            nonlocal left
            left -= 1
            if left == 0:
                cancelled.append(task.cancel())
                sys.setprofile(None)

        agent = Agent(model, tools=[look], limits=limits)
        sys.setprofile(trace)
        try:
            result = await agent.run("go")
            sys.setprofile(None)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return "cancelled"
        finally:
            sys.setprofile(None)
        return result.value

    def steps(limits):
        for at in range(1, 100_000, 7):
            cancelled = []
            ended = asyncio.run(main(at, limits, cancelled))
            if not cancelled:
                assert ended == "done"
                return at
            assert ended == "cancelled", at
        raise AssertionError

    for limits in (None, Limits(seconds=60)):
        assert soon(steps, limits) > 50


CTRL_C = """
import asyncio, os, signal
from callslip import Agent, ScriptedModel

async def model(messages):
    await asyncio.sleep(0)
    return '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'

async def main():
    signal.raise_signal(signal.SIGINT)
    await Agent(model).run("go")

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_the_runs_own_code_runs_ends_the_program():
    ended = subprocess.run(
        [sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "interrupted\n", ended.stderr


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_stream_that_stalls_is_ended_in_time(driver):
    for bounded in (False, True):
        stalls, closed = threading.Event(), threading.Event()

        def model(messages, stalls=stalls, closed=closed):
            try:
                yield '{"thought": "'
                stalls.wait(60)
                yield "x"
            finally:
                closed.set()

        one = BoundedModel(model, 2) if bounded else model
        agent = Agent(one, limits=Limits(seconds=0.3), on_limit="raise")
        begun = time.monotonic()
        with pytest.raises(LimitExceeded):
            soon(DRIVERS[driver], agent)
        assert time.monotonic() - begun < 30
        assert not closed.is_set()
        stalls.set()
        assert closed.wait(60), "the stream is not closed once its thread has come back"


NEVER = """
import asyncio, sys, time, threading
from callslip import Agent, Limits, ScriptedModel, tool

@tool
def stay() -> str:
    "Stay."
    time.sleep(600)
    return ""

call = '{"thought": "", "action": "stay", "args": "{}"}'
agent = Agent(ScriptedModel([call]), tools=[stay], limits=Limits(seconds=0.1), on_limit="raise")
try:
    asyncio.run(agent.run("go")) if sys.argv[1] == "run" else agent.run_sync("go")
except Exception as error:
    print(type(error).__name__, flush=True)
"""


@pytest.mark.parametrize("driver", ["run", "run_sync"])
def test_a_tool_that_never_returns_keeps_no_program_from_ending(driver):
    ended = subprocess.run(
        [sys.executable, "-c", NEVER, driver],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("LimitExceeded\n", 0), ended.stderr


def test_without_an_event_loop_of_asyncio_nothing_begins():
    """As under trio, whose tasks asyncio does not know."""
    with TicketStore() as store:
        agent = Agent(ScriptedModel([finish()]), store=store)

        async def stream():
            async with agent.stream("go"):
                pass

        for coroutine in (agent.run("go"), stream(), agent.resume("x"), agent.resume_all()):
            with pytest.raises(UsageError, match="trio.to_thread.run_sync"):
                coroutine.send(None)
        assert store.runs() == []
        assert agent.run_sync("go").value == "done"


SCARCE = """
import resource, sys
from callslip import Agent, ScriptedModel, tool

size = 1

@tool
def read() -> str:
    "Read."
    return "x" * size

call = '{"thought": "", "action": "read", "args": "{}"}'
end = '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'
agent = Agent(ScriptedModel([call, end]), tools=[read])
agent.run_sync("once, so that all is imported")
size = int(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]),) * 2)
model = ScriptedModel([call, end])
result = Agent(model, tools=[read]).run_sync("go")
ticket = result.tickets[0]
print(ticket.outcome, "MemoryError" in (ticket.error or ""))
try:
    Agent(lambda messages: "x" * size).run_sync("go")
except Exception as error:
    print(type(error).__name__, error.run is not None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("times", [3, 5, 7])
def test_a_value_without_room_in_memory_is_an_error_and_no_end(times):
    size = 20_000_000
    ended = subprocess.run(
        [sys.executable, "-c", SCARCE, str(size), str(times * size)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["error True", "ModelError True"]
