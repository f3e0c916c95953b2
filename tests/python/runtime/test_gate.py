"""The gate: its bound, its turns, that no cancellation loses a slot; and models behind one."""

import asyncio
import contextlib
import functools
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextvars import copy_context
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip import Agent, BoundedModel, ScriptedModel, UsageError
from callslip._threads.gate import Gate, _holds
from callslip.models._call import ModelCall
from random_cases import seeds


def all_free(gate):
    return gate._free == gate.limit and not gate._waiting


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def waiting(gate):
    return sum(len(line) for line in gate._waiting.values())


class Meter:
    """Counts who is inside, from any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self.inside = 0
        self.most = 0
        self.entered = 0

    def __enter__(self):
        with self._lock:
            self.inside += 1
            self.entered += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_):
        with self._lock:
            self.inside -= 1


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2", None])
def test_a_limit_is_a_count(limit):
    with pytest.raises(ValueError, match="^expected concurrency to be a whole number from 1: got"):
        Gate(limit)


@pytest.mark.parametrize("limit", [1, 3])
def test_the_limit_holds_across_loops_and_threads(limit):
    gate, meter = Gate(limit), Meter()

    def thread(number):
        for _ in range(100):
            with gate.held_sync(f"thread {number % 2}"), meter:
                time.sleep(0.0001)

    async def task(number):
        for _ in range(20):
            async with gate.held(f"task {number % 3}"):
                with meter:
                    await asyncio.sleep(0)

    async def tasks():
        await asyncio.gather(*(task(number) for number in range(10)))

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(3)]
    threads += [threading.Thread(target=asyncio.run, args=(tasks(),)) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert not any(one.is_alive() for one in threads)
    assert meter.entered == 3 * 100 + 2 * 10 * 20
    assert meter.most == limit
    assert all_free(gate)


def order_of_entry(arrivals):
    """In which order those of these groups get in that come one after the other."""

    async def watch():
        gate, order = Gate(1), []

        async def call(number, group):
            async with gate.held(group):
                order.append((group, number))

        await gate.enter("first")
        tasks = []
        for number, group in enumerate(arrivals):
            tasks.append(asyncio.create_task(call(number, group)))
            await until(lambda: waiting(gate) == len(tasks))
        gate.leave()
        await asyncio.gather(*tasks)
        assert all_free(gate)
        return order

    return asyncio.run(watch())


def test_a_group_of_many_holds_no_other_up():
    order = order_of_entry(["many"] * 1000 + ["one", "other", "one"])
    assert [group for group, _ in order[:7]] == [
        *("many", "one", "other"),
        *("many", "one"),
        *("many", "many"),
    ]


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_groups_take_turns_and_within_one_who_came_first_goes_first(arrivals):
    order = order_of_entry(arrivals)
    lines = {}
    for number, group in enumerate(arrivals):
        lines.setdefault(group, []).append((group, number))
    expected = []
    while lines:
        expected += [line.pop(0) for line in lines.values()]
        lines = {group: line for group, line in lines.items() if line}
    assert order == expected


def test_a_thread_and_a_task_wait_in_one_line():
    async def watch():
        gate, order = Gate(1), []

        def thread():
            with gate.held_sync("g"):
                order.append("thread")

        async def task():
            async with gate.held("g"):
                order.append("task")

        await gate.enter("g")
        first = asyncio.create_task(task())
        await until(lambda: waiting(gate) == 1)
        second = asyncio.create_task(asyncio.to_thread(thread))
        await until(lambda: waiting(gate) == 2)
        third = asyncio.create_task(task())
        await until(lambda: waiting(gate) == 3)
        gate.leave()
        await asyncio.gather(first, second, third)
        return order

    assert asyncio.run(watch()) == ["task", "thread", "task"]


def test_a_slot_granted_to_a_task_that_is_cancelled_goes_on_to_the_next():
    async def watch():
        gate = Gate(1)
        await gate.enter("g")
        first = asyncio.create_task(gate.enter("g"))
        second = asyncio.create_task(gate.enter("g"))
        await until(lambda: waiting(gate) == 2)
        gate.leave()
        # The slot is the first one's, which has not yet come to know of it.
        assert waiting(gate) == 1
        first.cancel()
        await asyncio.wait_for(second, 60)
        assert first.cancelled()
        gate.leave()
        assert all_free(gate)

    asyncio.run(watch())


def test_waiters_that_are_cancelled_are_not_counted():
    async def watch():
        gate = Gate(1)
        await gate.enter("g")
        tasks = [asyncio.create_task(gate.enter(f"{number % 7}")) for number in range(50)]
        await until(lambda: waiting(gate) == 50)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate._waiting == {}
        gate.leave()
        assert all_free(gate)

    asyncio.run(watch())


@pytest.mark.random_cases
@pytest.mark.parametrize("seed", seeds(20))
def test_random_cancellations_and_timeouts_lose_no_slot(seed):
    chance = random.Random(seed)
    gate, meter = Gate(chance.randint(1, 3)), Meter()

    async def task(group, naps):
        async with gate.held(group):
            with meter:
                for _ in range(naps):
                    await asyncio.sleep(0)

    def thread(group, timeout):
        with contextlib.suppress(TimeoutError), gate.held_sync(group, timeout), meter:
            time.sleep(timeout)

    async def watch():
        tasks = []
        for _ in range(150):
            group = chance.choice("abcd")
            if chance.random() < 0.1:
                pause = chance.random() / 500
                tasks.append(asyncio.create_task(asyncio.to_thread(thread, group, pause)))
            else:
                tasks.append(asyncio.create_task(task(group, chance.randint(0, 3))))
            if chance.random() < 0.5:
                chance.choice(tasks).cancel()
            for _ in range(chance.randint(0, 2)):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: meter.inside == 0 and gate._free == gate.limit)

    asyncio.run(watch())
    assert meter.most <= gate.limit
    assert all_free(gate)


def test_a_timeout_gives_the_place_up():
    gate = Gate(1)
    gate.enter_sync("g")
    for seconds in (0, 0.02):
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=f"no free slot within {seconds:g} seconds"):
            gate.enter_sync("g", seconds)
        assert seconds <= time.monotonic() - began < 30
    assert waiting(gate) == 0
    gate.leave()
    with gate.held_sync("g", 0):
        pass
    assert all_free(gate)


def test_a_timeout_of_the_loop_gives_the_place_up():
    async def watch():
        gate = Gate(1)
        await gate.enter("g")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), gate.held("g"):
                raise AssertionError
        with pytest.raises(TimeoutError), gate.held_sync("g", 0):
            raise AssertionError
        assert waiting(gate) == 0
        assert _holds.get() is None
        gate.leave()
        assert all_free(gate)

    asyncio.run(watch())


def test_an_error_inside_gives_the_slot_back():
    gate = Gate(1)
    with pytest.raises(KeyError), gate.held_sync("g"):
        raise KeyError

    async def call():
        async with gate.held("g"):
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(call())
    assert all_free(gate)


def test_a_call_made_inside_of_a_call_does_not_wait():
    gate, other = Gate(1), Gate(1)

    def inner():
        with gate.held_sync("g", 0), other.held_sync("g", 0):
            assert (gate._free, other._free) == (0, 0)

    async def ainner():
        async with asyncio.timeout(5), gate.held("g"):
            await asyncio.to_thread(inner)

    async def outer():
        async with gate.held("g"):
            async with asyncio.TaskGroup() as group:
                group.create_task(ainner())
                group.create_task(ainner())
            # What is inside does not give the slot away.
            assert gate._free == 0

    asyncio.run(outer())
    with gate.held_sync("g"):
        inner()
        assert gate._free == 0
    assert all_free(gate)
    assert all_free(other)


def test_what_a_call_has_left_running_waits_like_any_other():
    gate = Gate(1)
    with gate.held_sync("g"):
        left = copy_context()

    def enter():
        with gate.held_sync("g", 0):
            pass

    left.run(enter)
    with gate.held_sync("g"):
        copy_context().run(enter)
        with pytest.raises(TimeoutError):
            left.run(enter)
    assert all_free(gate)


def test_a_context_that_waits_is_not_inside():
    async def watch():
        gate = Gate(1)
        seen = []

        async def call():
            async with gate.held("g"):
                seen.append(gate._free)

        await gate.enter("g")
        context = copy_context()
        waiter = asyncio.create_task(call(), context=context)
        await until(lambda: waiting(gate) == 1)
        with pytest.raises(TimeoutError):
            context.run(lambda: gate.held_sync("g", 0).__enter__())
        gate.leave()
        await waiter
        assert seen == [0]
        assert all_free(gate)

    asyncio.run(watch())


def test_tasks_of_a_loop_that_was_closed_hold_nothing_up():
    gate = Gate(1)

    async def inside():
        async with gate.held("g"):
            await asyncio.sleep(60)

    async def later():
        async with gate.held("g"):
            pass

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    tasks = [loop.create_task(inside()), loop.create_task(later())]
    loop.run_until_complete(asyncio.sleep(0))
    assert (gate._free, waiting(gate)) == (0, 1)
    loop.close()
    blocked = threading.Thread(target=asyncio.run, args=(later(),), daemon=True)
    blocked.start()
    # What is collected gives back what it had, and what cannot be woken is passed over.
    tasks.pop(0)
    gc.collect()
    blocked.join(60)
    assert not blocked.is_alive()
    tasks.clear()
    gc.collect()
    assert all_free(gate)


def test_waiting_is_interrupted_at_once():
    code = """
