"""The guard against repetition, and what the user says: "try again" is not a loop of the model."""

import asyncio
import json
from pathlib import Path

import pytest

from callslip import Agent, Event, LimitExceeded, ScriptedModel, TicketStore, replay, tool
from scripted import act, block, call_once, finish, patient

PROTOCOLS = ["react", "chatty", "ticket", "native"]
KEPT = Path(__file__).parents[2] / "data" / "logs" / "version_7" / "conversation.jsonl"


def talk(agent, first, *more, **options):
    """The results of a run, one for each message."""
    results = [agent.run_sync(first, **options)]
    for message in more:
        results.append(results[-1].run.send_sync(message))
    return results


def turns_of(protocol, calls, name="fetch", **arguments):
    """Replies that make the same call in each turn of the user."""
    replies = []
    for number in range(1, calls + 1):
        replies += [
            # Only the text of a reply names tickets.
            reply.replace("T1", f"T{number}") if isinstance(reply, str) else reply
            for reply in call_once(protocol, name, arguments)
        ]
    return replies


def refusals(run):
    codes = [json.loads(line)["event"].get("violated") for line in run.export().splitlines()]
    return [violated["violation"]["code"] for violated in codes if violated]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_that_failed_is_made_again_when_the_user_says_so(protocol, store):
    made = []

    @tool
    def fetch(page: str) -> str:
        """Fetch a page."""
        made.append(page)
        if len(made) < 3:
            raise ValueError("the page is not there")
        return "here it is"

    model = ScriptedModel(turns_of(protocol, 3, page="news"))
    agent = Agent(model, protocol=patient(protocol), tools=[fetch], store=store)
    *_, last = talk(agent, "Read it.", "Try again.", "Again.")
    assert made == ["news"] * 3
    assert [ticket.outcome for ticket in last.tickets] == ["error", "error", "ok"]
    assert refusals(last.run) == []
    assert replay(last.run).export() == last.run.export()
    assert replay(store.run(last.run.id)).export() == last.run.export()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_question_is_looked_up_in_each_turn(protocol):
    made = []

    @tool
    def fetch() -> str:
        """Fetch the weather."""
        made.append(1)
        return "sunny"

    model = ScriptedModel(turns_of(protocol, 7))
    agent = Agent(model, protocol=patient(protocol), tools=[fetch])
    *_, last = talk(agent, "And now?", *["And now?"] * 6)
    assert len(made) == 7
    assert last.value == "done"
    assert refusals(last.run) == []
    assert not any("same result" in message["content"] for message in last.messages[2:])


def test_within_a_turn_the_guard_holds_as_before():
    made = []

    @tool
    def fetch(page: str) -> str:
        """Fetch a page."""
        made.append(page)
        raise ValueError("the page is not there")

    once = act("fetch", page="news")
    model = ScriptedModel([once, once, finish(), once, once, finish()])
    *_, last = talk(Agent(model, tools=[fetch]), "Read it.", "Try again.")
    assert made == ["news"] * 2
    assert refusals(last.run) == ["repeated_after_failure"] * 2


def test_refusals_of_an_earlier_turn_do_not_end_the_run():
    @tool
    def fetch() -> str:
        """Fetch the weather."""
        return "sunny"

    once = act("fetch")
    refused = [once] * 5
    model = ScriptedModel([*refused, finish(), *refused, finish(), *refused, once])
    agent = Agent(model, tools=[fetch])
    *_, last = talk(agent, "And now?", "And now?")
    assert refusals(last.run) == ["repeated"] * 4
    with pytest.raises(LimitExceeded) as error:
        last.run.send_sync("And now?")
    assert error.value.limit == "max_repeats"
    assert refusals(last.run) == ["repeated"] * 7


def test_a_call_that_was_denied_is_asked_for_again():
    paid = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    answers = iter(["not today", True])
    model = ScriptedModel(turns_of("react", 2, "pay", amount=7))
    agent = Agent(model, tools=[pay])
    *_, last = talk(agent, "Pay 7.", "Do it after all.", approve=lambda ticket: next(answers))
    assert paid == [7]
    assert [ticket.outcome for ticket in last.tickets] == ["denied", "ok"]


def test_a_message_to_a_run_under_way_counts_too():
    made = []

    @tool
    def fetch(page: str) -> str:
        """Fetch a page."""
        made.append(page)
        if len(made) == 1:
            raise ValueError("the page is not there")
        return "here it is"

    @tool
    async def wait() -> str:
        """Wait for the user."""
        await said.wait()
        return "done"

    said = asyncio.Event()
    replies = [act("fetch", page="news"), act("wait"), act("fetch", page="news"), finish()]

    async def main():
        async with Agent(ScriptedModel(replies), tools=[fetch, wait]).stream("Read it.") as run:
            async for event in run:
                if (
                    isinstance(event, Event)
                    and event.kind == "ticket_opened"
                    and event.tool == "wait"
                ):
                    run.send("It is there now.")
                    said.set()
        return run.result.run

    run = asyncio.run(main())
    assert made == ["news"] * 2
    assert replay(run).export() == run.export()


def test_calls_side_by_side_are_all_made_again():
    made = []

    @tool
    def fetch(page: str) -> str:
        """Fetch a page."""
        made.append(page)
        raise ValueError("the page is not there")

    both = block(("a", "fetch", {"page": "a"}), ("b", "fetch", {"page": "b"}))
    model = ScriptedModel([both, "neither", both, "neither"])
    *_, last = talk(Agent(model, protocol="chatty", tools=[fetch]), "Read both.", "Again.")
    assert sorted(made) == ["a", "a", "b", "b"]
    assert refusals(last.run) == []


def test_a_run_of_an_earlier_version_keeps_its_guard(tmp_path):
    kept = KEPT.read_text("utf-8")
    assert replay(kept).export() == kept
    made = []

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        made.append(city)
        return "sunny"

    agent = Agent(
        ScriptedModel([act("weather", city="Atlantis"), finish()]),
        tools=[weather],
        name="forecaster",
        store=TicketStore(tmp_path / "runs.db"),
    )
    run_id = agent.store.import_run(kept)
    before = refusals(agent.store.run(run_id))

    async def main():
        return await agent.start(run=run_id, say="Try again.")

    run = asyncio.run(main()).run
    assert made == []
    assert refusals(run) == [*before, "repeated_after_failure"]
