"""Who has decided on a call: kept in the log, shown to people, and told to no model."""

import asyncio
import json

import pytest

from callslip import Agent, ScriptedModel, TicketStore, UsageError, replay, tool
from callslip.events import Approved, TicketCompleted
from hostile import Page
from scripted import act, finish

NAME = "Ann \u202eO'Hara <ann@example.org>"


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


SCRIPT = [act("pay", amount=5), finish()]


def agent_on(store=None, script=SCRIPT):
    return Agent(ScriptedModel(script), tools=[pay], store=store)


def decided(decide, store=None):
    async def main():
        async with agent_on(store).stream("Pay.") as stream:
            async for _ in stream:
                for ticket in stream.awaiting_approval:
                    decide(stream, ticket)
        return stream.result

    return asyncio.run(asyncio.wait_for(main(), 60))


def left_waiting(store):
    async def main():
        run = agent_on(store).start("Pay.")
        async for event in run.watch():
            if getattr(event, "needs_approval", False):
                break
        return run.id

    return asyncio.run(asyncio.wait_for(main(), 60))


def approve(run, ticket="T1", by=NAME):
    run.approve(ticket, by=by)


def deny(run, ticket="T1", by=NAME):
    run.deny(ticket, "too much", by=by)


DECISIONS = pytest.mark.parametrize("decide", [approve, deny])


def names_of(run):
    return [event.by for event in run.log if isinstance(event, Approved | TicketCompleted)]


@DECISIONS
def test_the_name_is_in_the_log_the_trace_and_the_page_and_not_with_the_model(decide):
    result = decided(decide)
    run = result.run
    assert names_of(run) == ([NAME, None] if decide is approve else [NAME])
    (ticket,) = run.trace().tickets
    assert ticket.approval.by == NAME
    assert "d by Ann ⟨U+202E⟩O'Hara <ann@example.org> after" in Page(run.to_html()).text
    assert "O'Hara" not in "".join(one["content"] for one in result.messages)
    assert replay(run).export() == run.export()


@DECISIONS
@pytest.mark.one_process
def test_the_name_is_kept_where_no_process_works_on_the_run(decide, store):
    run = store.run(left_waiting(store))
    decide(run)
    assert NAME in names_of(store.run(run.id))
    result = agent_on(store, [finish()]).resume_sync(run.id)
    assert result.tickets[0].outcome == ("ok" if decide is approve else "denied")
    assert result.run.trace().tickets[0].approval.by == NAME
    copy = TicketStore()
    copied = copy.run(copy.import_run(result.run.export()))
    assert names_of(copied) == names_of(result.run)


@DECISIONS
def test_a_compacted_log_has_the_name(decide, store):
    run = decided(decide, store).run
    store.compact(run.id)
    approval = store.run(run.id).trace().tickets[0].approval
    assert (approval.decision, approval.by) == (
        "approved" if decide is approve else "denied",
        NAME,
    )


@DECISIONS
def test_nobody_is_named_by_default(decide):
    run = decided(lambda stream, ticket: decide(stream, ticket, by=None)).run
    assert "by" not in {name for line in run.export().splitlines() for name in fields_of(line)}
    assert run.trace().tickets[0].approval.by is None


def fields_of(line):
    """Return the names of all fields of a record."""
    found = []
    json.loads(line, object_hook=found.extend)
    return found


@DECISIONS
@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("", "blank"),
        (" \n", "blank"),
        (7, "got 7"),
        (b"ann", "to be text"),
        ("a\ud800", "surrogate"),
    ],
)
def test_what_is_no_name_is_refused_and_nothing_is_decided(decide, by, says, store):
    run = store.run(left_waiting(store))
    with pytest.raises(UsageError, match=says):
        decide(run, by=by)
    assert [ticket.outcome for ticket in run.tickets] == [None]
    assert store.tickets(awaiting_approval=True)


@pytest.mark.one_process
def test_the_first_of_two_is_named(store):
    run = store.run(left_waiting(store))
    approve(run, by=" ann ")
    with pytest.raises(UsageError, match="already"):
        deny(run, by="ben")
    assert names_of(store.run(run.id)) == ["ann"]
