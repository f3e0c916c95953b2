"""Earlier calls stand in the prompt as the model writes them: with the thought of the example."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argument_schemas import DEFINITIONS, objects_and_arguments
from callslip import ReactProtocol
from gateways import CITY, USER, act, called, chat, finish, function, prompt


def retold(tools, calls, text=None, protocol="react"):
    """The system prompt, the example's first reply, and the calls of the history in the prompt."""
    rows = [called(f"c{at}", name, arguments) for at, (name, arguments) in enumerate(calls)]
    results = [
        {"role": "tool", "tool_call_id": row["id"], "content": f"4 degrees {at}"}
        for at, row in enumerate(rows)
    ]
    messages = [USER, {"role": "assistant", "content": text, "tool_calls": rows}, *results]
    sent = chat([finish("x")], messages=messages, tools=tools, options={"protocol": protocol})
    assert sent.status == 200, sent.text
    (_, system), *told = prompt(sent)
    replies = [content for role, content in told if role == "assistant"]
    example = json.loads(replies[0]) if len(replies) > len(rows) else None
    return system, example, [json.loads(one) for one in replies[-len(rows) :]]


@given(case=objects_and_arguments())
@settings(deadline=None)
def test_the_thought_is_that_of_the_example(case):
    schema, arguments = case
    parameters = {**schema, "$defs": DEFINITIONS}
    body = {"messages": [USER], "tools": [function("f", parameters)]}
    if chat([finish("x")], **body).status != 200:
        return  # a schema that fits no value
    _, example, (call,) = retold(body["tools"], [("f", arguments)])
    assert call["thought"] == ("" if example is None else example["thought"])


@given(tools=st.lists(st.sampled_from(["get_a", "get_b", "look"]), min_size=1, unique=True))
@settings(deadline=None)
def test_each_tool_has_its_own_signature_in_the_thought(tools):
    forms = [
        function(name, {**CITY, "properties": {**CITY["properties"], name: {"type": "integer"}}})
        for name in tools
    ]
    system, _, calls = retold(forms, [(name, {"city": "Oslo"}) for name in tools])
    for name, call in zip(tools, calls, strict=True):
        signature = call["thought"].removeprefix("I call ").removesuffix(".")
        assert signature == f"{name}(city: str, {name}?: int)"
        assert signature in system


@pytest.mark.parametrize(
    ("tools", "text", "protocol", "thought"),
    [
        ([function("look")], "Let me see.", "react", "Let me see."),
        ([function("look")], None, ReactProtocol(examples=False), ""),
        ([function("other")], None, "react", ""),
    ],
    ids=["text of the client", "no example", "a tool that is gone"],
)
def test_other_thoughts(tools, text, protocol, thought):
    _, _, (call,) = retold(tools, [("look", {"city": "Oslo"})], text, protocol)
    assert call["thought"] == thought


def test_the_next_request_begins_with_the_reply_of_a_model_that_follows_the_example():
    tools = [function("look"), function("find")]
    _, _, (call,) = retold(tools, [("look", {"city": "Oslo"})])
    reply = json.dumps(json.loads(act("look", city="Oslo")) | {"thought": call["thought"]})

    first = chat([reply], tools=tools)
    (row,) = first.message["tool_calls"]
    result = {"role": "tool", "tool_call_id": row["id"], "content": "4 degrees"}
    second = chat([finish("x")], tools=tools, messages=[USER, first.message, result])

    begun = [*prompt(first), ("assistant", reply)]
    assert prompt(second)[: len(begun)] == begun
