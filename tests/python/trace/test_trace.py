"""Traces: each event stands in one place, and a run is read in any state and of any version."""

import asyncio
import json
from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, TicketStore, tool
from scripted import act, block, call, delegate, finish, give

LOGS = sorted((Path(__file__).parents[2] / "data" / "logs").rglob("*.jsonl"))


def lines_of(log: str):
    """The lines of the events, each with the bytes of parts that it needs before it."""
    groups, before = [], []
    for line in log.splitlines():
        before.append(line)
        if "event" in json.loads(line):
            groups.append(before)
            before = []
    return groups


def places(trace):
    """All positions of events of the run itself."""
    found = [*trace.seqs, *(note.seq for note in trace.notes)]
    for turn in trace.turns:
        found += turn.seqs
        for ticket in turn.tickets:
            found += ticket.seqs
    return sorted(found)


def own_seqs(run):
    return [event.seq for event in run.log]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_event_of_each_prefix_stands_in_one_place(path):
    groups = lines_of(path.read_text("utf-8"))
    for count in range(1, len(groups) + 1):
        store = TicketStore()
        run = store.run(
            store.import_run([line for group in groups[:count] for line in group], trust=True)
        )
        trace = run.trace()
        assert places(trace) == own_seqs(run)
        assert trace.events == count
        json.dumps(trace.to_dict())
    assert (trace.violations, trace.status) == (run.violations, run.status)
    assert [ticket.id for ticket in trace.tickets] == [ticket.id for ticket in run.tickets]
    assert [ticket.error for ticket in trace.tickets if ticket.outcome == "error"] == [
        ticket.error for ticket in run.tickets if ticket.outcome == "error"
    ]


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def rate(code: str) -> float:
    """Look up a rate."""
    return 7.5


def replies(protocol):
    if protocol == "ticket":
        return [call("ratee"), call("rate", {"code": "é€😀"}), give("done")]
    if protocol == "chatty":
        return [block(("a", "ratee", {})), block(("a", "rate", {"code": "é€😀"})), "done"]
    return [act("ratee"), act("rate", code="é€😀"), finish("done")]


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_a_turn_has_its_violation_its_marks_and_the_next_message(protocol):
    agent = Agent(ScriptedModel(replies(protocol)), tools=[rate], protocol=protocol)
    result = agent.run_sync("convert")
    trace = result.trace()
    assert places(trace) == own_seqs(result.run)
    first, second, *_ = trace.turns
    assert first.violation.code == "unknown_tool"
    (mark,) = [mark for mark in first.marks if mark.kind == "violation"]
    assert "ratee" in first.reply[mark.start : mark.end]
    assert "ratee" in first.next_message
    (span,) = [mark for mark in second.marks if mark.kind == "call"]
    assert span.label == "rate"
    assert "rate" in second.reply[span.start : span.end]
    assert '"' not in second.reply[span.end :]
    assert second.violation is None
    assert "7.5" in second.next_message
    assert "convert" in trace.opening[-1].content
    assert (trace.violations, trace.ending.value) == (1, "done")


async def decided(decide):
    agent = Agent(ScriptedModel([act("pay", amount=5), finish("done")]), tools=[pay])
    async with agent.stream("pay") as run:
        async for _ in run:
            if run.awaiting_approval:
                ((_, waiting),) = run.run.trace().awaiting_approval
                assert waiting.approval.requested_at is not None
                decide(run, run.awaiting_approval[0])
    return run.run.trace().tickets[0]


def test_a_call_has_the_decision_of_a_person():
    denied = asyncio.run(decided(lambda run, ticket: run.deny(ticket, "too much")))
    assert (denied.outcome, denied.approval.decision) == ("denied", "denied")
    edited = asyncio.run(decided(lambda run, ticket: run.approve(ticket, arguments={"amount": 3})))
    assert (edited.result, edited.approval.decision) == ("paid 3", "approved")
    assert (edited.arguments, edited.approval.replaced_arguments) == ({"amount": 3}, {"amount": 5})
    assert edited.approval.seconds >= 0
    assert edited.seconds >= edited.approval.seconds


@pytest.mark.parametrize("kept", [False, True])
def test_a_child_run_stands_below_its_ticket(kept):
    def reply(messages):
        task = messages[-1]["content"]
        if "part" in task and len(messages) == 2:
            return give("half")
        return give("whole") if "T1" in task else delegate("do part")

    store = TicketStore() if kept else None
    run = Agent(reply, protocol="ticket", store=store).run_sync("all").run
    trace = run.trace()
    (child,) = trace.tickets[0].runs
    assert (child.task, child.ending.value, child.parent_run) == ("do part", "half", run.id)
    assert list(trace.walk()) == [trace, child]
    assert trace.other_runs == ()
    assert places(child) == list(range(child.events))


def test_a_compacted_run_keeps_its_turns_and_tickets():
    store = TicketStore()
    script = ScriptedModel([act("rate", code="NOK"), act("ratee"), finish("done")])
    run = Agent(script, tools=[rate], store=store).run_sync("convert").run
    whole = run.trace()
    store.compact(run.id)
    short = store.run(run.id).trace()
    assert [note.kind for note in short.notes] == ["compacted"]
    assert [turn.reply for turn in short.turns] == [turn.reply for turn in whole.turns]
    assert [turn.next_message for turn in short.turns] == [
        turn.next_message for turn in whole.turns
    ]
    assert short.tickets[0].result == whole.tickets[0].result
    assert (short.ending.value, short.ending.at, short.violations) == ("done", None, 1)


def test_a_conversation_continues_its_trace():
    run = Agent(ScriptedModel(["one", "two"]), protocol="chatty").run_sync("first").run
    run.send_sync("second")
    trace = run.trace()
    assert [(note.kind, note.text, note.turn) for note in trace.notes] == [
        ("user_said", "second", 1)
    ]
    assert [turn.answer for turn in trace.turns] == ["one", "two"]
    assert trace.turns[0].next_message == "second"
    assert (trace.ending.value, trace.status) == ("two", "finished")
    assert places(trace) == own_seqs(run)
