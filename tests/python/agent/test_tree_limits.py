"""Limits of a tree of runs: what is below a run draws from its account."""

import asyncio
import json

import pytest

from callslip import (
    Agent,
    LimitExceeded,
    Limits,
    ModelReply,
    Role,
    TicketProtocol,
    replay,
    tool,
)
from callslip._runtime import sessions
from scripted import (
    act,
    block,
    call,
    delegate,
    finish,
    give,
    spawn,
    task_of,
    turn_of,
    wait,
    wait_for,
)

USAGE = {"input_tokens": 8, "output_tokens": 2, "cost": 0.5}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def costly(reply):
    """A model each of whose replies costs 10 tokens and 0.5."""

    async def model(messages):
        given = reply(messages)
        if hasattr(given, "__await__"):
            given = await given
        return ModelReply(given, "stop", USAGE)

    return model


def below(run):
    yield run
    for child in run.children:
        yield from below(child)


def assert_replays(run):
    for one in below(run):
        assert one.finished
        assert replay(one).export() == one.export()


def tokens_of(usage):
    return usage.input_tokens + usage.output_tokens


def test_usage_is_summed_over_the_tree():
    def reply(messages):
        if task_of(messages) == "part":
            return [call("/add", {"a": 1, "b": 1}), give("ok")][turn_of(messages)]
        return [delegate("part"), wait("T1"), give("ok")][turn_of(messages)]

    result = asyncio.run(Agent(costly(reply), protocol="ticket", tools=[add]).run("whole"))
    assert (tokens_of(result.usage), tokens_of(result.total_usage)) == (30, 50)
    assert (result.usage.cost, result.total_usage.cost) == (1.5, 2.5)
    assert_replays(result.run)


@pytest.mark.parametrize("child_id", ["7" * 16, "0" * 15 + "1", "e" * 16])
def test_usage_of_a_run_that_a_tool_began_is_summed_whatever_its_id(monkeypatch, child_id):
    inner = Agent(costly(lambda messages: finish("ok")), name="inner")

    @tool
    async def nested() -> str:
        """Nested."""
        monkeypatch.setattr(sessions, "new_run_id", lambda: child_id)
        return str((await inner.run("part")).value)

    outer = Agent(
        costly(lambda messages: [act("nested"), finish("ok")][turn_of(messages)]), tools=[nested]
    )
    result = asyncio.run(outer.run("whole"))
    assert [run.id for run in result.run.children] == [child_id]
    assert (tokens_of(result.usage), tokens_of(result.total_usage)) == (20, 30)


@pytest.mark.parametrize("limit", [{"tokens": 100}, {"cost": 5.0}])
def test_children_draw_from_their_parent_s_account(limit):
    def reply(messages):
        turn = turn_of(messages)
        if task_of(messages).startswith("Your role"):
            if "The limit of this run is reached" in messages[-1]["content"]:
                return "cut"
            return block((f"c{turn}", "add", {"a": turn, "b": 1}))
        if turn == 0:
            calls = [spawn(name, name) for name in "abc"]
            return block(*calls, wait_for("$a", "$b", "$c"))
        return "the end"

    agent = Agent(
        costly(reply),
        protocol="chatty",
        delegate=True,
        tools=[add],
        limits=Limits(turns=40, **limit),
    )
    result = asyncio.run(agent.run("go"))
    assert (result.value, result.stop_reason) == ("the end", "limit")
    # Each child has one last turn beyond the limit, and so has the root.
    assert 100 <= tokens_of(result.total_usage) <= 100 + 4 * 10
    assert [child.stop_reason for child in result.run.children] == ["limit"] * 3
    noted = [event for event in result.run.children[0].log if event.kind == "noted"]
    assert (noted[0].note, noted[0].limit) == ("exhausted", next(iter(limit)))
    assert_replays(result.run)


def test_a_child_s_own_limit_is_smaller():
    def reply(messages):
        if task_of(messages).startswith("Your role"):
            return block((f"c{turn_of(messages)}", "add", {"a": turn_of(messages), "b": 1}))
        return [block(spawn("a", "x", "A"), wait_for("$a")), "the end"][turn_of(messages)]

    agent = Agent(
        costly(reply),
        protocol="chatty",
        tools=[add],
        roles={"A": Role(limits=Limits(tokens=30))},
    )
    result = asyncio.run(agent.run("go"))
    assert result.stop_reason == "finished"
    assert tokens_of(result.run.children[0].usage) == 40


