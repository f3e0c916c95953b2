"""Properties of the gateway: one prompt for all clients, which only grows, and values that stay."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from argument_schemas import DEFINITIONS, objects_and_arguments
from callslip import ScriptedModel, Tool, UsageError
from callslip._core import ToolSet
from callslip.gateway import gateway
from gateways import act, finish, send, tool_requests, typed_requests

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
SAID = TEXTS.filter(str.strip)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)
TOOLS = ["look", "get_it"]
SCHEMA = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}}


@dataclass(frozen=True)
class Step:
    """A message of the user, a reply in text, or calls with their results."""

    kind: str
    text: str = ""
    calls: tuple = ()


CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), ARGUMENTS, SAID), min_size=1, max_size=3).map(
    tuple
)
TURNS = st.lists(
    st.one_of(
        st.builds(Step, st.just("answer"), SAID),
        st.builds(Step, st.just("calls"), st.one_of(st.just(""), SAID), CALLS),
    ),
    max_size=4,
)


@st.composite
def histories(draw):
    steps = [Step("user", draw(SAID))]
    for step in draw(TURNS):
        steps.append(step)
        if step.kind == "answer" or draw(st.booleans()):
            steps.append(Step("user", draw(SAID)))
    return steps


def chat_body(steps, draw):
    messages = [{"role": draw(st.sampled_from(["system", "developer"])), "content": "Be brief."}]
    number = 0
    for step in steps:
        if step.kind == "user":
            parts = [{"type": "text", "text": step.text}]
            messages.append({"role": "user", "content": draw(st.sampled_from([step.text, parts]))})
        elif step.kind == "answer":
            messages.append({"role": "assistant", "content": step.text})
        else:
            rows, results = [], []
            for tool, arguments, result in step.calls:
                own = f"call_{number}"
                number += 1
                indent = draw(st.sampled_from([None, 2]))
                pairs = draw(st.permutations(list(arguments.items())))
                written = json.dumps(dict(pairs), indent=indent, ensure_ascii=draw(st.booleans()))
                function = {"name": tool, "arguments": written}
                rows.append({"id": own, "type": "function", "function": function})
                results.append({"role": "tool", "tool_call_id": own, "content": result})
            empty = draw(st.sampled_from([None, "", []]))
            messages.append(
                {"role": "assistant", "content": step.text or empty, "tool_calls": rows}
            )
            messages += draw(st.permutations(results))
    tools = [
        {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}}
        for name in TOOLS
    ]
    return {"model": "m", "messages": messages, "tools": tools}


def messages_body(steps):
    messages = []
    number = 0
    for step in steps:
        if step.kind == "user":
            row = {"type": "text", "text": step.text}
            if messages and messages[-1]["role"] == "user" and _has_results(messages[-1]):
                messages[-1]["content"].append(row)
            else:
                messages.append({"role": "user", "content": [row]})
        elif step.kind == "answer":
            messages.append({"role": "assistant", "content": step.text})
        else:
            rows, results = [], []
            for tool, arguments, result in step.calls:
                own = f"toolu_{number}"
                number += 1
                rows.append({"type": "tool_use", "id": own, "name": tool, "input": arguments})
                results.append({"type": "tool_result", "tool_use_id": own, "content": result})
            text = [{"type": "text", "text": step.text}] if step.text else []
            messages.append({"role": "assistant", "content": [*text, *rows]})
            messages.append({"role": "user", "content": results})
    tools = [{"name": name, "description": "d", "input_schema": SCHEMA} for name in TOOLS]
    head = {"model": "m", "max_tokens": 100, "system": "Be brief."}
    return {**head, "messages": messages, "tools": tools}


def _has_results(message):
    return any(block["type"] == "tool_result" for block in message["content"])


def responses_body(steps):
    items = []
    number = 0
    for step in steps:
        if step.kind == "user":
            items.append({"role": "user", "content": step.text})
        elif step.kind == "answer":
            part = {"type": "output_text", "text": step.text, "annotations": []}
            items.append({"type": "message", "role": "assistant", "content": [part]})
        else:
            if step.text:
                items.append({"role": "assistant", "content": step.text})
            results = []
            for tool, arguments, result in step.calls:
                own = f"c{number}"
                number += 1
                items.append(
                    {
                        "type": "function_call",
                        "call_id": own,
                        "name": tool,
                        "arguments": json.dumps(arguments),
                    }
                )
                results.append({"type": "function_call_output", "call_id": own, "output": result})
            items += results
    tools = [
        {"type": "function", "name": name, "description": "d", "parameters": SCHEMA}
        for name in TOOLS
    ]
    return {"model": "m", "instructions": "Be brief.", "input": items, "tools": tools}


def prompts(protocol, body, path):
    sent = send([finish("ok")] if protocol == "react" else ["ok"], body, path, protocol=protocol)
    assert sent.status == 200, sent.text
    return [(one["role"], one["content"]) for one in sent.model.requests[0].messages]


@pytest.mark.parametrize("protocol", ["react", "chatty"])
@given(data=st.data(), steps=histories())
@settings(deadline=None)
def test_the_same_history_gives_the_same_prompt_from_every_client(protocol, data, steps):
    due = prompts(protocol, chat_body(steps, data.draw), "/v1/chat/completions")
    assert prompts(protocol, messages_body(steps), "/v1/messages") == due
    assert prompts(protocol, responses_body(steps), "/v1/responses") == due


def text_of(prompt):
    return "".join(f"\0{role}\0{content}" for role, content in prompt)


@pytest.mark.parametrize("protocol", ["react", "chatty"])
@given(data=st.data(), steps=histories())
@settings(deadline=None)
def test_a_longer_conversation_begins_with_the_shorter_one(protocol, data, steps):
    ends = [at + 1 for at, step in enumerate(steps) if step.kind != "answer"]
    shorter, longer = ends[data.draw(st.integers(0, len(ends) - 1))], ends[-1]
    begun = prompts(protocol, messages_body(steps[:shorter]), "/v1/messages")
    whole = prompts(protocol, messages_body(steps[:longer]), "/v1/messages")
    assert text_of(whole).startswith(text_of(begun))


@pytest.mark.parametrize("streamed", [False, True])
@given(case=objects_and_arguments())
@settings(deadline=None)
def test_arguments_that_fit_a_schema_reach_the_client_unchanged(streamed, case):
    schema, arguments = case
    parameters = {**schema, "$defs": DEFINITIONS}
    try:
        tool = Tool.from_schema(None, name="f", external=True, parameters=parameters)
        checked = ToolSet([tool._spec()]).check("f", json.dumps(arguments))
    except (ValueError, UsageError):
        return
    due = json.dumps({key: checked[key] for key in arguments}, sort_keys=True)
    for path, body, read in tool_requests(parameters, streamed=streamed):
        sent = send([act("f", **arguments)], body, path)
        assert sent.status == 200, sent.text
        assert json.dumps(read(sent), sort_keys=True) == due


@pytest.mark.parametrize("streamed", [False, True])
@given(case=objects_and_arguments())
@settings(deadline=None)
def test_a_typed_answer_validates_or_the_client_gets_an_error(streamed, case):
    schema, answer = case
    whole = {**schema, "$defs": DEFINITIONS}
    for path, body, read in typed_requests(whole, streamed=streamed):
        sent = send([finish(answer)], body, path, max_violations=0)
        if sent.status != 200:
            # Some schemas are wrong requests: no value fits them.
            assert sent.status in {400, 422}, sent.text
            assert not is_valid(whole, answer) or sent.status == 400
            continue
        assert is_valid(whole, json.loads(read(sent)))


def is_valid(schema, value):
    return Draft202012Validator(schema).is_valid(value)


def test_one_application_serves_many_tool_sets():
    model = ScriptedModel([act(f"tool_{n}") for n in range(100)])
    app = gateway(model)
    for n in range(100):
        function = {"name": f"tool_{n}", "parameters": {"type": "object"}}
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        sent = send(model, {**body, "tools": [{"type": "function", "function": function}]}, app=app)
        assert sent.calls == [(f"tool_{n}", {})]
