"""Clients that are too large to install for tests: stand-ins with their documented methods.

`test_clients.py` tests the same adapters with the real libraries, where these are installed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip import Agent, ChattyProtocol, ModelReply, ReactProtocol, tool
from callslip.errors import UsageError
from callslip.models import as_model
from callslip.models._call import ModelCall
from callslip.models._reply import open_result

ASK = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "hello"},
]
OFFERED: dict[str, Any] = {"stop": ["</output>"], "seed": 7, "max_tokens": 3}
USAGE = {"input_tokens": 12, "output_tokens": 3}


@tool
def look_up(city: str) -> str:
    """Look a city up."""
    return city


REACT = ReactProtocol().grammar([look_up])
SCHEMA = json.loads(REACT.json_schema or "")


class Recorder:
    """Keeps the keywords of the last call of each method."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def take(self, **asked: Any) -> None:
        self.asked = asked


def ask(model: Any, **offered: Any) -> ModelReply:
    opened = open_result(ModelCall(model)(ASK, **offered))
    if isinstance(opened, ModelReply):
        return opened
    chunks: list[Any] = list(opened)  # type: ignore[arg-type]
    usage: dict[str, float] = {}
    for chunk in chunks:
        usage |= chunk.usage or {}
    ends = [chunk.finish_reason for chunk in chunks if chunk.finish_reason]
    text, reasoning = ("".join(getattr(c, n) for c in chunks) for n in ("text", "reasoning"))
    return ModelReply(text, ends[-1] if ends else None, usage or None, reasoning)


# ---- Bedrock


class Bedrock(Recorder):
    usage = {"inputTokens": 8, "outputTokens": 3, "cacheReadInputTokens": 4}  # noqa: RUF012

    def converse(self, **asked: Any) -> dict[str, Any]:
        self.take(**asked)
        message = {"role": "assistant", "content": [{"text": "Hello."}]}
        return {"output": {"message": message}, "stopReason": "end_turn", "usage": self.usage}

    def converse_stream(self, **asked: Any) -> dict[str, Any]:
        self.take(**asked)
        events = [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "hm"}}}},
            {"contentBlockDelta": {"delta": {"text": "Hello."}}},
            {"messageStop": {"stopReason": "max_tokens"}},
            {"metadata": {"usage": self.usage}},
        ]
        return {"stream": iter(events)}


def test_bedrock() -> None:
    client, usage = Bedrock(), USAGE | {"cached_tokens": 4}
    model = as_model(client, model="m", grammar="auto", topP=0.5, guardrailConfig={"a": "b"})
    assert ask(model, **OFFERED, grammar=REACT) == ModelReply("Hello.", "length", usage)
    assert client.asked == {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "system": [{"text": "be brief"}],
        "inferenceConfig": {"topP": 0.5, "maxTokens": 3, "stopSequences": ["</output>"]},
        "guardrailConfig": {"a": "b"},
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "reply", "schema": json.dumps(SCHEMA)}},
            }
        },
    }
    whole = as_model(client, model="m", stream=False, inferenceConfig={"temperature": 0})
    assert ask(whole, max_tokens=3) == ModelReply("Hello.", "stop", usage)
    assert client.asked["inferenceConfig"] == {"temperature": 0, "maxTokens": 3}


# ---- Cohere


class Cohere(Recorder):
    def chat(self, **asked: Any) -> object:
        self.take(**asked)
        return Obj(
            finish_reason="COMPLETE",
            message=Obj(role="assistant", content=[Obj(type="text", text="Hello.")]),
            usage=Obj(tokens=Obj(input_tokens=12.0, output_tokens=3.0), cached_tokens=4.0),
        )

    def chat_stream(self, **asked: Any) -> Iterator[object]:
        self.take(**asked)
        content = Obj(text="Hello.", thinking=None)
        yield Obj(type="content-delta", delta=Obj(message=Obj(content=content)))
        usage = Obj(tokens=Obj(input_tokens=12.0, output_tokens=3.0), cached_tokens=4.0)
        yield Obj(type="message-end", delta=Obj(finish_reason="MAX_TOKENS", usage=usage))