def test_tickets_are_reserved_in_the_whole_tree():
    def reply(messages):
        turn = turn_of(messages)
        if task_of(messages).startswith("Your role"):
            if "The limit of this run is reached" in messages[-1]["content"]:
                return "cut"
            return block(*[(f"c{turn}{n}", "add", {"a": turn, "b": n}) for n in range(3)])
        calls = [spawn(name, name) for name in "ab"]
        return [block(*calls, wait_for("$a", "$b")), "the end"][turn]

    agent = Agent(
        costly(reply), protocol="chatty", delegate=True, tools=[add], limits=Limits(tickets=12)
    )
    result = asyncio.run(agent.run("go"))
    # 3 of its own, and 3 blocks of 3 below it: a fourth block does not fit any more.
    assert sum(len(run.tickets) for run in below(result.run)) == 12
    assert_replays(result.run)


def grows(messages):
    """Each run of a task gives two more to others."""
    script = [
        delegate(f"{task_of(messages)}0"),
        delegate(f"{task_of(messages)}1"),
        wait("T1"),
        wait("T2"),
        give("ok"),
    ]
    if "The limit of this run is reached" in messages[-1]["content"]:
        return give("cut")
    return script[min(turn_of(messages), 4)]


def test_the_number_of_runs_is_limited_in_the_whole_tree():
    agent = Agent(
        costly(grows), protocol=TicketProtocol(grace=0), limits=Limits(runs=9, depth=None)
    )
    result = asyncio.run(agent.run("x"))
    assert sum(1 for _ in below(result.run)) == 10
    assert_replays(result.run)


def test_on_limit_raise_names_the_limit_of_the_tree():
    agent = Agent(
        costly(grows),
        protocol=TicketProtocol(grace=0),
        limits=Limits(runs=0),
        on_limit="raise",
    )
    with pytest.raises(LimitExceeded, match="runs") as caught:
        asyncio.run(agent.run("x"))
    assert caught.value.limit == "runs"


def test_the_time_of_the_root_ends_all_below():
    async def reply(messages):
        if task_of(messages) == "part":
            await asyncio.sleep(30)
        return [delegate("part"), wait("T1"), give("cut")][turn_of(messages)]

    agent = Agent(costly(reply), protocol=TicketProtocol(grace=0), limits=Limits(seconds=2))
    result = asyncio.run(agent.run("whole"))
    assert (result.value, result.stop_reason) == ("cut", "limit")
    assert result.run.children[0].stop_reason == "cancelled"
    assert_replays(result.run)


def test_a_resumed_tree_remembers_what_was_spent(store):
    crash = True

    def reply(messages):
        if task_of(messages) == "part":
            return [call("/add", {"a": 1, "b": 1}), give("ok")][turn_of(messages)]
        if turn_of(messages) == 2 and crash:
            raise ConnectionError("no line")
        return [delegate("part"), wait("T1"), delegate("again"), give("cut")][turn_of(messages)]

    agent = Agent(
        costly(reply),
        protocol=TicketProtocol(),
        tools=[add],
        store=store,
        limits=Limits(tokens=45),
    )
    with pytest.raises(Exception, match="no line"):
        asyncio.run(agent.run("whole"))
    crash = False
    kept = next(run for run in store.runs() if run.parent_run is None)
    result = asyncio.run(agent.resume(kept.run_id))
    # 20 of its own and 20 of its child were spent; the reply that delegates once more is 10.
    assert (result.value, result.stop_reason) == ("cut", "limit")
    assert tokens_of(result.usage) == 40


def test_what_a_tool_runs_by_hand_draws_from_the_account_too():
    inner = Agent(costly(lambda _: finish("in")), name="inner")

    @tool
    async def ask(n: int) -> str:
        """Ask."""
        return (await inner.run(f"question {n}")).value

    def reply(messages):
        if "The limit of this run is reached" in messages[-1]["content"]:
            return finish("cut")
        return act("ask", n=turn_of(messages))

    agent = Agent(costly(reply), tools=[ask], limits=Limits(tokens=60))
    result = asyncio.run(agent.run("go"))
    assert result.stop_reason == "limit"
    assert tokens_of(result.usage) == 40
    assert_replays(result.run)


def test_limits_of_the_tree_can_be_none():
    limits = Limits(runs=None, depth=None, tickets=None)
    assert json.loads(limits._to_json())["runs"] is None
    with pytest.raises(ValueError, match="depth"):
        Limits(depth=-1)
