"""Runs that are cancelled and continued at once, from another thread: the last message counts."""

import asyncio
import random
import time
from contextlib import suppress

import pytest

from callslip import Agent, TicketStore, tool
from callslip.errors import ProtocolError, UsageError
from callslip.models import ModelChunk
from random_cases import seeds
from scripted import act, block, call, finish, give

SEEDS = 50
BROKEN = {"chatty": "<tool>[}</tool>", "react": "{", "ticket": "<output>{</output>"}
ANSWERS = {"chatty": "done", "react": finish(), "ticket": give("done")}


def calls(protocol, number):
    """A reply whose calls no other reply has made."""
    if protocol == "chatty":
        return block(("a", "fetch", {"number": number}), ("b", "fetch", {"number": -number}))
    if protocol == "react":
        return act("fetch", number=number)
    return call("POST /fetch", {"number": number})


def model_of(protocol, chance):
    """A model of any kind that calls, answers once there is a result, or breaks the protocol."""
    breaks = chance.random() < 0.3

    def reply(messages):
        if breaks:
            return BROKEN[protocol]
        if "fetched" in messages[-1]["content"]:
            return ANSWERS[protocol]
        return calls(protocol, chance.randrange(1, 10**9))

    async def in_a_moment(messages):
        await asyncio.sleep(chance.choice([0, 0, 0.0005]))
        return reply(messages)

    async def in_pieces(messages):
        text = reply(messages)
        for at in range(0, len(text), 9):
            await asyncio.sleep(0)
            yield text[at : at + 9]
        yield ModelChunk(finish_reason="stop")

    return chance.choice([reply, in_a_moment, in_pieces])


def tool_of(chance):
    @tool
    async def fetch(number: int) -> str:
        """Fetch a number."""
        await asyncio.sleep(0)
        return f"fetched {number}"

    @tool(name="fetch")
    def fetch_at_once(number: int) -> str:
        """Fetch a number."""
        return f"fetched {number}"

    return chance.choice([fetch, fetch_at_once])


def disturb(run, chance, said):
    """Cancel the run and say something at once, some times."""
    for number in range(chance.randint(1, 3)):
        time.sleep(chance.random() * 0.002)
        # One that has ended is driven by nobody before the next message is awaited.
        with suppress(UsageError):
            run.cancel()
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.0005)
        said.append(run.send(f"message {number}"))


async def last_answer(agent, chance):
    run, said = agent.start("task"), []
    first = asyncio.ensure_future(run)
    await asyncio.to_thread(disturb, run, chance, said)
    ending = "done"
    try:
        assert (await asyncio.wait_for(said[-1], 60)).value == "done"
    except ProtocolError:
        ending = "broken"
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    return run, f"message {len(said) - 1}", ending


@pytest.mark.random_cases
@pytest.mark.parametrize("place", ["memory", "file"])
@pytest.mark.parametrize("protocol", ["chatty", "react", "ticket"])
def test_the_last_message_is_answered(protocol, place, tmp_path):
    endings = set()
    for seed in seeds(SEEDS):
        chance = random.Random(f"{seed} {protocol} {place}")
        with TicketStore(None if place == "memory" else tmp_path / f"{seed}.sqlite") as store:
            model, fetch = model_of(protocol, chance), tool_of(chance)
            agent = Agent(model, protocol=protocol, tools=[fetch], store=store)
            run, last, ending = asyncio.run(last_answer(agent, chance))
            endings.add(ending)
            texts = [event.text for event in run.log if event.kind == "user_said"]
            assert (seed, texts.count(last)) == (seed, 1)
            assert (seed, run.finished) == (seed, True)
            open_calls = [one.id for one in run.tickets if one.status == "IN_PROGRESS"]
            assert (seed, open_calls) == (seed, [])
            # What was asked before the last message is no reply to it.
            asked = [event.turn for event in run.log if event.kind == "model_asked"]
            replied = [event.turn for event in run.log if event.kind == "model_replied"]
            assert (seed, sorted(set(replied))) == (seed, replied)
            assert set(replied) <= set(asked)
    assert endings == {"done", "broken"}
