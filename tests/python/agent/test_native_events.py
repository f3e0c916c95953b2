"""What events show of native replies: not what only the model's service reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip.events import Compacted, ModelReplied, Moved, Violated
from callslip.models._items import Envelope

SIGNATURE = "c2lnbmF0dXJl"


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def line(**item: Any) -> str:
    return json.dumps(item | {"data": {"service": {"signature": SIGNATURE}}}, separators=(",", ":"))


def reply(*lines: str) -> Envelope:
    return Envelope("".join(f"{one}\n" for one in lines))


VALID = reply(
    line(reasoning="Twice."),
    '{"text":"Wait."}',
    line(call="a", tool="double", arguments='{"number": 1,}'),
    line(call="b", tool="double", arguments='{"number": 2}'),
)
WRONG = reply(line(reasoning="Again."), line(call="c", tool="double", arguments='{"n": 3}'))


def texts_at(event: Any, text: str) -> list[str]:
    """Return the parts of the reply that the event's places name."""
    if isinstance(event, ModelReplied):
        spans = [repair["span"] for repair in event.repairs]
    elif isinstance(event, Violated):
        spans = [event.violation["span"]]
    else:
        calls = event.move.get("call", {}).get("calls", [])
        spans = [call[name] for call in calls for name in ("span", "tool_span", "arguments_span")]
    return [text.encode()[span["start"] : span["end"]].decode() for span in spans]


def test_events_leave_out_what_only_the_service_reads(tmp_path: Path):
    store = TicketStore(tmp_path / "runs.db")
    model = ScriptedModel([VALID, WRONG, "done"])
    run = Agent(model, tools=[double], protocol="native", store=store).run_sync("Go").run
    events = run.events()
    assert SIGNATURE not in "".join(event.to_json() for event in events)
    shown, found = "", []
    for event in events:
        if isinstance(event, ModelReplied):
            shown = event.text
        if isinstance(event, ModelReplied | Moved | Violated):
            found += texts_at(event, shown)
    call_a, call_b = '{"call":"a"', '{"call":"b"'
    assert found == [
        ",",
        call_a + ',"tool":"double","arguments":"{\\"number\\": 1,}"}',
        '"double"',
        '"{\\"number\\": 1,}"',
        call_b + ',"tool":"double","arguments":"{\\"number\\": 2}"}',
        '"double"',
        '"{\\"number\\": 2}"',
        '"{\\"n\\": 3}"',
    ]
    assert [event.narration for event in events if isinstance(event, Moved)] == ["Wait.", None]
    # The service gets it back, and the log has it.
    assert SIGNATURE in json.dumps(model.requests[-1].messages)
    assert SIGNATURE in run.export()
    store.compact(run.id)
    (folded,) = (event for event in store.run(run.id).events() if isinstance(event, Compacted))
    assert SIGNATURE not in folded.to_json()
    assert SIGNATURE in store.run(run.id).export()
