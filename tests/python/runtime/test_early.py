"""Calls that start before their reply is whole: what the model is not told does not count."""

import asyncio
import contextlib

import pytest

from callslip import (
    Agent,
    Limits,
    ModelError,
    TicketStore,
    replay,
    tool,
)
from scripted import block, results_of, turn_of

GOOD = block(("a", "look", {"at": 1}), ("b", "note", {"text": "x"}))
BROKEN = GOOD.replace('"note"', '"nota"')
CUT = GOOD.partition('{"call_id": "b"')[0]


class Desk:
    """Tools that count, and a model that streams replies."""

    def __init__(self, replies, *, fails=False, lost=()):
        self.looks = 0
        self.ended = asyncio.Event()
        self.replies = replies
        self.lost = set(lost)

        @tool(readonly=True)
        async def look(at: int) -> str:
            """Look."""
            self.looks += 1
            self.ended.set()
            if fails:
                raise ValueError("not there")
            return "seen"

        @tool
        def note(text: str) -> str:
            """Note."""
            return text

        self.tools = [look, note]

    async def model(self, messages):
        turn = turn_of(messages)
        reply = self.replies[min(turn, len(self.replies) - 1)]
        self.ended.clear()
        before, call, rest = reply.partition('{"call_id": "b"')
        yield before
        if call:
            # The call that starts early has ended before the rest comes, if it is made.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), 0.5)
            await asyncio.sleep(0)
        if turn in self.lost or not rest:
            self.lost.discard(turn)
            if call:
                raise ConnectionError("lost")
        yield call + rest

    def agent(self, store=None, **options):
        return Agent(
            self.model, protocol="chatty", tools=self.tools, python=False, store=store, **options
        )


def run(desk, store=None, **options):
    async def main():
        return await desk.agent(store, **options).run("go")

    return asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("refusals", [1, 3])
def test_a_block_put_right_is_made_whatever_was_refused_before(refusals, fails):
    desk = Desk([BROKEN] * refusals + [GOOD, "done"], fails=fails)
    result = run(desk, limits=Limits(max_repeats=2, max_violations=5))
    assert result.value == "done"
    assert result.run.violations == refusals
    assert desk.looks == refusals + 1
    told = results_of(result.messages[-2])
    assert told["b"] == "x"
    assert ("not there" in told["a"]) if fails else (told["a"] == "seen")
    # What has come of the first tries is nowhere told.
    said = [message["content"] for message in result.messages if message["role"] == "user"]
    assert sum("seen" in text or "not there" in text for text in said) == 1
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("fails", [False, True])
def test_a_reply_that_was_lost_does_not_count(fails, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite", durability="memory") as store:
        desk = Desk([GOOD, "done"], fails=fails, lost=[0])
        for _ in range(3):
            desk.lost.add(0)
            with pytest.raises(ModelError):
                if store.runs():
                    asyncio.run(desk.agent(store).resume(store.runs()[0].run_id))
                else:
                    run(desk, store, limits=Limits(max_repeats=2))
        (kept,) = store.runs()
        store.compact(kept.run_id)
        desk.lost.clear()
        agent = desk.agent(store, limits=Limits(max_repeats=2))
        result = asyncio.run(agent.resume(kept.run_id))
        assert result.value == "done"
        assert result.run.violations == 0
        assert desk.looks == 4


def test_what_the_model_was_told_counts():
    """A call that started early, of a reply that stands, failed: it is not made again."""
    desk = Desk([GOOD, GOOD, "done"], fails=True)
    result = run(desk)
    assert (desk.looks, result.run.violations) == (1, 1)
    desk = Desk([GOOD, GOOD, GOOD, "done"])
    result = run(desk, limits=Limits(max_repeats=2))
    assert (desk.looks, result.run.violations) == (2, 1)


def test_a_name_of_a_refused_block_means_what_it_meant_before():
    first = block(("a", "look", {"at": 1}), ("b", "note", {"text": "x"}))
    refused = block(("a", "look", {"at": 2}), ("b", "nota", {"text": "x"}))
    use = block(("c", "note", {"text": "$a"}), ("b", "note", {"text": "y"}))

    class Looking(Desk):
        def __init__(self, replies):
            super().__init__(replies)

            @tool(readonly=True)
            async def look(at: int) -> str:
                """Look."""
                self.looks += 1
                self.ended.set()
                return f"seen {at}"

            self.tools[0] = look

    desk = Looking([first, refused, use, "done"])
    result = run(desk)
    assert desk.looks == 2
    assert results_of(result.messages[-2])["c"] == "seen 1"
