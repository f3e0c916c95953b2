"""Client libraries as models, each against a service on this machine that answers as documented."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from callslip import Agent, ChattyProtocol, ReactProtocol, tool
from callslip.errors import ModelRefused, UsageError
from callslip.events import ModelAsked
from callslip.models import ClientModel, ModelReply, as_model
from callslip.models._adapt import _OF_CLIENT, _OF_METHOD
from callslip.models._call import ModelCall
from callslip.models._frameworks import LangChainModel, LLMModel
from callslip.models._in_process import LlamaModel, PipelineModel, VllmModel
from callslip.models._reply import AsyncReplyStream, ReplyStream, open_result
from callslip.models._responses import ResponsesModel
from callslip.models._services import (
    BedrockModel,
    CohereModel,
    GoogleModel,
    MistralModel,
    OllamaModel,
)
from callslip.models.anthropic import AnthropicModel
from callslip.models.openai import OpenAIModel
from model_services import REASONING, TEXT, Services, services
from optional import optional_module

ASK = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "yes?"},
    {"role": "user", "content": "more"},
]
COUNTS = {"input_tokens": 12, "output_tokens": 3}
CACHED = COUNTS | {"cached_tokens": 4}
OFFERED: dict[str, Any] = {"stop": ["</output>"], "seed": 7, "max_tokens": 99}


def library(name: str) -> Any:
    return optional_module(name)


# ---- how each client is made: its arguments for `as_model`


def responses(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    openai = library("openai")
    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = make(base_url=f"{base}/v1", api_key="k")
    return client.responses.create, {"model": "m"}


def google(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    genai = library("google.genai")
    client = genai.Client(api_key="k", http_options={"base_url": base})
    return client.aio if is_async else client, {"model": "m"}


def bedrock(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    assert not is_async
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    return library("boto3").client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=base, **keys
    ), {"model": "m"}


def mistral(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    client = library("mistralai.client").Mistral(api_key="k", server_url=f"{base}/mistral")
    return client.chat.complete_async if is_async else client, {"model": "m"}


def cohere(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    sdk = library("cohere")
    make = sdk.AsyncClientV2 if is_async else sdk.ClientV2
    return make(api_key="k", base_url=base), {"model": "m"}


def ollama(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    sdk = library("ollama")
    return (sdk.AsyncClient if is_async else sdk.Client)(host=base), {"model": "m"}


def hugging_face(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    hub = library("huggingface_hub")
    make = hub.AsyncInferenceClient if is_async else hub.InferenceClient
    return make(base_url=f"{base}/v1", api_key="k"), {"model": "m"}


def litellm(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    sdk = library("litellm")
    options = {"model": "openai/m", "api_base": f"{base}/v1", "api_key": "k"}
    return sdk.acompletion if is_async else sdk, options


def litellm_router(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    route = {"model": "openai/m", "api_base": f"{base}/v1", "api_key": "k"}
    router = library("litellm").Router([{"model_name": "fast", "litellm_params": route}])
    return router.acompletion if is_async else router, {"model": "fast"}


def langchain(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    chat = library("langchain_openai").ChatOpenAI(
        model="m", base_url=f"{base}/v1", api_key="k", stream_usage=True
    )
    return chat.ainvoke if is_async else chat, {}


def llm(base: str, *, is_async: bool) -> tuple[object, dict[str, Any]]:
    plugin = library("llm.default_plugins.openai_models")
    make = plugin.AsyncChat if is_async else plugin.Chat
    model = make("m", model_name="m", api_base=f"{base}/v1", supports_schema=True)
    model.key = "k"
    return model, {}


Make = Callable[..., tuple[object, dict[str, Any]]]
# Whether it has an async client, its counts, and whether it keeps reasoning apart.
CLIENTS: dict[str, tuple[Make, bool, dict[str, int], bool]] = {
    "responses": (responses, True, CACHED, True),
    "google": (google, True, CACHED, True),
    "bedrock": (bedrock, False, CACHED, True),
    "mistral": (mistral, True, COUNTS, True),
    "cohere": (cohere, True, CACHED, True),
    "ollama": (ollama, True, COUNTS, True),
    "hugging_face": (hugging_face, True, COUNTS, True),
    "litellm": (litellm, True, CACHED, True),
    "litellm_router": (litellm_router, True, CACHED, True),
    "langchain": (langchain, True, CACHED, False),
    "llm": (llm, True, COUNTS, False),
}

# Its own warnings, about versions of pydantic, are none of ours.
_QUIET = pytest.mark.filterwarnings("ignore:.*:Warning")


def clients(*names: str) -> pytest.MarkDecorator:
    """Parametrize with the names of clients."""
    marked = [
        pytest.param(name, marks=_QUIET if name.startswith("litellm") else ()) for name in names
    ]
    return pytest.mark.parametrize("name", marked)


every_client = clients(*CLIENTS)
streamed = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
any_driver = pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # Some libraries set variables of their own.
    with mock.patch.dict(os.environ), services() as server:
        yield server


def model_of(name: str, server: Services, *, is_async: bool, **options: Any) -> Any:
    make, has_async, _, _ = CLIENTS[name]
    if is_async and not has_async:
        pytest.skip("its client is sync")
    client, named = make(server.base, is_async=is_async)
    return as_model(client, **named, **options)


def read(model: Any, *, is_async: bool, stream: bool | None = None, **offered: Any) -> ModelReply:
    """All of a reply, as a driver reads it."""
    call = ModelCall(model)
    assert call.is_async == is_async
    chunks: list[Any] = []
    if is_async:

        async def take() -> ModelReply | None:
            result: Any = call(ASK, **offered)
            awaited = hasattr(result, "__await__")
            opened = open_result(await result if awaited else result, awaited=awaited)
            if isinstance(opened, ModelReply):
                return opened
            assert isinstance(opened, AsyncReplyStream)
            try:
                chunks.extend([chunk async for chunk in opened])
            finally:
                await opened.aclose()
            return None

        whole = asyncio.run(take())
    else:
        opened = open_result(call(ASK, **offered))
        whole = opened if isinstance(opened, ModelReply) else None
        if whole is None:
            assert isinstance(opened, ReplyStream)
            with closing(opened):
                chunks.extend(opened)
    if whole is not None:
        assert not stream
        return whole
    if stream is not None:
        assert (len([chunk for chunk in chunks if chunk.text]) > 1) == stream
    usage: dict[str, float] = {}
    for chunk in chunks:
        usage |= chunk.usage or {}
    text, reasoning = ("".join(getattr(c, n) for c in chunks) for n in ("text", "reasoning"))
    ends = [chunk.finish_reason for chunk in chunks if chunk.finish_reason]
    return ModelReply(text, ends[-1] if ends else None, usage or None, reasoning)


@every_client
@streamed
@any_driver
def test_a_reply(name: str, stream: bool, is_async: bool, server: Services) -> None:
    server.finish = finish = "length" if is_async or name == "bedrock" else "stop"
    model = model_of(name, server, is_async=is_async, stream=stream)
    reply = read(model, is_async=is_async, stream=stream)
    _, _, usage, reasons = CLIENTS[name]
    assert reply.text == TEXT
    assert reply.finish_reason == finish
    known = {key: value for key, value in dict(reply.usage or {}).items() if value}
    assert known == usage
    assert reply.reasoning == (REASONING if reasons else "")
    assert len(server.bodies) == 1


@clients("responses", "google", "bedrock", "litellm")
@streamed
def test_a_reply_that_a_filter_withholds(name: str, stream: bool, server: Services) -> None:
    server.finish = "filter"
    with pytest.raises(ModelRefused):
        read(model_of(name, server, is_async=False, stream=stream), is_async=False)


@every_client
def test_a_failure_is_the_clients_own(name: str, server: Services) -> None:
    server.status = 400
    with pytest.raises(Exception, match="out of order|400") as caught:
        read(model_of(name, server, is_async=False), is_async=False)
    assert not type(caught.value).__module__.startswith("callslip")


# ---- what is sent

TURNS = [{"role": one["role"], "content": one["content"]} for one in ASK]
CHAT = {"messages": TURNS, "stop": ["</output>"], "seed": 7, "max_tokens": 99}
GOOGLE_TURNS = [
    {"role": role, "parts": [{"text": text}]}
    for role, text in (("user", "hello"), ("model", "yes?"), ("user", "more"))
]
SENT: dict[str, dict[str, Any]] = {
    "responses": {"input": TURNS, "max_output_tokens": 99, "temperature": 0.5},
    "google": {
        "contents": GOOGLE_TURNS,
        "systemInstruction": {"parts": [{"text": "be brief"}], "role": "user"},
        "generationConfig": {
            "stopSequences": ["</output>"],
            "seed": 7,
            "maxOutputTokens": 99,
            "temperature": 0.5,
        },
    },
    "bedrock": {
        "messages": [
            {"role": one["role"], "content": [{"text": one["content"]}]} for one in ASK[1:]
        ],
        "system": [{"text": "be brief"}],
        "inferenceConfig": {"stopSequences": ["</output>"], "maxTokens": 99, "temperature": 0.5},
    },
    "mistral": {
        "messages": TURNS,
        "stop": ["</output>"],
        "random_seed": 7,
        "max_tokens": 99,
        "temperature": 0.5,
    },
    "cohere": {
        "messages": TURNS,
        "stop_sequences": ["</output>"],
        "seed": 7,
        "max_tokens": 99,
        "temperature": 0.5,
    },
    "ollama": {
        "messages": TURNS,
        "options": {"stop": ["</output>"], "seed": 7, "num_predict": 99, "temperature": 0.5},
    },
    "hugging_face": CHAT | {"temperature": 0.5},
    "litellm": CHAT | {"temperature": 0.5},
    "litellm_router": CHAT | {"temperature": 0.5},
    "langchain": {"messages": TURNS, "stop": ["</output>"], "temperature": 0.5},
    "llm": {"messages": TURNS, "seed": 7, "max_tokens": 99, "temperature": 0.5},
}


@every_client
def test_a_request(name: str, server: Services) -> None:
    model = model_of(name, server, is_async=False, temperature=0.5)
    read(model, is_async=False, **OFFERED)
    (body,) = server.bodies
    if name == "mistral":
        del body["messages"][2]["prefix"]  # of the client's own
    assert {key: body.get(key) for key in SENT[name]} == SENT[name]
    if name not in ("google", "bedrock"):
        assert body["model"] == "m"


@every_client
def test_an_option_that_is_never_sent(name: str, server: Services) -> None:
    model = model_of(name, server, is_async=False, stream=False, stop=None)
    read(model, is_async=False, **OFFERED)
    assert "</output>" not in json.dumps(server.bodies)


NAMES = {"litellm": "openai/m", "litellm_router": "fast"}
PROVIDERS = {
    "responses": "openai",
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "cohere": "cohere",
    "ollama": "ollama",
}


@every_client
def test_an_agent(name: str, server: Services) -> None:
    server.text = "It is 42."
    model = model_of(name, server, is_async=False)
    result = Agent(model, protocol="chatty").run_sync("what is it?")
    assert result.value == "It is 42."
    (asked,) = (event for event in result.run.log if isinstance(event, ModelAsked))
    assert (asked.model, asked.provider) == (NAMES.get(name, "m"), PROVIDERS.get(name))


@every_client
def test_a_client_is_no_model(name: str, server: Services) -> None:
    client, _ = CLIENTS[name][0](server.base, is_async=False)
    if not callable(client):
        with pytest.raises(UsageError, match="wrap it with as_model"):
            Agent(client)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["responses", "mistral", "cohere"])
def test_a_model_without_retries(name: str, server: Services) -> None:
    server.status = 503
    model = model_of(name, server, is_async=False, stream=False).without_retries()
    with pytest.raises(Exception, match="out of order"):
        read(model, is_async=False)
    assert len(server.bodies) == 1


# ---- grammars


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    return city


REACT = ReactProtocol().grammar([look_up])
CHATTY = ChattyProtocol().grammar([look_up])
SCHEMA = json.loads(REACT.json_schema or "")
NAMED = {"name": "reply", "strict": True, "schema": SCHEMA}
FIELDS: dict[str, dict[str, Any]] = {
    "responses": {"text": {"format": {"type": "json_schema", **NAMED}}},
    "bedrock": {
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "reply", "schema": json.dumps(SCHEMA)}},
            }
        }
    },
    "mistral": {"response_format": {"type": "json_schema", "json_schema": NAMED}},
    "cohere": {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
    "ollama": {"format": SCHEMA},
    # The client has the older form of its own server.
    "hugging_face": {"response_format": {"type": "json_object", "value": SCHEMA}},
    "litellm": {"response_format": {"type": "json_schema", "json_schema": NAMED}},
    "llm": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "output", "schema": SCHEMA},
        }
    },
}


@clients(*FIELDS, "google")
def test_the_grammar_of_react(name: str, server: Services) -> None:
    model = model_of(name, server, is_async=False, grammar="json_schema")
    read(model, is_async=False, grammar=REACT)
    (body,) = server.bodies
    if name == "google":
        config = body["generationConfig"]
        assert config["responseMimeType"] == "application/json"
        assert config["responseJsonSchema"] == SCHEMA
        return
    assert {key: body[key] for key in FIELDS[name]} == FIELDS[name]


@streamed
@any_driver
@pytest.mark.parametrize("form", ["auto", "custom_tool"])
def test_a_reply_is_the_input_of_a_tool(
    form: str, stream: bool, is_async: bool, server: Services
) -> None:
    model = model_of("responses", server, is_async=is_async, stream=stream, grammar=form)
    reply = read(model, is_async=is_async, grammar=CHATTY)
    assert reply == ModelReply(TEXT, "stop", CACHED, REASONING)
    (body,) = server.bodies
    wanted = {"type": "grammar", "syntax": "lark", "definition": CHATTY.lark.partition("\n")[2]}
    assert body["tools"] == [{"type": "custom", "name": "reply", "format": wanted}]
    assert body["tool_choice"] == {"type": "custom", "name": "reply"}
    assert body["parallel_tool_calls"] is False
    assert body["input"] == TURNS


# ---- the table of the documentation

PAGE = Path(__file__).parents[3] / "docs/howto/models.md"
# The adapter of each row, and the client above that shows what its replies report. Replies of the
# others are in `test_stand_in_clients.py` and `test_adapters.py`.
ROWS: dict[str, tuple[type[ClientModel], str | None]] = {
    "openai, chat": (OpenAIModel, None),
    "openai, responses": (ResponsesModel, "responses"),
    "anthropic": (AnthropicModel, None),
    "google-genai": (GoogleModel, "google"),
    "boto3, `bedrock-runtime`": (BedrockModel, "bedrock"),
    "mistralai": (MistralModel, "mistral"),
    "cohere, `ClientV2`": (CohereModel, "cohere"),
    "ollama": (OllamaModel, "ollama"),
    "huggingface_hub": (OpenAIModel, "hugging_face"),
    "litellm": (OpenAIModel, "litellm"),
    "langchain": (LangChainModel, None),
    "llm": (LLMModel, None),
    "transformers": (PipelineModel, None),
    "vllm, `LLM`": (VllmModel, None),
    "llama-cpp-python, `Llama`": (LlamaModel, None),
}


def test_the_table_of_clients_is_that_of_the_code() -> None:
    lines = PAGE.read_text("utf-8").partition("| library |")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[: len(ROWS)]]
    assert [row[0] for row in rows] == list(ROWS)
    assert {adapter for adapter, _ in ROWS.values()} == {*_OF_METHOD.values(), *_OF_CLIENT.values()}
    for name, _, _, cached, reasoning, *offered, grammar in rows:
        adapter, client = ROWS[name]
        if client is not None:
            _, _, counts, reasons = CLIENTS[client]
            assert (cached, reasoning) == (said("cached_tokens" in counts), said(reasons)), name
        sent = [said(word in adapter._SENT) for word in ("stop", "seed", "max_tokens")]
        assert offered == sent or name == "llm", name
        forms = ", ".join(f'`"{form}"`' for form in adapter._FORMS if form != "auto")
        assert grammar == (
            "[by server](#constrained-decoding)" if adapter is OpenAIModel else forms or "no"
        )


def said(is_so: bool) -> str:
    return "yes" if is_so else "no"
