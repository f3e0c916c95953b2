"""Reasoning of models that mark it in their own way is set aside: a call in it is none."""

import json

import pytest

from callslip import ChattyProtocol, ReactProtocol, TicketProtocol

MARKS = {
    "magistral": ("[THINK]", "[/THINK]"),
    "kimi": ("◁think▷", "◁/think▷"),
    "command": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "seed": ("<seed:think>", "</seed:think>"),
    "openthinker": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "channels": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "own": ("<<musing", "musing>>"),
}
DRAFT = {
    "react": '{"thought": "d", "action": "wipe", "args": "{}"}',
    "chatty": '<tool>[{"call_id": "d", "tool_name": "wipe", "arguments": {}}]</tool>',
    "ticket": (
        '<output>{"type": "CALL", "route": "wipe", "payload": {}, "description": "d"}</output>'
    ),
}
REAL = {name: text.replace("wipe", "look") for name, text in DRAFT.items()}
PROTOCOLS = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}


def read(protocol, text):
    instance = PROTOCOLS[protocol](reasoning_tags=[MARKS["own"]])
    reply = instance.parse(text)
    for size in (1, 3, 17):
        reader = instance.reader()
        for start in range(0, len(text), size):
            reader.push(text[start : start + size])
        again = reader.finish()
        assert repr(again) == repr(reply)
        assert (again.thoughts, again.reasoning) == (reply.thoughts, reply.reasoning)
    return reply


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_the_reply_after_the_reasoning_counts(protocol, marks):
    start, end = marks
    reply = read(protocol, f"{start}Perhaps {DRAFT[protocol]} would do.{end}\n{REAL[protocol]}")
    assert [call.tool for call in reply.move.calls] == ["look"]
    assert "Perhaps" in ((reply.reasoning if protocol != "chatty" else reply.thoughts) or "")
    assert "reasoning_stripped" in {repair.code for repair in reply.repairs}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_a_call_in_the_reasoning_alone_is_not_made(protocol, marks):
    start, end = marks
    assert read(protocol, f"{start}Perhaps {DRAFT[protocol]}{end}").move is None
    cut = read(protocol, f"{start}Perhaps {DRAFT[protocol]} would")
    assert cut.violation.code == "unclosed_think"


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_an_answer_is_without_the_reasoning(marks):
    start, end = marks
    reply = read("chatty", f"{start}Hm, seven?{end}\nSeven.")
    assert (reply.move.value, reply.thoughts) == ("Seven.", "Hm, seven?")


def test_a_header_before_the_answer_is_no_part_of_it():
    assert read("chatty", "<|channel|>final<|message|>Seven.").move.value == "Seven."


def test_marks_in_texts_of_a_reply_are_text():
    args = {"text": "[THINK] ◁think▷ <|START_THINKING|> <<musing"}
    text = json.dumps({"thought": "t", "action": "look", "args": args}, ensure_ascii=False)
    assert read("react", text).move.calls[0].arguments == args
    assert read("chatty", "Write `[THINK]` first.").move.value == "Write `[THINK]` first."


@pytest.mark.parametrize("tags", [[("", "x")], [("a", "a")], [" "]])
def test_marks_that_are_none_are_refused(tags):
    if tags == [" "]:
        ReactProtocol(reasoning_tags=["musing"]).parse("<musing>a</musing>")
        return
    with pytest.raises(ValueError, match="reasoning_tags"):
        ReactProtocol(reasoning_tags=tags).parse("{}")