def test_cohere() -> None:
    client, usage = Cohere(), USAGE | {"cached_tokens": 4}
    model: Any = as_model(client, model="m", grammar="json_schema")
    assert ask(model, **OFFERED, grammar=REACT) == ModelReply("Hello.", "length", usage)
    asked = {
        "model": "m",
        "messages": ASK,
        "stop_sequences": ["</output>"],
        "seed": 7,
        "max_tokens": 3,
        "response_format": {"type": "json_object", "json_schema": SCHEMA},
    }
    assert client.asked == asked
    ask(model.without_retries(), **OFFERED, grammar=REACT)
    assert client.asked == asked | {"request_options": {"max_retries": 0}}
    whole: Any = as_model(client, model="m", stream=False, request_options={"timeout": 5})
    assert ask(whole.without_retries()) == ModelReply("Hello.", "stop", usage)
    assert client.asked["request_options"] == {"timeout": 5, "max_retries": 0}


# ---- LangChain


class LangChain(Recorder):
    usage = {  # noqa: RUF012
        "input_tokens": 12,
        "output_tokens": 3,
        "input_token_details": {"cache_read": 4},
    }

    def chunk(self, text: str, **more: Any) -> object:
        told: dict[str, Any] = {"content": text, "response_metadata": {}, "tool_calls": []}
        return Obj(text=text, type="AIMessageChunk", **(told | more))

    def invoke(self, messages: object, **options: Any) -> object:
        self.take(messages=messages, **options)
        return Obj(
            type="ai",
            text="Hello.",
            content=[{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Hello."}],
            response_metadata={"stop_reason": "max_tokens"},
            usage_metadata=self.usage,
        )

    def stream(self, messages: object, **options: Any) -> Iterator[object]:
        self.take(messages=messages, **options)
        yield self.chunk("Hel")
        yield self.chunk("lo.")
        end = {"response_metadata": {"finish_reason": "stop"}, "usage_metadata": self.usage}
        yield self.chunk("", **end)

    async def ainvoke(self, messages: object, **options: Any) -> object:
        return self.invoke(messages, **options)

    async def astream(self, messages: object, **options: Any) -> AsyncIterator[object]:
        for chunk in self.stream(messages, **options):
            yield chunk


def test_langchain() -> None:
    chat, usage = LangChain(), USAGE | {"cached_tokens": 4}
    assert ask(as_model(chat), **OFFERED) == ModelReply("Hello.", "stop", usage)
    assert chat.asked == {"messages": ASK, "stop": ["</output>"]}
    whole = ask(as_model(chat, stream=False, temperature=0))
    assert (whole, whole.reasoning) == (ModelReply("Hello.", "length", usage), "hm")
    assert chat.asked == {"messages": ASK, "temperature": 0}
    with pytest.raises(UsageError, match="^this client accepts no grammar"):
        as_model(chat, grammar="json_schema")


@pytest.mark.parametrize("stream", [True, False])
def test_langchain_async(stream: bool) -> None:
    model = as_model(LangChain().ainvoke, stream=stream)
    assert model.is_async

    class Ends(LangChain):
        async def ainvoke(self, messages: object, **options: Any) -> object:
            reply: Any = self.invoke(messages, **options)
            reply.response_metadata = {"finish_reason": "stop"}
            return reply

    agent = Agent(as_model(Ends().ainvoke, stream=stream), protocol="chatty")
    assert asyncio.run(agent.run("hi")).value == "Hello."


# ---- LiteLLM


class Router(Recorder):
    def completion(self, model: str, messages: list[Any], **options: Any) -> object:
        self.take(model=model, messages=messages, **options)
        message = {"role": "assistant", "content": "Hello.", "reasoning_content": "hm"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        counts = {"prompt_tokens": 12, "completion_tokens": 3}
        return {"choices": [choice], "usage": counts}

    async def acompletion(self, model: str, messages: list[Any], **options: Any) -> object:
        return self.completion(model, messages, **options)


def test_litellm() -> None:
    router = Router()
    model = as_model(router, model="fast", stream=False)
    assert ask(model, **OFFERED) == ModelReply("Hello.", "stop", USAGE)
    assert router.asked == {"model": "fast", "messages": ASK, **OFFERED}
    later = as_model(router.acompletion, model="fast", stream=False)
    assert later.is_async
    assert asyncio.run(Agent(later, protocol="chatty").run("hi")).value == "Hello."


# ---- transformers


class Tokenizer:
    def apply_chat_template(self, messages: list[Any], **options: Any) -> dict[str, list[int]]:
        assert options == {"add_generation_prompt": True}
        return {"input_ids": [0] * 12}

    def encode(self, text: str, **options: Any) -> list[int]:
        assert options == {"add_special_tokens": False}
        return [0] * len(text.split())


class Pipeline(Recorder):
    task = "text-generation"

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = Tokenizer()

    def __call__(self, messages: list[Any], **options: Any) -> object:
        self.take(messages=messages, **options)
        return [{"generated_text": "one two three"}]


def test_a_pipeline() -> None:
    pipe = Pipeline()
    model = as_model(pipe, do_sample=False)
    assert ask(model, max_tokens=3) == ModelReply("one two three", "length", USAGE)
    assert pipe.asked == {
        "messages": ASK,
        "max_new_tokens": 3,
        "do_sample": False,
        "return_full_text": False,
    }
    assert ask(model, stop=["</output>"]) == ModelReply("one two three", None, USAGE)
    assert pipe.asked["stop_strings"] == ["</output>"]
    assert pipe.asked["tokenizer"] is pipe.tokenizer


# ---- vLLM without a server


class Vllm(Recorder):
    def get_default_sampling_params(self) -> object:
        raise NotImplementedError

    def chat(self, messages: list[Any], sampling_params: Any, **options: Any) -> object:
        self.take(messages=messages, sampling=sampling_params, **options)
        made = Obj(text="Hello.", token_ids=[1, 2, 3], finish_reason="length")
        return [Obj(prompt_token_ids=[0] * 12, num_cached_tokens=4, outputs=[made])]


def test_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    package, inner = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    package.SamplingParams = lambda **fields: fields  # type: ignore[attr-defined]
    inner.StructuredOutputsParams = Obj  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", inner)
    llm, usage = Vllm(), USAGE | {"cached_tokens": 4}
    model = as_model(llm, grammar="gbnf", temperature=0, chat_template_kwargs={"a": 1})
    assert ask(model, **OFFERED, grammar=REACT) == ModelReply("Hello.", "length", usage)
    assert llm.asked == {
        "messages": ASK,
        "sampling": {**OFFERED, "temperature": 0, "structured_outputs": Obj(grammar=REACT.gbnf)},
        "chat_template_kwargs": {"a": 1},
        "use_tqdm": False,
    }
    ask(as_model(llm))
    assert llm.asked["sampling"] == {"max_tokens": None}


# ---- llama-cpp-python


class Llama(Recorder):
    def __call__(self, prompt: str) -> object:
        raise NotImplementedError

    def create_completion(self, prompt: str) -> object:
        raise NotImplementedError

    def create_chat_completion(self, messages: list[Any], **asked: Any) -> object:
        self.take(messages=messages, **asked)
        if asked["stream"]:
            deltas: list[Any] = [{"content": "Hel"}, {"content": "lo."}]
            chunks = [{"choices": [{"delta": one, "finish_reason": None}]} for one in deltas]
            return iter([*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]}])
        choice = {"message": {"content": "Hello."}, "finish_reason": "length"}
        return {"choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


def test_llama_cpp_python(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("llama_cpp")
    made = Obj(from_string=lambda text, *, verbose: (text, verbose))
    package.LlamaGrammar = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", package)
    llama, chatty = Llama(), ChattyProtocol().grammar([look_up])
    model = as_model(llama, grammar="gbnf", temperature=0)
    assert ask(model, **OFFERED, grammar=chatty) == ModelReply("Hello.", "stop")
    assert llama.asked == {
        "messages": ASK,
        "stream": True,
        "temperature": 0,
        "grammar": (chatty.gbnf, False),
        **OFFERED,
    }
    assert ask(as_model(llama, stream=False)) == ModelReply("Hello.", "length", USAGE)
    with pytest.raises(UsageError, match="got the client Llama: wrap it with as_model"):
        Agent(llama)  # type: ignore[arg-type]


def test_a_service_needs_the_name_of_a_model() -> None:
    for client in (Bedrock(), Cohere(), Router()):
        with pytest.raises(UsageError, match="^expected the name of a model: got none: pass model"):
            as_model(client)