import os, signal, threading, time
from callslip._threads.gate import Gate
# Whoever started the tests may ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
gate = Gate(1)
gate.enter_sync("g")
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    gate.enter_sync("g")
except KeyboardInterrupt:
    assert not gate._waiting
    gate.leave()
    assert gate._free == 1
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers that interrupt")
def test_interrupts_while_a_slot_is_passed_on_lose_none():
    class Interrupted(Exception):  # noqa: N818
        pass

    def interrupt(*_):
        raise Interrupted

    gate, over = Gate(1), threading.Event()

    def other():
        while not over.is_set():
            with gate.held_sync("other"):
                pass

    thread = threading.Thread(target=other)
    before = signal.signal(signal.SIGALRM, interrupt)
    thread.start()
    interrupted = 0
    try:
        for number in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + number % 50 * 1e-5)
                with gate.held_sync("g"):
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        thread.join(60)
    assert not thread.is_alive()
    assert interrupted
    assert all_free(gate)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_all_slots():
    code = """
import os, sys, threading
from callslip._threads.gate import Gate
gate = Gate(2)
gate.enter_sync("g")
inside, over = threading.Event(), threading.Event()
def hold():
    with gate.held_sync("g"):
        inside.set()
        over.wait()
def line_up():
    gate.enter_sync("g")
    gate.leave()
threads = [threading.Thread(target=hold)]
threads[0].start()
inside.wait()
threads.append(threading.Thread(target=line_up))
threads[1].start()
while not gate._waiting:
    pass
locked, forked = threading.Event(), threading.Event()
def lock():
    with gate._lock:
        locked.set()
        forked.wait()
threads.append(threading.Thread(target=lock))
threads[2].start()
locked.wait()
child = os.fork()
if child == 0:
    gate.enter_sync("g", 0)
    gate.enter_sync("g", 0)
    gate.leave()
    gate.leave()
    # Its parent's own.
    gate.leave()
    os._exit(0 if gate._free == 2 and not gate._waiting else 1)
forked.set()
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
gate.leave()
over.set()
for thread in threads:
    thread.join()
assert gate._free == 2
sys.exit(status)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_tells_who_is_there():
    gate = Gate(3)
    with gate.held_sync("g"):
        assert repr(gate) == "<Gate: 1 of 3 inside, 0 waiting>"


# Models behind a gate.


def takes_all(messages, *, grammar=None, **options):
    return repr((grammar, sorted(options)))


takes_all.grammar_form = "lark"


def test_a_bounded_model_is_called_as_the_model_in_it():
    model = BoundedModel(takes_all, concurrency=2)
    call = ModelCall(model)
    assert call.gate is model.gate
    assert (model.gate.limit, BoundedModel(takes_all).gate.limit) == (2, 8)
    assert call.accepts == {"stop", "seed", "max_tokens", "grammar"}
    assert (call.grammar_form, call.is_async) == ("lark", False)
    assert call([], grammar="g", seed=1, stop=None) == "('g', ['seed'])"
    assert repr(model) == f"BoundedModel({takes_all!r}, concurrency=2)"
    assert ModelCall(BoundedModel(ScriptedModel([], is_async=True))).is_async
    # Calling it does not go through the gate, which its caller may hold already.
    model.gate.enter_sync("g")
    model.gate.enter_sync("g")
    assert call([]) == "(None, [])"


def test_a_gate_is_found_behind_what_wraps_the_model():
    model = BoundedModel(takes_all)
    assert ModelCall(ModelCall(model)).gate is model.gate
    assert ModelCall(functools.partial(functools.partial(model, seed=1), stop=[])).gate is (
        model.gate
    )
    assert ModelCall(takes_all).gate is None

    class Other:
        gate = SimpleNamespace(limit=1)

        def __call__(self, messages):
            return "x"

    assert ModelCall(Other()).gate is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: BoundedModel(takes_all, 0),
            "expected concurrency to be a whole number from 1: got 0",
        ),
        (
            lambda: BoundedModel(BoundedModel(takes_all)),
            "the model is bounded already: pass the inner model to BoundedModel",
        ),
        (
            lambda: BoundedModel(5),
            "expected a callable from messages to text as the model: got int: pass a callable, or "
            'wrap a client with as_model(client, model="...")',
        ),
    ],
)
def test_what_cannot_be_bounded(make, text):
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == text


def test_an_agent_with_a_bounded_model():
    reply = '{"thought": "t", "action": "FINISH", "final_answer": "x", "task_successful": true}'
    model = BoundedModel(ScriptedModel([reply, reply], chunk_size=5), concurrency=1)
    agent = Agent(model)
    assert agent.run_sync("a").value == "x"
    assert asyncio.run(agent.run("b")).value == "x"
    assert all_free(model.gate)
