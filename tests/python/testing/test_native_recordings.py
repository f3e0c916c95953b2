"""Recorded replies with the model's own tool calls."""

import json
from pathlib import Path

import pytest

from callslip import Agent, ModelChunk, ModelReply, ScriptedModel, tool
from callslip.models import CallDelta, NativeCall
from callslip.models._items import CallItem, ReasoningItem, TextItem
from callslip.testing import Say
from callslip.testing._masked_lines import masked_lines
from callslip.testing._recording import NotRecorded, Recording

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
SIGNED = {"service": {"signature": SECRET}}


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"4 degrees in {city}"


def ask(model):
    return Agent(model, protocol="native", tools=[weather]).run_sync("How is Oslo?")


def recorded(path, script):
    """The run that was recorded, and its replay."""
    first = Recording(path, node="test", mode="record")
    made = ask(first.model(script))
    first.close()
    second = Recording(path, node="test", mode="replay")
    again = ask(second.model())
    second.close()
    return made, again


def rows(path: Path):
    calls = json.loads(path.with_suffix(".json").read_text())["calls"]
    return ["\n".join(call["text"]) for call in calls]


WHOLE = ModelReply("Let me look.", calls=[NativeCall("a", "weather", '{"city": "Oslo"}')])
PIECES = [
    ModelChunk("Let me "),
    ModelChunk("look."),
    ModelChunk(call=CallDelta(0, "a", "weather")),
    ModelChunk(call=CallDelta(0, arguments='{"city": ')),
    ModelChunk(call=CallDelta(0, arguments='"Oslo"}')),
    ModelChunk("", "stop"),
]
LINES = (
    '{"text":"Let me look."}\n'
    '{"call":"a","tool":"weather","arguments":"{\\"city\\": \\"Oslo\\"}"}\n'
)


@pytest.mark.parametrize("chunk_size", [None, 1, 7])
@pytest.mark.parametrize("reply", [WHOLE, PIECES], ids=["whole", "pieces"])
def test_a_native_run_is_replayed(tmp_path, reply, chunk_size):
    script = ScriptedModel([reply, "4 degrees"], chunk_size=chunk_size)
    made, again = recorded(tmp_path / "one", script)

    assert made.value == again.value == "4 degrees"
    assert made.run.messages == again.run.messages
    assert [ticket.result for ticket in again.tickets] == ["4 degrees in Oslo"]
    assert rows(tmp_path / "one") == [LINES, "4 degrees"]


def test_say_is_recorded_as_it_writes(tmp_path):
    say = Say("native")
    script = ScriptedModel([say.call("weather", city="Oslo"), say.finish("4")])
    _, again = recorded(tmp_path / "one", script)

    assert again.value == "4"
    assert [ticket.call for ticket in again.tickets] == ['weather {"city": "Oslo"}']


@pytest.mark.parametrize("streamed", [False, True])
def test_text_of_an_adapter_is_kept(tmp_path, streamed):
    """Adapters give all text as items."""
    items = (TextItem("4 degrees"),)
    reply = [ModelChunk(items=items), ModelChunk(finish_reason="stop")]
    _, again = recorded(
        tmp_path / "one", ScriptedModel([reply if streamed else ModelReply(items=items)])
    )

    assert again.value == "4 degrees"


def test_what_a_service_needs_back_is_replayed_byte_for_byte(tmp_path):
    items = (
        ReasoningItem("I look.", SIGNED),
        CallItem(0, "a", "weather", '{"city": "Oslo"}', {"service": {"id": SECRET}}, is_whole=True),
    )
    _, again = recorded(tmp_path / "one", ScriptedModel([ModelReply(items=items), "4"]))

    reasoning, call = again.run.messages[2]["items"]
    assert reasoning["data"] == SIGNED
    assert call["data"] == {"service": {"id": SECRET}}


def test_an_item_whose_text_was_masked_loses_what_vouches_for_it(tmp_path):
    items = (
        ReasoningItem(f"The key is {SECRET}.", SIGNED),
        CallItem(0, "a", "weather", json.dumps({"city": SECRET}), SIGNED, is_whole=True),
        CallItem(1, "b", "weather", '{"city": "Oslo"}', SIGNED, is_whole=True),
    )
    recorded(tmp_path / "one", ScriptedModel([ModelReply(items=items), "4"]))

    first = [json.loads(line) for line in rows(tmp_path / "one")[0].splitlines()]
    assert [("data" in item) for item in first] == [False, False, True]
    assert first[2]["data"] == SIGNED
    assert not any(SECRET in json.dumps(item) for item in first[:2])


@pytest.mark.parametrize(
    "line",
    [
        '{"text":"é\u2028 \\"x\\" \\u0001"}\n{"text":"y"}\n',
        '{"call":"a","tool":"b","arguments":"{}","data":{"a": 1}}\n',
        '{"text":"cut here',
        '{"call":"a","tool":"b","arguments":"{\\"city\\": \\',
        '{"call":"a","tool":"b","arguments":"{}","data":{"a":',
        '{"reasoning":"half a \\u00',
        '{"fault":"tool_use_failed","raw":"<function=x>"}\n',
        "",
    ],
)
def test_lines_without_a_secret_stay_as_they_are(line):
    assert masked_lines(line, lambda text: text.replace("hidden", "[x]")) == line


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('{"text":"a hidden', '{"text":"a [x]'),
        (
            '{"call":"a","tool":"b","arguments":"{\\"c\\": \\"hidden',
            '{"call":"a","tool":"b","arguments":"{\\"c\\": \\"[x]',
        ),
        ('{"reasoning":"hidden","data":{"a":1}}\n', '{"reasoning":"[x]"}\n'),
        ('{"fault":"no","raw":"hidden"}\n', '{"fault":"no","raw":"[x]"}\n'),
    ],
)
def test_lines_with_a_secret_keep_their_form(line, masked):
    assert masked_lines(line, lambda text: text.replace("hidden", "[x]")) == masked


def test_a_stream_that_broke_off_is_replayed_with_its_error(tmp_path):
    def script():
        return ScriptedModel([[*PIECES[:4], ConnectionError("gone")]])

    def texts(model):
        """Read the pieces up to the error."""
        items = []
        with pytest.raises(ConnectionError, match="gone"):
            for chunk in model([{"role": "user", "content": "How is Oslo?"}]):
                items.append(chunk)
        return items

    first = Recording(tmp_path / "one", node="test", mode="record")
    texts(first.model(script()))
    first.close()
    second = Recording(tmp_path / "one", node="test", mode="replay")
    pieces = texts(second.model())
    second.close()
    assert "".join(item.text for piece in pieces for item in piece.items).startswith(LINES[:30])


def test_an_unknown_conversation_is_still_refused(tmp_path):
    model = Recording(tmp_path / "one", node="test", mode="replay").model()
    with pytest.raises(NotRecorded):
        model([{"role": "user", "content": "How is Oslo?"}])
