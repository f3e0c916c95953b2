"""The choice between the interfaces of OpenAI, and clients that are made later."""

import asyncio
import json

import pytest

from callslip import UsageError, as_model
from callslip.models._openai_client import OpenAIClientModel
from callslip.models._responses import ResponsesModel
from callslip.models.openai import OpenAIModel
from native_scenes import ASK, Asking, joined
from optional import optional_module
from services.responses import ResponsesService

openai = optional_module("openai")
httpx2 = optional_module("httpx2")
_ASYNC = openai.AsyncOpenAI


class Wire:
    """The requests of a client to OpenAI's own address, and the answers."""

    def __init__(self):
        self.asked = []
        self.status = 200

    def __call__(self, request):
        body = json.loads(request.content)
        self.asked.append((request.url.host, request.url.path, body))
        if self.status != 200:
            return httpx2.Response(self.status, json={"error": {"message": "busy"}})
        if request.url.path.endswith("/responses"):
            with ResponsesService() as service:
                return httpx2.Response(200, json=service.whole([("text", "By responses.")]))
        message = {"role": "assistant", "content": "By chat."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx2.Response(200, json={**chat, "choices": [choice]})

    def client(self, **options):
        transport = httpx2.MockTransport(self)
        options = {"api_key": "k", "http_client": httpx2.Client(transport=transport), **options}
        return openai.OpenAI(**options)

    def async_client(self, **options):
        transport = httpx2.MockTransport(self)
        http = httpx2.AsyncClient(transport=transport)
        options = {name: value for name, value in options.items() if value is not None}
        return _ASYNC(**{"api_key": "k", "http_client": http, **options})


@pytest.fixture(autouse=True)
def _own_address(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture(scope="module")
def asking():
    with asyncio.Runner() as runner:
        yield Asking(runner)


def test_at_openai_calls_come_by_responses_and_text_by_chat(wire, asking):
    model = as_model(wire.client(), model="m", stream=False)
    assert joined(asking(model, ASK).items) == [{"text": "By responses."}]
    assert model(ASK).choices[0].message.content == "By chat."
    asked = [(host, path) for host, path, _ in wire.asked]
    assert asked == [
        ("api.openai.com", "/v1/responses"),
        ("api.openai.com", "/v1/chat/completions"),
    ]
    assert {"tools", "tool_choice", "stop", "seed"} <= model.accepts


def test_a_method_decides(wire):
    client = wire.client()
    assert type(as_model(client.chat.completions.create, model="m")) is OpenAIModel
    assert type(as_model(client.responses.create, model="m")) is ResponsesModel
    assert type(as_model(client, model="m")) is OpenAIClientModel


@pytest.mark.parametrize("base", ["http://127.0.0.1:9/v1", "https://openrouter.ai/api/v1"])
def test_chat_is_used_elsewhere(wire, base):
    assert type(as_model(wire.client(base_url=base), model="m")) is OpenAIModel


def test_options_are_sent_in_the_words_of_each(wire, asking):
    options = {"reasoning_effort": "low", "verbosity": "high", "max_completion_tokens": 50}
    model = as_model(wire.client(), model="m", stream=False, temperature=0, stop=None, **options)
    asking(model, ASK, max_tokens=9)
    model(ASK)
    (_, _, responses), (_, _, chat) = wire.asked
    assert responses["reasoning"] == {"effort": "low"}
    assert responses["text"] == {"verbosity": "high"}
    assert responses["max_output_tokens"] == 50
    assert responses["temperature"] == chat["temperature"] == 0
    assert options.items() <= chat.items()


@pytest.mark.parametrize(
    "options", [{"logit_bias": {"1": 1}}, {"seed": 7}, {"parts": ("audio",)}], ids=str
)
def test_an_option_that_only_chat_has_decides_for_chat(wire, options):
    model = as_model(wire.client(), model="m", **options)
    assert model._responses is None
    assert as_model(wire.client(), model="m", seed=None, parts=())._responses is not None


def test_neither_is_retried_without_retries(wire, asking):
    model = as_model(wire.client(max_retries=3), model="m", stream=False).without_retries()
    wire.status = 500
    for ask in (lambda: asking(model, ASK), lambda: model(ASK)):
        with pytest.raises(openai.InternalServerError):
            ask()
    assert len(wire.asked) == 2


def test_a_client_that_is_made_later_decides_then(wire, asking, monkeypatch):
    monkeypatch.setattr(openai, "AsyncOpenAI", wire.async_client)
    model = as_model("openai:m", stream=False)
    assert joined(asking(model, ASK).items) == [{"text": "By responses."}]
    assert wire.asked[0][1] == "/v1/responses"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    other = as_model("openai:m")
    assert {"tools", "tool_choice"} <= other.accepts
    assert type(other._connected()) is OpenAIModel


def test_a_later_client_without_tools_is_refused(asking):
    class Prompted:
        model_id = "m"

        def prompt(self, *_, **__):
            raise AssertionError

    def client():
        return Prompted()

    model = as_model(client)
    with pytest.raises(UsageError, match=r"expected a model that takes tools: got .*: pass proto"):
        asking(model, ASK)


def test_the_method_is_not_an_option(wire):
    with pytest.raises(UsageError, match="expected no responses: the client says it"):
        as_model(wire.client(), model="m", responses=print)
