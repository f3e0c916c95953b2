"""Event loops that watch no descriptors, as the default one of Windows: a thread waits for them."""

import asyncio
import os
import socket
import sys
import threading
import time

import pytest

from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip._threads import descriptors
from callslip._threads.descriptors import unwatch, watch
from scripted import act, finish


class LoopWithoutReaders(asyncio.SelectorEventLoop):
    def add_reader(self, *_):
        raise NotImplementedError

    def remove_reader(self, *_):
        raise NotImplementedError


def run(main):
    with asyncio.Runner(loop_factory=LoopWithoutReaders) as runner:
        return runner.run(main)


@tool
async def double(number: int) -> int:
    """Double a number."""
    await asyncio.sleep(0)
    return 2 * number


def agent_of(store):
    return Agent(
        ScriptedModel([act("double", number=21), finish("42")]), tools=[double], store=store
    )


@pytest.fixture
def store(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        yield store


async def many_runs(store, count):
    async def one():
        async with agent_of(store).stream("go") as stream:
            kinds = [event.kind async for event in stream]
        return kinds[-1], stream.result.value

    runs = await asyncio.gather(*(agent_of(store).run("go") for _ in range(count)))
    streams = await asyncio.gather(*(one() for _ in range(count)))
    assert [result.value for result in runs] == ["42"] * count
    assert streams == [("run_finished", "42")] * count


def is_quiet():
    """Whether nothing is watched, soon."""
    until = time.monotonic() + 10
    while descriptors._only._watched and time.monotonic() < until:
        time.sleep(0.01)
    return not descriptors._only._watched


def test_runs_wait_for_their_store(store):
    run(many_runs(store, 25))
    assert len(store.runs(status="finished")) == 50
    assert is_quiet()


def test_loops_in_many_threads_share_a_store(store):
    threads = [threading.Thread(target=run, args=(many_runs(store, 5),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert len(store.runs(status="finished")) == 80
    assert is_quiet()


def test_a_function_is_called_as_long_as_there_is_something_to_read():
    async def main():
        loop = asyncio.get_running_loop()
        reading, writing = socket.socketpair()
        with reading, writing:
            read, three = [], asyncio.Event()

            def take(prefix):
                read.append(prefix + reading.recv(1))
                if len(read) == 3:
                    three.set()

            watch(loop, reading.fileno(), take, b"-")
            writing.send(b"abc")
            await asyncio.wait_for(three.wait(), 10)
            unwatch(loop, reading.fileno())
            writing.send(b"d")
            await asyncio.sleep(0.1)
            assert read == [b"-a", b"-b", b"-c"]

    run(main())
    assert is_quiet()


def test_a_loop_that_ends_and_a_descriptor_that_is_closed_disturb_no_other():
    async def leave(reading):
        watch(asyncio.get_running_loop(), reading.fileno(), int)

    left, to_left = socket.socketpair()
    closed, other_end = socket.socketpair()
    run(leave(left))
    run(leave(closed))
    to_left.send(b"x")
    closed.close()
    test_a_function_is_called_as_long_as_there_is_something_to_read()
    for one in (left, to_left, other_end):
        one.close()


def test_a_function_that_raises_is_called_again():
    async def main():
        loop = asyncio.get_running_loop()
        told = []
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        reading, writing = socket.socketpair()
        with reading, writing:
            twice = asyncio.Event()

            def take():
                byte = reading.recv(1)
                if byte == b"b":
                    twice.set()
                raise ValueError(byte.decode())

            watch(loop, reading.fileno(), take)
            writing.send(b"a")
            writing.send(b"b")
            await asyncio.wait_for(twice.wait(), 10)
            unwatch(loop, reading.fileno())
        return told

    assert run(main()) == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_thread_of_its_own(store):
    run(many_runs(store, 1))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            test_a_function_is_called_as_long_as_there_is_something_to_read()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
