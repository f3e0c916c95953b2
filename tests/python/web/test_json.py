"""The public JSON form: one for all consumers, and always JSON."""

import json
import math
from dataclasses import fields
from pathlib import Path

import pytest

from callslip import Agent, Image, ScriptedModel, TicketStore, UsageError, Waiting, tool
from callslip.events import Delta, Progress, TicketOpened, read_event
from callslip.web import item_json
from pictures import png
from scripted import act, finish

LOGS = Path(__file__).resolve().parents[2] / "data/logs"

DELTAS = {
    Delta.Thoughts("x", 1): {"delta": "thoughts", "text": "x"},
    Delta.Reasoning("x", 1): {"delta": "reasoning", "text": "x"},
    Delta.Text("x", 1): {"delta": "text", "text": "x"},
    Delta.Answer("\n\u2028😀", 1): {"delta": "answer", "text": "\n\u2028😀"},
    Delta.CallId(0, "a", 1): {"delta": "call_id", "call": 0, "id": "a"},
    Delta.Tool(0, "add", 1): {"delta": "tool", "call": 0, "name": "add"},
    Delta.Arguments(2, '{"', 1): {"delta": "arguments", "call": 2, "text": '{"'},
    Delta.CallReady(0, 1): {"delta": "call_ready", "call": 0},
    Delta.TicketId("T1", 1): {"delta": "ticket_id", "id": "T1"},
}


def strict(item):
    """The value of the public form, by the rules of RFC 8259."""
    text = item_json(item)
    assert "\n" not in text
    text.encode()
    return json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize("item", ["x", None, {}, TicketOpened])
def test_what_is_no_item_says_what_is(item):
    with pytest.raises(UsageError, match=r"^expected item=an item of run.watch\(\), or a ticket"):
        item_json(item)


def keys(value):
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from keys(one)


def logged():
    """One event of each kind and set of fields that the stored logs have."""
    found = {}
    for file in sorted(LOGS.rglob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            if '"content":{' in line[:20]:
                continue
            try:
                event = read_event(line, "r")
            except UsageError:
                continue
            ((kind, data),) = json.loads(line)["event"].items()
            found[kind, tuple(sorted(data))] = event
    return found


def test_every_event_of_the_stored_logs_has_its_fields_by_their_names():
    events = logged()
    assert {kind for kind, _ in events} >= {"ticket_opened", "ticket_completed", "run_finished"}
    for event in events.values():
        value = strict(event)
        assert item_json(event) == event.to_json()
        assert list(value) == ["kind", *(one.name for one in fields(event))]
        assert value["kind"] == event.kind
        # The number of a ticket is of the log alone. These are its own records.
        shown = {
            name: one for name, one in value.items() if name not in {"setup", "start", "state"}
        }
        assert "ticket" not in set(keys(shown)), event


@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: DELTAS[delta]["delta"])
def test_a_delta(delta):
    assert strict(delta) == {"kind": "delta", **DELTAS[delta], "turn": 1}


def test_progress_that_no_number_describes():
    value = strict(Progress("r", "T1", "add", math.nan, math.inf, "half \ud83d"))
    assert value == {
        "kind": "progress",
        "run_id": "r",
        "ticket_id": "T1",
        "tool": "add",
        "done": "NaN",
        "total": "Infinity",
        "message": "half \ufffd",
    }


@pytest.mark.parametrize(
    "value",
    [math.nan, [-math.inf], "a\ud800b", {"\udfff": 1}, 10**5000, {1: "x"}],
    ids=["nan", "infinity", "half", "key", "large", "number"],
)
def test_values_that_json_does_not_have(value):
    event = TicketOpened(
        seq=0, at=math.inf, run_id="r", ticket_id="T1", turn=1, call=0, call_id=None,
        description="d", tool="t", arguments={"value": value}, needs=[],
    )  # fmt: skip
    strict(event)


@tool
def draw() -> list[Image]:
    """Draw."""
    return [Image(png(3, 2), name="chart.png")]


@tool(needs_approval=True)
def pay(invoice: int) -> str:
    """Pay."""
    return "paid"


def test_a_ticket_has_the_names_of_events_and_its_images_as_in_events():
    store = TicketStore()
    script = [act("draw"), act("pay", invoice=7), finish("done")]
    agent = Agent(ScriptedModel(script), tools=[draw, pay], store=store)
    run = agent.run_sync("Go.", approve=lambda _: True).run
    drawn, paid = run.tickets
    value = strict(drawn)
    (completed, _) = [one for one in run.log if one.kind == "ticket_completed"]
    told = strict(completed)
    assert (value["ticket_id"], value["ticket_kind"]) == ("T1", "tool_call")
    assert {name: value[name] for name in ("result", "parts")} == {
        name: told[name] for name in ("result", "parts")
    }
    assert not {"id", "kind", "tool_spec"} & set(value)
    waiting = strict(Waiting(run.id, [paid]))
    assert waiting == {"kind": "waiting", "run_id": run.id, "tickets": [strict(paid)]}
