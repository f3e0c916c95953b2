"""Resuming: what was done is not done again, whatever the process was at when it ended."""

import asyncio
import json
from pathlib import Path

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Context,
    Event,
    Fail,
    Limits,
    ModelError,
    NotDone,
    ProtocolError,
    ReactProtocol,
    StoreError,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from scripted import asked, turn_of

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def call(name, **arguments):
    return json.dumps({"thought": "", "action": name, "args": json.dumps(arguments)})


class Work:
    """Tools that say what they did, and a model that answers by what it has seen."""

    def __init__(self, replies, **options):
        self.replies = replies
        self.asked = 0
        self.did = []

        @tool(**options)
        def work(n: int, context: Context) -> str:
            """Work."""
            self.did.append((n, context.key))
            return f"worked {n}"

        self.tool = work

    def __call__(self, messages):
        self.asked += 1
        return self.replies[turn_of(messages)]

    def agent(self, store, **options):
        return Agent(self, tools=[self.tool], store=store, **options)


def logged(work, **options):
    """The log of a whole run."""
    return work.agent(None, **options).run_sync("go").run


def until(run, kind, nth=1):
    """The log up to the nth event of a kind, as a process leaves it that ends there."""
    lines = run.export().splitlines(keepends=True)
    ends = [number for number, event in enumerate(run.log) if event.kind == kind]
    return "".join(lines[: ends[nth - 1] + 1])


def crashed(log):
    store = TicketStore()
    store.import_run(log)
    return store


def test_a_run_goes_on_after_its_last_reply_with_nothing_done_twice():
    run = logged(Work([call("work", n=1), call("work", n=2), FINISH]))
    for cut in range(1, len(run.log)):
        log = "".join(run.export().splitlines(keepends=True)[:cut])
        work = Work([call("work", n=1), call("work", n=2), FINISH], effect="idempotent")
        # The log is that of a tool whose calls may be repeated.
        store = crashed(log.replace('"effect":"once"', '"effect":"idempotent"'))
        result = work.agent(store).resume_sync(run.id)
        assert result.value == "done"
        assert [ticket.result for ticket in result.tickets] == ["worked 1", "worked 2"]
        done = log.count('"ticket_completed"')
        assert [n for n, _ in work.did] == [1, 2][done:]
        assert work.asked == 3 - log.count('"model_replied"')
        assert result.messages == run.messages


def test_a_call_in_flight_of_a_once_tool_is_in_doubt_and_not_repeated():
    replies = [call("work", n=1), FINISH]
    run = logged(Work(replies))
    work = Work(replies)
    result = work.agent(crashed(until(run, "ticket_opened"))).resume_sync(run.id)
    assert work.did == []
    assert result.value == "done"
    ticket = result.tickets[0]
    assert (ticket.status, ticket.outcome) == ("COMPLETED", "in_doubt")
    assert "whether it took effect is not known" in asked(result.messages)[2]["content"]
    assert asked(result.messages)[2]["content"] == f"Observation: {ticket.error}"


def test_a_call_in_doubt_may_be_made_again_by_the_model():
    replies = [call("work", n=1), call("work", n=1), FINISH]
    run = logged(Work(replies))
    work = Work(replies)
    result = work.agent(crashed(until(run, "ticket_opened"))).resume_sync(run.id)
    assert [ticket.outcome for ticket in result.tickets] == ["in_doubt", "ok"]
    assert len(work.did) == 1


@pytest.mark.parametrize("effect", ["idempotent", "pure"])
def test_other_calls_in_flight_are_repeated_with_the_same_key(effect):
    replies = [call("work", n=1), FINISH]
    first = Work(replies, effect=effect)
    run = logged(first)
    second = Work(replies, effect=effect)
    result = second.agent(crashed(until(run, "ticket_opened"))).resume_sync(run.id)
    assert second.did == first.did == [(1, f"{run.id}/T1")]
    assert result.tickets[0].result == "worked 1"


