"""Values right at a border: the last one on this side, and the first one on the other."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import (
    Agent,
    Limits,
    ModelChunk,
    ModelReply,
    ScriptedModel,
    Usage,
    tool,
)
from scripted import act, asked, block, call_once, finish, turn_of

SHOWN = 40


@pytest.mark.parametrize("size", [SHOWN - 1, SHOWN, SHOWN + 1])
@pytest.mark.parametrize("kind", ["text", "json"])
@pytest.mark.parametrize("protocol", ["react", "chatty"])
def test_a_result_of_exactly_result_bytes_is_shown_whole(protocol, kind, size):
    # `[1,1,…,1]` has an odd number of bytes, `[11,1,…,1]` an even one.
    numbers = [11 if size % 2 == 0 else 1, *[1] * ((size - 3) // 2)]
    result = "x" * size if kind == "text" else numbers
    written = result if kind == "text" else str(numbers).replace(" ", "")
    assert len(written) == size

    @tool
    def give_back() -> object:
        """Give it."""
        return result

    agent = Agent(
        ScriptedModel(call_once(protocol, "give_back", {})),
        protocol=protocol,
        tools=[give_back],
        limits=Limits(result_bytes=SHOWN),
    )
    told = asked(agent.run_sync("go").messages)[2]["content"]
    assert (written in told) == (size <= SHOWN)
    assert ("[cut:" in told) == (size > SHOWN)


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        (Usage(-1, -1, -1, -0.5), Usage(0, 0, 0, 0.0)),
        (Usage(0, 0, 0, 0.0), Usage(0, 0, 0, 0.0)),
        (Usage(1, 2, 1, 0.5), Usage(1, 2, 1, 0.5)),
    ],
)
def test_usage_below_zero_counts_as_none(said, counted):
    result = Agent(lambda _: ModelReply(finish(), usage=said)).run_sync("go")
    assert result.usage == counted


@pytest.mark.parametrize(("empty", "is_counted"), [(0, True), (7, True), (8, True), (9, False)])
def test_the_usage_is_awaited_for_eight_chunks_after_the_move(empty, is_counted):
    async def model(messages):
        yield ModelChunk(finish())
        # Only now it is certain that the move is over.
        yield ModelChunk("\nObservation: ")
        for _ in range(empty):
            yield ModelChunk("")
        yield ModelChunk("", usage=Usage(3, 4, 0, 0.0))

    result = asyncio.run(Agent(model).run("go"))
    assert result.usage.input_tokens == (3 if is_counted else 0)


def test_text_after_a_move_that_is_over_stops_the_stream_at_once():
    taken = []

    async def model(messages):
        for piece in (finish(), "Observation: ", "more", "and more"):
            taken.append(piece)
            yield piece

    asyncio.run(Agent(model).run("go"))
    assert taken == [finish(), "Observation: ", "more"]


def test_a_readonly_call_that_needs_approval_does_not_start_early():
    made = []

    @tool(readonly=True, needs_approval=True)
    def look(at: int) -> str:
        """Look."""
        made.append(at)
        return "seen"

    reply = block(("a", "look", {"at": 1}), ("b", "look", {"at": 2}))
    first, comma, rest = reply.partition(', {"call_id": "b"')

    async def model(messages):
        if turn_of(messages):
            yield "done"
            return
        yield first
        # The first call is whole: one that needs no approval would start here.
        await asyncio.sleep(0.1)
        assert made == []
        yield comma + rest

    async def main():
        async with Agent(model, protocol="chatty", tools=[look]).stream("go") as run:
            async for _ in run:
                assert made == [1][: len(made)]
                for ticket in run.awaiting_approval:
                    if ticket.id == "T1":
                        run.approve(ticket)
                    else:
                        run.deny(ticket, "no")
        return run.result

    assert asyncio.run(main()).value == "done"
    assert made == [1]


def test_a_library_that_gives_the_loop_of_all_runs_its_own_threads_harms_no_other_run():
    @tool
    async def work() -> str:
        """Work."""
        threads = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(threads)
        threads.shutdown()
        return await asyncio.to_thread(lambda: "worked")

    agent = Agent(lambda messages: [act("work"), finish()][turn_of(messages)], tools=[work])
    assert [agent.run_sync("go").tickets[0].outcome for _ in range(2)] == ["ok", "ok"]
