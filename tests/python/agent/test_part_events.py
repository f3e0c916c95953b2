"""Images and files in the events of a run: what is known of them, and never their bytes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from callslip import Agent, File, Image, ScriptedModel, TicketStore, UsageError, tool
from callslip.events import Moved, RunStarted, TicketCompleted, UserSaid, read_event
from pictures import png
from scripted import act, finish

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs"
WITH_PARTS = (RunStarted, UserSaid, TicketCompleted)


@tool
def draw() -> dict[str, object]:
    """Draw."""
    return {"caption": "a square", "image": Image(png(6, 5))}


def metadata(file, **more):
    known = {"media_type": file.media_type, "bytes": file.size, "sha256": file.sha256}
    return {"label": file.label, **known, **more}


@pytest.fixture
def run(tmp_path):
    replies = [
        act("draw"),
        finish("a square"),
        finish("a report"),
    ]
    report = File(b"%PDF-1.4", name="report.pdf")
    earlier = [{"role": "user", "content": ["look", Image(png(2, 2))]}]
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(ScriptedModel(replies), protocol="react", tools=[draw], store=store)
        task = ["What is this?", Image(png(4, 3), name="cat.png")]
        run = agent.run_sync(task, messages=earlier).run
        yield run.send_sync(["And this?", report]).run


def test_events_have_what_is_known_of_their_images_and_files(run):
    started, completed, said = (event for event in run.log if isinstance(event, WITH_PARTS))
    files = run.parts
    assert started.parts == [metadata(files["U2"], name="cat.png", width=4, height=3)]
    assert started.task.endswith(files["U2"]._part.line)
    assert started.messages[0]["parts"] == [metadata(files["U1"], width=2, height=2)]
    assert completed.parts == [metadata(files["T1"], width=6, height=5)]
    assert completed.result == {"caption": "a square", "image": files["T1"]._part.line}
    assert said.parts == [metadata(files["U3"], name="report.pdf")]


def test_json_of_events_has_no_bytes_of_images(run):
    for event in run.log:
        shown = json.loads(event.to_json())
        assert shown.get("parts") == getattr(event, "parts", None)
        assert all(file.to_base64() not in event.to_json() for file in run.parts.values())


def test_lines_of_a_log_are_read_as_the_events_that_they_are(run):
    lines = run.export().splitlines()
    # What the model said stands in the line of its reply.
    says_nothing = {"narration": None, "thoughts": None, "answer": None}
    events = [
        replace(event, **says_nothing) if isinstance(event, Moved) else event for event in run.log
    ]
    assert [
        read_event(line, run.id) for line in lines if "content" not in json.loads(line)
    ] == events
    message = (
        "expected the line of an event: got the bytes of an image or a file; pass the other lines, "
        "and call replay(…).parts for the bytes"
    )
    for line in lines:
        if "content" in json.loads(line):
            with pytest.raises(UsageError) as error:
                read_event(line)
            assert str(error.value) == message


def test_events_of_earlier_logs_have_no_parts():
    kinds = set()
    for file in LOGS.glob("version_[1-5]/*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            event = read_event(line)
            if isinstance(event, WITH_PARTS):
                assert event.parts == []
                kinds.add(event.kind)
    assert kinds == {"run_started", "user_said", "ticket_completed"}
