"""`Pending`: a call has begun, and its result comes later, by a key that others know."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import Agent, Limits, Pending, ScriptedModel, TicketStore, UsageError, replay, tool
from scripted import act, block, finish

LONG = 30
made = []


@tool(effect="once")
def render(script: str) -> int | Pending:
    """Render."""
    made.append(script)
    return Pending(script)


@tool(effect="once")
async def render_later(script: str) -> "dict[str, int] | Pending":
    """Render."""
    made.append(script)
    return Pending(script)


@pytest.fixture(autouse=True)
def nothing_made():
    made.clear()


def agent_of(store, *calls, **options):
    script = [*(calls or (act("render", script="job-1"),)), finish()]
    return Agent(ScriptedModel(script), tools=[render, render_later], store=store, **options)


DRIVERS = {
    "async": lambda agent, **options: asyncio.run(
        asyncio.wait_for(agent.run("go", **options), LONG)
    ),
    "sync": lambda agent, **options: agent.run_sync("go", **options),
}


@pytest.fixture(params=DRIVERS)
def drive(request):
    return DRIVERS[request.param]


def awaited(store, count=1):
    until = time.monotonic() + LONG
    while len(tickets := store.tickets(awaiting="result")) < count:
        assert time.monotonic() < until
    return tickets


def run_with(drive, agent, act_on, count=1, **options):
    """Run in a thread, and act from this one once so many calls await results."""
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(drive, agent, **options)
        try:
            act_on(awaited(agent.store, count))
        except BaseException:
            for row in agent.store.runs(status="running"):
                agent.store.run(row.run_id).cancel()
            raise
        return working.result(LONG)


def left_open(store, agent):
    """Return a store with the run as a process that has ended leaves it, and the id of the run."""
    found = []

    def copy(tickets):
        other = TicketStore()
        found.append((other, other.import_run(store.run(tickets[0].run_id).export())))
        store.run(tickets[0].run_id).answer(tickets[0], 1)

    run_with(DRIVERS["async"], agent, copy)
    return found[0]


@pytest.mark.parametrize(("name", "value"), [("render", 7), ("render_later", {"a": 7})])
def test_an_answer_by_the_key_is_the_result(name, value, drive, store):
    def answer(tickets):
        assert [ticket.tool for ticket in tickets] == [name]
        store.answer("job-1", value, by="farm")
        with pytest.raises(UsageError, match="T1, which farm answered already|been answered"):
            store.answer("job-1", value, by="other")

    result = run_with(drive, agent_of(store, act(name, script="job-1")), answer)
    (ticket,) = result.tickets
    assert (result.value, ticket.result, ticket.attempts) == ("done", value, 1)
    assert made == ["job-1"]
    (pending,) = [event for event in result.run.log if event.kind == "ticket_pending"]
    assert (pending.ticket_id, pending.key) == ("T1", "job-1")
    (completed,) = [event for event in result.run.log if event.kind == "ticket_completed"]
    assert completed.by == "farm"
    assert replay(result.run).export() == result.run.export()


def test_a_wrong_answer_names_the_problem_and_the_call_waits(drive, store):
    def answer(tickets):
        assert tickets[0].answers == {"type": "integer"}
        with pytest.raises(UsageError, match="integer"):
            store.answer("job-1", "many")
        store.answer("job-1", error="the farm is full.")

    result = run_with(drive, agent_of(store), answer)
    assert result.tickets[0].error == "Error calling tool 'render': the farm is full."


def answer_at_once(store, count=100):
    """Answer from many threads at once. Returns the values of those that were not refused."""

    def one(number):
        try:
            store.answer("job-1", number, by=f"{number}")
        except UsageError as error:
            return str(error)
        return number

    with ThreadPoolExecutor(count) as pool:
        told = list(pool.map(one, range(count)))
    refused = [words for words in told if isinstance(words, str)]
    assert all("expected a ticket that awaits a result" in words for words in refused), refused
    return [number for number in told if isinstance(number, int)]


def test_of_a_hundred_answers_at_once_one_counts(drive, store):
    counted = []
    agent = agent_of(store)
    result = run_with(drive, agent, lambda tickets: counted.extend(answer_at_once(store)))
    assert [ticket.result for ticket in result.tickets] == counted
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("answered", ["before", "after"])
def test_a_crash_neither_repeats_the_call_nor_loses_its_key(answered, store):
    other, run_id = left_open(store, agent_of(store))
    again = Agent(ScriptedModel([finish()]), tools=[render, render_later], store=other)
    if answered == "before":
        (counted,) = answer_at_once(other)
        result = again.resume_sync(run_id)
    else:
        (counted, result) = resume_and_answer(again, run_id)
    assert (result.tickets[0].result, result.tickets[0].outcome) == (counted, "ok")
    assert made == ["job-1"]
    assert replay(result.run).export() == result.run.export()


def resume_and_answer(agent, run_id):
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(agent.resume_sync, run_id)
        # A decision may come to the log or to the driver.
        (counted,) = answer_at_once(agent.store)
        return counted, working.result(LONG)


def test_a_key_is_of_an_owner_and_an_agent(drive, store):
    def answer(tickets):
        for wrong in ({}, {"owner": "ben"}, {"owner": "ann", "agent": "other"}):
            with pytest.raises(UsageError, match="which none has"):
                store.answer("job-1", 1, **wrong)
        store.answer("job-1", 1, owner="ann")

    result = run_with(drive, agent_of(store), answer, owner="ann")
    assert result.tickets[0].result == 1


def test_a_key_of_another_call_is_refused(drive, store):
    model = ScriptedModel(
        [
            block(("a", "render", {"script": "job-1"})),
            block(("b", "render_later", {"script": "job-1"})),
            "done",
        ]
    )
    agent = Agent(model, protocol="chatty", tools=[render, render_later], store=store)
    result = run_with(drive, agent, lambda tickets: store.answer("job-1", 1))
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "error"]
    assert "the key 'job-1' is that of another call, T1" in result.tickets[1].error


def test_calls_of_one_block_are_answered_in_any_order(drive, store):
    calls = block(("a", "render", {"script": "one"}), ("b", "render_later", {"script": "two"}))
    model = ScriptedModel([calls, "done"])
    agent = Agent(
        model,
        protocol="chatty",
        tools=[render, render_later],
        store=store,
        limits=Limits(seconds=60),
    )

    def answer(tickets):
        store.answer("two", {"a": 2})
        store.answer("one", 1)

    result = run_with(drive, agent, answer, count=2)
    assert [ticket.result for ticket in result.tickets] == [1, {"a": 2}]
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("how", ["erase", "delete", "prune"])
def test_a_key_goes_with_its_run(how, store):
    agent = agent_of(store)
    result = run_with(
        DRIVERS["async"], agent, lambda _: store.answer("job-1", 1, owner="ann"), owner="ann"
    )
    with pytest.raises(UsageError, match="already|answered"):
        store.answer("job-1", 2, owner="ann")
    if how == "erase":
        store.erase(owner="ann")
    elif how == "delete":
        store.delete(result.run.id)
    else:
        store.prune(keep=0)
    with pytest.raises(UsageError, match="which none has"):
        store.answer("job-1", 2, owner="ann")


def test_a_key_is_found_in_a_compacted_run_and_by_another_store(tmp_path):
    path = tmp_path / "runs.sqlite"
    with TicketStore() as first:
        other, run_id = left_open(first, agent_of(first))
        log = other.run(run_id).export()
    with TicketStore(path) as store:
        store.import_run(log)
        store.compact(run_id)
    with TicketStore(path) as store:
        store.answer("job-1", 5, by="farm")
        again = Agent(ScriptedModel([finish()]), tools=[render, render_later], store=store)
        assert again.resume_sync(run_id).tickets[0].result == 5
    with TicketStore() as imported:
        imported.import_run(log)
        imported.answer("job-1", 6)


def test_a_result_that_is_late_is_a_failure(drive, store):
    @tool
    def slow() -> Pending:
        """Take long."""
        return Pending(timeout=0.2)

    agent = Agent(ScriptedModel([act("slow"), finish()]), tools=[slow], store=store)
    (ticket,) = drive(agent).tickets
    assert ticket.error.endswith("TimeoutError: no result within 0.2 seconds.")


def test_a_key_needs_a_store(drive):
    agent = agent_of(None)
    (ticket,) = drive(agent).tickets
    assert ticket.error == (
        "Error calling tool 'render': there is no store to answer the key 'job-1' by."
    )


@pytest.mark.parametrize(("key", "options"), [("", {}), ("x" * 201, {}), ("k", {"timeout": -1})])
def test_wrong_options_are_refused(key, options):
    with pytest.raises(UsageError):
        Pending(key, **options)
