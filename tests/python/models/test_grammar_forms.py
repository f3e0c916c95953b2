"""Grammars on their way to OpenAI-compatible servers, and servers that ignore them."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from callslip import Agent, BoundedModel, ChattyProtocol, Limits, ReactProtocol, tool
from callslip.errors import ProtocolError
from callslip.models import as_model
from callslip.models._grammar_servers import host_of, known_form
from callslip.models._reply import open_result
from model_services import Services, services
from optional import optional_module

openai = optional_module("openai")


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    return city


REACT = ReactProtocol().grammar([look_up])
CHATTY = ChattyProtocol().grammar([look_up])
SCHEMA = json.loads(REACT.json_schema or "")
STRICT = {"name": "reply", "strict": True, "schema": SCHEMA}
ASK = [{"role": "user", "content": "hello"}]
ANSWER = json.dumps(
    {
        "thought": "",
        "action": "FINISH",
        "args": None,
        "final_answer": "It is 42.",
        "task_successful": True,
    }
)
WITHOUT_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.fixture
def server() -> Iterator[Services]:
    with services() as server:
        yield server


def sent(server: Services, offered: object, *, is_async: bool = False, **options: Any) -> Any:
    """What a request has beside its messages."""
    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = make(base_url=f"{server.base}/v1", api_key="k", max_retries=0)
    model: Any = as_model(client, model="m", stream=False, **options)
    if is_async:
        asyncio.run(model(ASK, grammar=offered))
    else:
        open_result(model(ASK, grammar=offered))
    return {
        name: value
        for name, value in server.bodies[-1].items()
        if name not in ("model", "messages", "stream")
    }


FORMS: dict[str, dict[str, Any]] = {
    "gbnf": {"grammar": REACT.gbnf, **WITHOUT_THINKING},
    "lark": {"grammar": REACT.lark, **WITHOUT_THINKING},
    "vllm": {"structured_outputs": {"grammar": REACT.gbnf}},
    "sglang": {"ebnf": REACT.gbnf},
    "fireworks": {"response_format": {"type": "grammar", "grammar": REACT.gbnf}},
    "json_schema": {"response_format": {"type": "json_schema", "json_schema": STRICT}},
}
OWNERS = {"llamacpp": "gbnf", "vllm": "vllm", "sglang": "sglang"}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_its_field(form: str, server: Services) -> None:
    assert sent(server, REACT, grammar=form) == FORMS[form]
    assert server.listed == 0


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("owner", [*OWNERS, "someone", None])
def test_the_server_is_asked_for_its_form(
    owner: str | None, is_async: bool, server: Services
) -> None:
    server.owner = owner
    wanted = FORMS[OWNERS[owner]] if owner in OWNERS else {}
    assert sent(server, REACT, is_async=is_async, grammar="auto") == wanted
    assert server.listed == 1


def test_the_server_is_asked_once(server: Services) -> None:
    server.owner = "vllm"
    with openai.OpenAI(base_url=f"{server.base}/v1", api_key="k") as client:
        model: Any = as_model(client, model="m", stream=False, grammar="auto")
        open_result(model(ASK))
        assert server.listed == 0
        for grammar in (REACT, CHATTY):
            open_result(model(ASK, grammar=grammar))
            assert server.bodies[-1]["structured_outputs"] == {"grammar": grammar.gbnf}
    assert server.listed == 1


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("https://api.openai.com/v1", "json_schema"),
        ("https://mine.openai.azure.com/openai/v1/", "json_schema"),
        ("https://api.fireworks.ai/inference/v1", "fireworks"),
        ("https://api.deepseek.com", None),
    ],
)
def test_a_service_with_a_known_address_is_not_asked(address: str, form: str | None) -> None:
    with openai.OpenAI(base_url=address, api_key="k") as client:
        assert known_form(host_of(client)) == (True, form)
        model = as_model(client, model="m", grammar="auto")
        assert model._forms() == (() if form is None else (form,))


def test_an_unknown_address_has_no_form_yet() -> None:
    for host in ("127.0.0.1", "localhost", "api.openai.com.example.org", "notopenai.azure.com", ""):
        assert known_form(host) == (False, None)


def test_the_limit_has_the_name_that_the_service_takes() -> None:
    with openai.OpenAI(base_url="https://api.openai.com/v1", api_key="k") as client:
        model = as_model(client, model="m")
        assert model._SENT["max_tokens"] == "max_completion_tokens"
        assert "max_tokens" not in as_model(client, model="m", max_completion_tokens=9).accepts


# ---- a server that ignores the grammar


def agent_of(server: Services, **options: Any) -> tuple[Any, Any]:
    client = openai.OpenAI(base_url=f"{server.base}/v1", api_key="k", max_retries=0)
    model = as_model(client, model="m", **options)
    return model, client


def had_grammar(server: Services) -> list[bool]:
    return ["response_format" in body or "grammar" in body for body in server.bodies]


@pytest.mark.parametrize(
    ("form", "stream", "is_async", "is_bounded"),
    [
        ("json_schema", True, True, False),
        ("json_schema", False, False, True),
        ("gbnf", False, True, False),
        ("gbnf", True, False, True),
    ],
)
def test_it_is_said_once(
    form: str, stream: bool, is_async: bool, is_bounded: bool, server: Services
) -> None:
    server.text = "I would look it up."
    model, client = agent_of(server, grammar=form, stream=stream)
    limits = Limits(max_violations=2)
    agent = Agent(BoundedModel(model) if is_bounded else model, tools=[look_up], limits=limits)
    with client, pytest.warns(UserWarning, match="ignores the grammar") as caught:  # noqa: PT031
        with pytest.raises(ProtocolError):
            asyncio.run(agent.run("hi")) if is_async else agent.run_sync("hi")
        assert had_grammar(server) == [True, False, False]
        with pytest.raises(ProtocolError):
            agent.run_sync("hi")
    assert had_grammar(server) == [True] + [False] * 5
    assert [str(one.message) for one in caught if "ignores" in str(one.message)] == [
        "the server of m ignores the grammar: it returned a reply that the grammar excludes "
        "(no_action); later requests have no grammar: pass grammar=None, or the form that the "
        "server accepts"
    ]


# Replies that a server under the grammar could have returned, or that show nothing.
INNOCENT: dict[str, dict[str, Any]] = {
    "a wrong argument": {"action": "look_up", "args": '{"town": 1}'},
    "no JSON": {"action": "look_up", "args": "nothing"},
    "no arguments": {"action": "look_up"},
    "no answer": {"final_answer": None},
    "two moves": {"action": "look_up", "args": '{"city": "a"}'},
}


@pytest.mark.parametrize("text", INNOCENT.values(), ids=INNOCENT)
def test_a_reply_of_the_grammar_is_no_sign(text: dict[str, Any], server: Services) -> None:
    server.text = json.dumps(json.loads(ANSWER) | text)
    model, client = agent_of(server, grammar="json_schema")
    with client, warnings.catch_warnings(), pytest.raises(ProtocolError):
        warnings.simplefilter("error")
        Agent(model, tools=[look_up], limits=Limits(max_violations=1)).run_sync("hi")
    assert had_grammar(server) == [True, True]


def test_a_cut_reply_is_no_sign(server: Services) -> None:
    server.text, server.finish = "I would", "length"
    model, client = agent_of(server, grammar="json_schema")
    with client, pytest.raises(ProtocolError):
        Agent(model, tools=[look_up], limits=Limits(max_violations=1)).run_sync("hi")
    assert had_grammar(server) == [True, True]


def test_a_stop_sequence_may_cut_a_reply_anywhere(server: Services) -> None:
    server.text = "I would look it up."
    for options, stop in (({"stop": ["up"]}, ()), ({}, ("up",))):
        server.bodies.clear()
        model, client = agent_of(server, grammar="json_schema", **options)
        agent = Agent(model, tools=[look_up], limits=Limits(max_violations=1), stop=stop)
        with client, pytest.raises(ProtocolError):
            agent.run_sync("hi")
        assert had_grammar(server) == [True, True]


# A call of a tool that is not there, which no grammar admits.
UNKNOWN = '<tool>\n[{"call_id": "call_1", "tool_name": "fly", "arguments": {}}]\n</tool>'


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_a_server_that_was_sent_no_grammar_ignores_none(protocol: Any, server: Services) -> None:
    server.text = UNKNOWN
    model, client = agent_of(server, grammar="auto")
    agent = Agent(model, protocol=protocol, tools=[look_up], limits=Limits(max_violations=1))
    with client, pytest.raises(ProtocolError):
        agent.run_sync("hi")
    assert had_grammar(server) == [False, False]


def test_a_protocol_without_a_schema_is_not_said_to_be_ignored(server: Services) -> None:
    server.text = UNKNOWN
    model, client = agent_of(server, grammar="json_schema")
    agent = Agent(model, protocol="chatty", tools=[look_up], limits=Limits(max_violations=1))
    told = pytest.warns(UserWarning, match="cannot be described")
    with client, told, pytest.raises(ProtocolError):
        agent.run_sync("hi")
    assert model.grammar_form == "json_schema"


def test_a_server_that_obeys(server: Services) -> None:
    server.text = ANSWER
    model, client = agent_of(server, grammar="json_schema")
    with client:
        assert Agent(model, tools=[look_up]).run_sync("hi").value == "It is 42."
    assert had_grammar(server) == [True]