def reconciled(reconcile, *, wait=False):
    replies = [call("work", n=1), FINISH]

    def unused(context):
        raise AssertionError("nothing is asked before a crash")

    run = logged(Work(replies, reconcile=unused))
    work = Work(replies, reconcile=reconcile)
    agent = work.agent(crashed(until(run, "ticket_opened")))
    result = asyncio.run(agent.resume(run.id)) if wait else agent.resume_sync(run.id)
    assert result.value == "done"
    return work, result.tickets[0]


@pytest.mark.parametrize("wait", [False, True])
def test_reconcile_is_asked_what_came_of_a_call(wait):
    asked = []

    def took_effect(context):
        asked.append(context.key)
        return "worked before"

    async def took_effect_async(context):
        await asyncio.sleep(0)
        return took_effect(context)

    for reconcile in (took_effect, took_effect_async):
        work, ticket = reconciled(reconcile, wait=wait)
        assert work.did == []
        assert (ticket.outcome, ticket.result) == ("ok", "worked before")
        assert asked[-1] == f"{ticket.run_id}/T1"


@pytest.mark.parametrize("wait", [False, True])
def test_reconcile_may_say_that_nothing_happened(wait):
    def returns(context):
        return NotDone()

    def raises(context):
        raise NotDone

    async def raises_later(context):
        raise NotDone

    for reconcile in (returns, raises, raises_later):
        work, ticket = reconciled(reconcile, wait=wait)
        assert len(work.did) == 1
        assert (ticket.outcome, ticket.result) == ("ok", "worked 1")


def test_reconcile_may_fail_in_its_own_words_or_by_accident():
    def fails(context):
        raise Fail("the order was refused")

    _, ticket = reconciled(fails)
    assert ticket.outcome == "error"
    assert ticket.error == "Error calling tool 'work': the order was refused."

    def breaks(context):
        raise ConnectionError("no network")

    work, ticket = reconciled(breaks)
    assert (work.did, ticket.outcome) == ([], "in_doubt")
    assert "ConnectionError: no network" in ticket.error


def test_reconcile_is_looked_at_when_the_tool_is_made():
    def wrong(key, context):
        return None

    with pytest.raises(UsageError, match="with the Context of the call and nothing else"):
        tool(reconcile=wrong)(lambda: None)


def test_reconcile_belongs_to_calls_that_are_not_repeated():
    with pytest.raises(UsageError, match="reconcile is for effect='once'"):
        tool(effect="pure", reconcile=lambda context: None)(lambda: None)


def test_a_finished_run_gives_its_result_again():
    store = TicketStore()
    work = Work([call("work", n=1), FINISH])
    agent = work.agent(store)
    result = agent.run_sync("go")
    again = agent.resume_sync(result.run.id)
    assert (again.value, again.success) == (result.value, result.success)
    assert again.run.export() == result.run.export()
    assert (work.asked, len(work.did)) == (2, 1)


def test_a_run_that_broke_the_protocol_raises_again_and_is_not_asked_again():
    work = Work(["no", "no", "no", "no", "no"])
    agent = work.agent(TicketStore(), limits=Limits(max_violations=1))
    with pytest.raises(ProtocolError) as first:
        agent.run_sync("go")
    with pytest.raises(ProtocolError) as second:
        agent.resume_sync(first.value.run.id)
    assert str(second.value) == str(first.value)
    assert work.asked == 2


def test_a_run_whose_model_failed_goes_on_where_it_was():
    replies = [call("work", n=1), None, FINISH]
    work = Work(replies)
    agent = work.agent(TicketStore())

    def failing(messages):
        reply = Work.__call__(work, messages)
        if reply is None:
            raise ConnectionError("rate limit")
        return reply

    agent = Agent(failing, tools=[work.tool], store=agent.store)
    with pytest.raises(ModelError, match="rate limit") as caught:
        agent.run_sync("go")
    run_id = caught.value.run.id
    assert agent.resume_all_sync() == {}  # it is over, and goes on only where somebody says so
    replies[1] = FINISH
    result = agent.resume_sync(run_id)
    assert result.value == "done"
    assert len(work.did) == 1
    kinds = [event.kind for event in result.run.log]
    assert kinds.count("run_finished") == 2
    assert replay(result.run).finished


