"""smolagents sends earlier calls and their results as text: the model reads them as its calls."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways import USER, called, chat, finish, function, prompt

TOOLS = [function("look", {"type": "object", "properties": {"a": {}, "b": {}}})]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-9, 9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b"]), VALUES)
RESULTS = st.text(min_size=1, max_size=30).filter(str.strip)


def in_text(own, arguments, before=""):
    row = {"id": own, "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": f"{before}Calling tools:\n{[row]}"}


def told(*messages):
    sent = chat([finish("x")], messages=[USER, *messages], tools=TOOLS)
    assert sent.status == 200, sent.text
    return prompt(sent)


@given(steps=st.lists(st.tuples(ARGUMENTS, RESULTS), min_size=1, max_size=3), before=st.booleans())
@settings(deadline=None)
def test_the_prompt_is_that_of_a_client_with_calls(steps, before):
    own, due = [], []
    for at, (arguments, result) in enumerate(steps):
        name = f"c0000{at}000"
        text = "Let me see." if before else None
        own += [
            in_text(name, arguments, f"{text}\n" if before else ""),
            {"role": "user", "content": f"Observation:\n{result}"},
        ]
        due += [
            {"role": "assistant", "content": text, "tool_calls": [called(name, "look", arguments)]},
            {"role": "tool", "tool_call_id": name, "content": result},
        ]
    assert told(*own) == told(*due)


def test_a_failed_call_is_told_as_one():
    error = "Error:\nno such place"
    messages = told(in_text("c1", {"a": 1}), {"role": "user", "content": f"Call id: c1\n{error}"})
    assert json.loads(messages[-2][1])["action"] == "look"
    assert messages[-1] == ("user", "Observation: Error:\n  no such place")


@pytest.mark.parametrize(
    "text",
    [
        "Calling tools:\n[]",
        "Calling tools:\n[{'id': 'c', 'type': 'function'}]",
        "Calling tools:\n[open('x')]",
        "Calling tools:\n" + "[" * 5000,
        "Calling tools:\n" + "-" * 5000 + "1",
        in_text("c", {1: 2})["content"],
        in_text("c", {"a": b"x"})["content"],
        in_text("c", {"a": 1e999})["content"],
        "The words are: " + in_text("c", {"a": 1})["content"],
        in_text("c", {"a": 1})["content"] + " is the form.",
    ],
)
def test_other_text_stays_text(text):
    messages = told({"role": "assistant", "content": text}, {"role": "user", "content": "Go on."})
    assert json.loads(messages[-2][1])["final_answer"] == text
    assert messages[-1] == ("user", "Go on.")


def test_another_message_in_place_of_the_result_is_told_as_it_is():
    messages = told(in_text("c1", {"a": 1}), {"role": "user", "content": "Stop."})
    assert json.loads(messages[-2][1])["action"] == "look"
    assert messages[-1] == ("user", "Observation: (the result is not shown any more)\n\nStop.")
