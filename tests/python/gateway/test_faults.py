"""Faulty replies behind a gateway: none of them reaches a client as a call or an answer."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from callslip import ChattyProtocol, ReactProtocol, ScriptedModel
from callslip.testing import Faults, Say, faults
from gateways import WEATHER, chat, opened

FAULTS = [
    faults.cut,
    faults.duplicate_key,
    faults.empty,
    faults.invented_observation,
    faults.missing_argument,
    faults.prose_around,
    faults.two_moves,
    faults.unknown_tool,
    faults.wrong_type,
]
OSLO = [("get_weather", {"city": "Oslo"})]
BY_NAME = {fault.__name__: fault for fault in FAULTS}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("protocol", [ReactProtocol(), ChattyProtocol()], ids=lambda one: one.name)
def test_a_fault_is_followed_by_the_right_call(protocol, name, streamed):
    say = Say(protocol)
    right = say.call("get_weather", city="Oslo")
    model = Faults(ScriptedModel([right, right]), say, {1: BY_NAME[name]})
    sent = chat(model, tools=[WEATHER], stream=streamed, options={"protocol": protocol})
    assert sent.status == 200, sent.text
    if streamed:
        deltas = [event["choices"][0]["delta"] for event in sent.events]
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
        made = [(one["name"], json.loads(one["arguments"])) for one in calls]
    else:
        made = sent.calls
    assert made
    assert all(one == OSLO[0] for one in made)


# Forms in which models of other families write calls, and what services have passed on.
TEXTS = [
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>',
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    '<|python_tag|>get_weather(city="Oslo")',
    "<function=get_weather><parameter=city>Oslo</parameter></function>",
    '{"thought": "", "action": "get_weather", "args": {"city": "Rome"}}\n'
    '{"thought": "", "action": "get_weather", "args": {"city": "Bonn"}}',
    '{"thought": "", "action": "get_weather", "args": {"city": "Oslo"}',
    '{"thought": "", "action": "get_weather", "args": {"city": NaN}}',
    '{"thought": "", "action": "get_weather", "args": {"city": 1e999}}',
    '{"thought": "", "action": "get_weather", "args": {"city": "A", "city": "B"}}',
    '{"thought": "", "action": "get_weather", "args": ["Oslo"]}',
    '{"thought": "", "action": "get_weather", "args": {}}{}',
    '{"thought": "", "action": "functions.get_weather", "args": {"city": "Oslo"}}',
    '{"thought": "", "action": "get_wether", "args": {"city": "Oslo"}}',
    '{"thought": "", "action": "FINISH"}',
    "get_weather",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_form_of_another_family_reaches_a_client(text):
    right = json.dumps({"thought": "", "action": "get_weather", "args": {"city": "Oslo"}})
    sent = chat([text, right], tools=[WEATHER])
    assert sent.calls == OSLO
    assert sent.headers["x-callslip-attempts"] == "2"
    sent = chat([text], tools=[WEATHER], options={"max_violations": 0})
    assert sent.status == 422


def test_a_reply_without_an_end_is_stopped():
    say = Say("react")
    right = say.call("get_weather", city="Oslo")
    with Faults(ScriptedModel([right, right]), say, {1: faults.never_stops}) as model:
        assert chat(model, tools=[WEATHER]).calls == OSLO


def test_a_model_that_hangs_is_left_when_its_client_leaves():
    say = Say("react")
    right = say.call("get_weather", city="Oslo")
    model = Faults(ScriptedModel([right, right]), say, {1: faults.hang(5)})
    with opened(model) as (address, _):
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [WEATHER]}
        path = f"{address}/v1/chat/completions"
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(path, json=body, timeout=0.3)
        began = time.monotonic()
        assert httpx.post(path, json=body, timeout=30).status_code == 200
        assert time.monotonic() - began < 4
    model.close()