def test_a_cancelled_run_goes_on_with_its_open_calls_cancelled():
    started = asyncio.Event()

    @tool
    async def slow(n: int) -> str:
        """Be slow."""
        started.set()
        await asyncio.sleep(60)
        return "never"

    replies = [call("slow", n=1), FINISH]

    def model(messages):
        return replies[turn_of(messages)]

    agent = Agent(model, tools=[slow], store=TicketStore())

    async def main():
        task = asyncio.create_task(agent.run("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        run = caught.value.run
        assert run.stop_reason == "cancelled"
        assert [ticket.outcome for ticket in run.tickets] == ["cancelled"]
        return await agent.resume(run.id)

    result = asyncio.run(main())
    assert result.value == "done"
    assert [ticket.outcome for ticket in result.tickets] == ["cancelled"]


def test_parallel_calls_go_on_one_by_one():
    block = (
        '<tool>[{"call_id": "a", "tool_name": "work", "arguments": {"n": 1}},'
        ' {"call_id": "b", "tool_name": "work", "arguments": {"n": 2}},'
        ' {"call_id": "c", "tool_name": "join", "arguments": {"left": "$a", "right": "$b"}}]</tool>'
    )

    @tool(effect="pure")
    def join(left: str, right: str) -> str:
        """Join."""
        return f"{left} and {right}"

    def agent(work, store):
        return Agent(work, protocol="chatty", tools=[work.tool, join], store=store)

    work = Work([block, "Done."], effect="idempotent")
    run = agent(work, None).run_sync("go").run
    for nth in (1, 2, 3):
        again = Work([block, "Done."], effect="idempotent")
        result = agent(again, crashed(until(run, "ticket_completed", nth))).resume_sync(run.id)
        assert result.tickets[2].result == "worked 1 and worked 2"
        assert len(again.did) == max(0, 2 - nth)
        assert again.asked == 1


def test_a_call_that_started_early_is_dropped_with_its_reply():
    block = '<tool>[{"call_id": "a", "tool_name": "look", "arguments": {"n": 1}}, '
    rest = '{"call_id": "b", "tool_name": "look", "arguments": {"n": 2}}]</tool>'
    looked = []

    @tool(readonly=True)
    def look(n: int) -> str:
        """Look."""
        looked.append(n)
        return f"saw {n}"

    def model(messages):
        if turn_of(messages) > 0:
            return "Done."
        return iter([block, rest])

    agent = Agent(model, protocol=ChattyProtocol(), tools=[look])
    run = agent.run_sync("go").run
    assert [event.kind for event in run.log][:3] == ["run_started", "model_asked", "ticket_opened"]
    store = crashed(until(run, "ticket_opened"))
    looked.clear()
    agent = Agent(model, protocol=ChattyProtocol(), tools=[look], store=store)
    result = agent.resume_sync(run.id)
    assert [ticket.outcome for ticket in result.tickets] == ["cancelled", "ok", "ok"]
    assert sorted(looked) == [1, 2]
    assert replay(result.run).messages == result.messages


def test_background_calls_go_on():
    def output(text):
        return f"<thoughts>x</thoughts>\n<output>{text}</output>"

    replies = [
        output('{"type": "CALL", "route": "/work", "payload": {"n": 1}, "description": "one"}'),
        output('{"type": "AWAIT", "ticket_id": "T1"}'),
        output('{"type": "LOAD_TICKET", "ticket_id": "T1"}'),
        output('{"type": "RETURN", "value": {"ok": true}}'),
    ]
    protocol = TicketProtocol(grace=0)
    run = logged(Work(replies, effect="pure"), protocol=protocol)
    for cut in range(1, len(run.log)):
        log = "".join(run.export().splitlines(keepends=True)[:cut])
        work = Work(replies, effect="pure")
        result = work.agent(crashed(log), protocol=protocol).resume_sync(run.id)
        assert result.value == {"ok": True}
        assert [ticket.status for ticket in result.tickets] == ["COMPLETED"]
        assert len(work.did) == 1 - log.count('"ticket_completed"')


def test_another_agent_is_refused_with_the_difference():
    run = logged(Work([call("work", n=1), FINISH]))
    store = crashed(until(run, "ticket_opened"))

    @tool
    def work(n: str) -> str:
        """Work."""
        return n

    @tool
    def other() -> None:
        """Another."""

    def refused(**options):
        with pytest.raises(UsageError) as caught:
            Agent(lambda messages: FINISH, store=store, **options).resume_sync(run.id)
        return str(caught.value)

    mine = Work([]).tool
    assert "has the protocol react, this agent chatty" in refused(protocol="chatty", tools=[mine])
    assert "the tool 'work' is gone: keep it until" in refused(tools=[other])
    assert "the tool 'work' takes less: /n takes no integer any more" in refused(tools=[work])
    changed = Work([], effect="pure").tool
    assert "the tool 'work' has the effect 'pure' now, and 'once' in" in refused(tools=[changed])
    strict = refused(protocol=ReactProtocol(strict=True), tools=[mine])
    assert 'option repairs is "default" in the run and "strict" here' in strict
    # Nothing was lost by trying.
    result = Work([None, FINISH]).agent(store).resume_sync(run.id)
    assert result.value == "done"


def test_a_new_prompt_and_new_limits_do_not_hinder_a_run():
    run = logged(Work([call("work", n=1), FINISH]), instructions="I am A.")
    work = Work([None, FINISH])
    agent = work.agent(
        crashed(until(run, "ticket_completed")),
        instructions="I am B.",
        limits=Limits(turns=1),
    )
    result = agent.resume_sync(run.id)
    assert result.value == "done"
    assert "I am A." in result.messages[0]["content"]


def test_resume_all_goes_on_with_the_agents_own_runs():
    store = TicketStore()
    replies = [call("work", n=1), FINISH]
    ids = []
    for name in ("one", "one", "two"):
        run = logged(Work(replies, effect="pure"), name=name)
        ids.append(store.import_run(until(run, "ticket_opened")))
    broken = logged(Work(replies), name="one")
    broken_id = store.import_run(until(broken, "ticket_opened"))
    work = Work(replies, effect="pure")
    results = work.agent(store, name="one").resume_all_sync()
    assert set(results) == {*ids[:2], broken_id}
    assert [results[run_id].value for run_id in ids[:2]] == ["done", "done"]
    assert isinstance(results[broken_id], UsageError)
    assert [run.run_id for run in store.runs(status="running", agent="two")] == [ids[2]]
    others = Work(replies, effect="pure")
    results = asyncio.run(others.agent(store, name="two").resume_all())
    assert results[ids[2]].value == "done"
    assert others.agent(store, name="two").resume_all_sync() == {}


def test_a_run_under_way_is_not_resumed_beside_itself():
    store = TicketStore()
    seen = []

    @tool
    async def look(context: Context) -> str:
        """Look."""
        with pytest.raises(StoreError, match="in progress"):
            await agent.resume(context.run_id)
        seen.append(await agent.resume_all())
        with pytest.raises(StoreError, match="in progress"):
            store.delete(context.run_id)
        return "seen"

    replies = [call("look"), FINISH]

    def model(messages):
        return replies[turn_of(messages)]

    agent = Agent(model, tools=[look], store=store)
    assert agent.run_sync("go").value == "done"
    assert seen == [{}]


def test_resuming_needs_a_store_and_a_run():
    work = Work([FINISH])
    with pytest.raises(UsageError, match="store='runs.sqlite'"):
        work.agent(None).resume_sync("x")
    with pytest.raises(StoreError, match="there is no run x"):
        work.agent(TicketStore()).resume_sync("x")


def test_a_stream_of_a_kept_run_tells_everything(tmp_path: Path):
    work = Work([call("work", n=1), FINISH])

    async def main():
        async with work.agent(tmp_path / "runs.sqlite").stream("go") as run:
            events = [event async for event in run if isinstance(event, Event)]
        return events, run.result

    events, result = asyncio.run(main())
    assert events == result.run.log
    assert result.value == "done"
