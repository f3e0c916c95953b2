"""Parts of replies, given to a function of the program as they arrive."""

import asyncio
import logging

import pytest

from callslip import Agent, Context, Delta, UsageError, tool
from callslip.events import Progress
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, turns, until, working
from scripted import turn_of

pytestmark = pytest.mark.timeout(120)


def streaming(*replies, size=3, gate=None):
    """A model that says these in turn, a few characters at once."""

    async def model(messages):
        reply = replies[min(turn_of(messages), len(replies) - 1)]
        for start in range(0, len(reply), size):
            yield reply[start : start + size]
            if gate is not None and start + size >= len(reply) - 30:
                await gate.wait()

    return model


def answer_in(items):
    return "".join(item.text for item in items if isinstance(item, Delta.Answer))


async def test_a_reply_is_seen_while_it_is_written(web, database):
    seen = []
    gate = asyncio.Event()

    async def relay(run_id, item):
        seen.append((run_id, item))

    agent = Agent(streaming(finish("a long answer"), gate=gate), name="clerk")
    async with working(database, agent, relay=relay):
        fleet = Fleet(web)
        run_id = await fleet.submit("clerk", "?")
        await until(lambda: "a long ans" in answer_in(item for _, item in seen), "it is relayed")
        assert not any(event.kind == "model_replied" for event in web.run(run_id).log)
        gate.set()
        await fleet.result(run_id, timeout=LONG)
        await until(lambda: answer_in(item for _, item in seen) == "a long answer")
    assert {one for one, _ in seen} == {run_id}


async def test_child_runs_and_reports_of_tools_are_relayed_too(web):
    seen = []

    async def relay(run_id, item):
        seen.append((run_id, item))

    @tool
    def render(context: Context) -> str:
        """Render."""
        context.progress(1, 2)
        return "rendered"

    artist = Agent(streaming(call("render"), finish("a picture")), tools=[render], name="artist")
    boss = Agent(
        turns(call("artist", task="Render."), finish("seen")),
        tools=[artist.as_tool(description="Renders.")],
        name="boss",
    )
    fleet = Fleet(web, [boss], relay=relay)
    run_id = await fleet.submit("boss", "?")
    assert await fleet.drive(run_id) == "over"
    of_child = [item for one, item in seen if one == f"{run_id}.T1"]
    assert answer_in(of_child) == "a picture"
    assert [item.done for item in of_child if isinstance(item, Progress)] == [1]
    assert [item for one, item in seen if isinstance(item, Progress)] == [
        item for item in of_child if isinstance(item, Progress)
    ]


async def test_its_errors_are_logged_once_and_hurt_no_run(web, caplog):
    calls = []

    async def relay(run_id, item):
        calls.append(item)
        raise ConnectionError("redis is away")

    agent = Agent(streaming(finish("one"), size=1), name="clerk")
    fleet = Fleet(web, [agent], relay=relay)
    for _ in range(2):
        run_id = await fleet.submit("clerk", "?")
        with caplog.at_level(logging.WARNING, logger="callslip.fleet"):
            caplog.clear()
            assert await fleet.drive(run_id) == "over"
        assert (await fleet.result(run_id)).value == "one"
        assert [record.message for record in caplog.records] == [
            "the relay failed; later failures of it are not logged"
        ]
    assert len(calls) > 2


async def test_a_relay_that_hangs_holds_up_no_run_and_loses_the_oldest(database, caplog):
    seen = []
    gate = asyncio.Event()

    async def relay(run_id, item):
        seen.append(item)
        await gate.wait()

    # Each letter of the answer is a part of its own: more than are kept.
    answer = "".join(chr(ord("a") + number % 26) for number in range(3000))
    agent = Agent(streaming(finish(answer), size=1), name="clerk")
    with caplog.at_level(logging.WARNING, logger="callslip.fleet"):
        async with working(database, agent, relay=relay) as worker:
            run_id = await worker.submit("clerk", "?")
            assert (await worker.result(run_id, timeout=LONG)).value == answer
            gate.set()
            await until(lambda: answer_in(seen[1:]).endswith(answer[-100:]))
    relayed = answer_in(seen[1:])
    assert 900 <= len(relayed) <= 1000
    assert relayed == answer[-len(relayed) :]
    # One part was in the hands of the function; all others were put together.
    assert len(seen) < 10
    (record,) = [one for one in caplog.records if "slower than the replies" in one.message]
    assert "more than 1000 parts" in record.message


def test_a_relay_that_is_no_function_is_refused(web):
    with pytest.raises(UsageError, match="expected relay as an async function: got 'redis'"):
        Fleet(web, relay="redis")
