"""Tool calls of LangChain's chat models, of its own client for OpenAI and of small ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from callslip import Agent, tool
from callslip.errors import ModelError, ModelRefused, UsageError
from callslip.models import ModelReply, as_model
from callslip.models._items import FaultItem, Item, TextItem, ToolChoice, ToolForm
from callslip.models.native._frameworks import LangChainReader
from optional import optional_module
from services.chat import (
    OSLO,
    SCENES,
    ChatService,
    chat_service,
    data_of,
    expected,
    joined,
    replied,
    results,
)

core = optional_module("langchain_core.language_models.chat_models")
messages = optional_module("langchain_core.messages")
outputs = optional_module("langchain_core.outputs")
openai = optional_module("langchain_openai")

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    ToolForm("weather", "Get the weather.", CITY, strict=True),
    ToolForm("pay", "Pay.", {"type": "object", "properties": {"amount": {"type": "number"}}}),
    ToolForm("ping", "Ping.", {"type": "object", "properties": {}}),
]
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Do it."}]
END = [("text", "Done.")]


@pytest.fixture(scope="module")
def running() -> Iterator[ChatService]:
    with chat_service() as server:
        yield server


@pytest.fixture
def server(running: ChatService) -> ChatService:
    running.reset(END)
    return running


@pytest.fixture(scope="module")
def chat(running: ChatService) -> Any:
    return openai.ChatOpenAI(
        model="m", base_url=running.base, api_key="k", max_retries=0, stream_usage=True
    )


@pytest.fixture(scope="module")
def whole_chat(running: ChatService) -> Any:
    return openai.ChatOpenAI(
        model="m", base_url=running.base, api_key="k", max_retries=0, disable_streaming=True
    )


def gathered(chunks: list[Any]) -> ModelReply:
    ends = [one.finish_reason for one in chunks if one.finish_reason]
    usage: dict[str, float] = {}
    for one in chunks:
        usage |= one.usage or {}
    items = tuple(item for one in chunks for item in one.items)
    return ModelReply("", ends[-1] if ends else None, usage or None, items=items)


def read(model: Any, told: Any, **offered: Any) -> ModelReply:
    offered = {"tools": TOOLS, "tool_choice": ToolChoice(), **offered}
    result = model(told, **offered)
    return result if isinstance(result, ModelReply) else gathered(list(result))


async def read_async(model: Any, told: Any) -> ModelReply:
    result = model(told, tools=TOOLS, tool_choice=ToolChoice())
    assert isinstance(result, AsyncIterator)
    return gathered([one async for one in result])


# ---- the scenes

# OpenAI's reasoning has no field there, and LangChain reads none.
UNREAD = {"reasoning": "reasoning"}


def told_by(name: str) -> list[tuple[str, ...]]:
    return [item for item in expected(SCENES[name]) if item[0] not in UNREAD]


@pytest.mark.parametrize("name", SCENES)
def test_each_scene(name: str, server: ChatService, chat: Any) -> None:
    model = as_model(chat)
    for split in (1, 3, 1000):
        server.reset(SCENES[name], END)
        server.split, server.is_mixed = split, split == 1
        if name == "a refusal":
            # LangChain reads no refusal of a stream: it is an empty reply.
            assert joined(read(model, ASK).items) == []
            continue
        reply = read(model, ASK)
        assert joined(reply.items) == told_by(name)
        assert reply.finish_reason == ("length" if ("cut",) in SCENES[name] else "stop")
        assert {"input_tokens": 12, "output_tokens": 3}.items() <= dict(reply.usage or {}).items()
        if split == 1:
            own = replied(reply.items)
            last = read(model, [*ASK, own, results(own, "Go on.")])
            assert joined(last.items) == [("text", "Done.")]


def test_each_scene_async(server: ChatService, running: ChatService) -> None:
    async def main() -> None:
        own_chat = openai.ChatOpenAI(
            model="m", base_url=running.base, api_key="k", max_retries=0, stream_usage=True
        )
        model = as_model(own_chat.ainvoke)
        for name in SCENES:
            server.reset(SCENES[name], END)
            server.split = 3
            if name == "a refusal":
                continue
            reply = await read_async(model, ASK)
            assert joined(reply.items) == told_by(name)
            own = replied(reply.items)
            last = await read_async(model, [*ASK, own, results(own)])
            assert joined(last.items) == [("text", "Done.")]

    asyncio.run(main())


# What LangChain has read by itself of a whole message can't be read otherwise: the first value of
# a key that comes twice is lost, and numbers and blanks are written anew.
READ_BEFORE = {
    "a key twice": '{"amount": 7000}',
    "infinity": '{"amount": Infinity}',
    "text and two calls": None,
    "reasoning, text and two calls": None,
}


@pytest.mark.parametrize("name", SCENES)
def test_each_scene_whole(name: str, server: ChatService, whole_chat: Any) -> None:
    """A chat model that does not stream, or not with tools."""
    server.reset(SCENES[name], END)
    model = as_model(whole_chat)
    reply = read(model, ASK)
    if name == "a refusal":
        assert joined(reply.items) == []
        return
    came = joined(reply.items)
    if name == "an array":
        assert came == [("fault", "LangChain could not read the arguments of the call", '["Oslo"]')]
        return
    kinds = [(one[0], *one[1:3]) if one[0] == "call" else one for one in came]
    assert kinds == [(one[0], *one[1:3]) if one[0] == "call" else one for one in told_by(name)]
    if name not in READ_BEFORE:
        assert [one[3:] for one in came] == [
            ("{}",) if one[3:] == ("",) else one[3:] for one in told_by(name)
        ]
    elif READ_BEFORE[name] is not None:
        assert came[0][3] == READ_BEFORE[name]
    assert reply.finish_reason == ("length" if ("cut",) in SCENES[name] else "stop")
    own = replied(reply.items)
    last = read(model, [*ASK, own, results(own)])
    assert joined(last.items) == [("text", "Done.")]


# ---- the request


def test_tools_and_choices(server: ChatService, chat: Any) -> None:
    model = as_model(chat)
    assert model.accepts == {"stop", "tools", "tool_choice"}
    read(model, ASK, stop=["x"])
    first = server.bodies[-1]
    assert first["stop"] == ["x"]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["weather", "pay", "ping"]
    assert first["tools"][0]["function"] == {
        "name": "weather",
        "description": "Get the weather.",
        "parameters": CITY,
        "strict": True,
    }
    assert not {"tool_choice", "parallel_tool_calls"} & first.keys()
    for choice, told in (
        (ToolChoice("required"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required", "pay"), {"type": "function", "function": {"name": "pay"}}),
    ):
        read(model, ASK, tool_choice=choice)
        assert server.bodies[-1]["tool_choice"] == told
        assert server.bodies[-1]["tools"] == first["tools"]
    read(model, ASK, tool_choice=ToolChoice(parallel=False))
    assert server.bodies[-1]["parallel_tool_calls"] is False
    read(model, ASK, tools=[])
    assert "tools" not in server.bodies[-1]


def test_results_and_errors(server: ChatService, chat: Any) -> None:
    calls = [("call_1", "weather", OSLO), ("call_1", "pay", '{"amount": NaN}')]
    own = {
        "role": "assistant",
        "content": "",
        "items": [{"call": name, "tool": tool, "arguments": told} for name, tool, told in calls],
    }
    read(as_model(chat), [*ASK, own, results(own, "Go on.")])
    reply, *told = server.bodies[-1]["messages"][2:]
    assert reply["content"] in (None, "")
    assert [call["id"] for call in reply["tool_calls"]] == ["call_1", "c00002001"]
    assert "INVALID_JSON" in reply["tool_calls"][1]["function"]["arguments"]
    assert told == [
        {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
        {"role": "tool", "tool_call_id": "c00002001", "content": "error: 4 degrees"},
        {"role": "user", "content": "Go on."},
    ]


def test_what_was_bound_before_stays(server: ChatService, chat: Any) -> None:
    read(as_model(chat.bind(temperature=0.5)), ASK)
    assert server.bodies[-1]["temperature"] == 0.5
    assert len(server.bodies[-1]["tools"]) == 3


def test_tools_of_its_own(chat: Any) -> None:
    own = [{"type": "function", "function": {"name": "x", "parameters": CITY}}]
    with pytest.raises(UsageError, match=r"pass the chat model as it was before bind_tools$"):
        read(as_model(chat.bind_tools(own)), ASK)
    with pytest.raises(UsageError, match="expected no tools in the options of a model"):
        read(as_model(chat, tools=own), ASK)


def test_a_run_of_text_is_sent_no_tools(server: ChatService, chat: Any) -> None:
    list(as_model(chat)(ASK, stop=["x"]))  # type: ignore[call-overload]
    assert server.bodies[-1]["messages"] == ASK
    assert "tools" not in server.bodies[-1]


def test_a_fault_of_the_service(server: ChatService, chat: Any) -> None:
    told = {"message": "Failed.", "code": "tool_use_failed", "failed_generation": "<function=x"}
    server.error = (400, {"error": told})
    fault = FaultItem("tool_use_failed: Failed.", "<function=x")
    assert read(as_model(chat), ASK).items == (fault,)


@pytest.mark.parametrize("name", ["chat", "whole_chat"])
def test_a_whole_run(name: str, server: ChatService, request: pytest.FixtureRequest) -> None:
    done: list[str] = []

    @tool(repeatable=True)
    async def weather(city: str) -> str:
        """Get the weather of a city."""
        done.append(city)
        return "4 degrees"

    wrong = [("call", "a", "weather", '{"city": "Oslo", "day": 2}')]
    server.reset(wrong, SCENES["text and two calls"], END)
    chat = as_model(request.getfixturevalue(name))
    assert Agent(chat, protocol="native", tools=[weather]).run_sync("Do it.").value == "Done."
    assert done == ["Oslo", "Rom"]
    assert len(server.bodies) == 3


# ---- small chat models


class Small(core.BaseChatModel):  # type: ignore[misc, name-defined]
    """Answers with chunks, and keeps what it is called with."""

    chunks: list[Any]
    seen: list[Any]

    @property
    def _llm_type(self) -> str:
        return "small"

    def _generate(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def _stream(self, told: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        self.seen.append((told, options))
        for chunk in self.chunks:
            yield outputs.ChatGenerationChunk(message=chunk)


class Binding(Small):
    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
        return self.bind(tools=tools, tool_choice=tool_choice, **options)


class ChatAnthropic(Binding):
    __module__ = "langchain_anthropic.chat_models"


def small(*chunks: dict[str, Any], make: Any = Binding) -> Any:
    return make(
        chunks=[messages.AIMessageChunk(**{"content": "", **chunk}) for chunk in chunks], seen=[]
    )


def piece(index: Any, args: str, name: str | None = None, tool: str | None = None) -> Any:
    return {
        "type": "tool_call_chunk",
        "index": index,
        "id": name,
        "name": tool,
        "args": args,
    }


def test_a_chat_model_without_tools() -> None:
    assert as_model(small(make=Small)).accepts == {"stop"}
    assert as_model(small()).accepts == {"stop", "tools", "tool_choice"}


@pytest.mark.parametrize(
    ("make", "choice", "told"),
    [
        (Binding, ToolChoice(), None),
        (Binding, ToolChoice("required"), "any"),
        (Binding, ToolChoice("required", "pay"), "pay"),
        # It may take the word for the name of a tool.
        (Binding, ToolChoice("none"), None),
        (ChatAnthropic, ToolChoice("none"), {"type": "none"}),
        (Binding, ToolChoice(parallel=False), None),
    ],
)
def test_choices(make: Any, choice: ToolChoice, told: Any) -> None:
    chat = small({"content": "Done."}, make=make)
    read(as_model(chat), ASK, tool_choice=choice)
    options = chat.seen[-1][1]
    assert options["tool_choice"] == told
    assert "parallel_tool_calls" not in options


def test_calls_without_an_index() -> None:
    """Gemini's integration has whole calls in its chunks."""
    chat = small(
        {"tool_call_chunks": [piece(None, OSLO, "a", "weather"), piece(None, "{}", "b", "ping")]},
        {"tool_call_chunks": [piece(None, OSLO, "c", "weather")]},
    )
    assert joined(read(as_model(chat), ASK).items) == [
        ("call", "a", "weather", OSLO),
        ("call", "b", "ping", "{}"),
        ("call", "c", "weather", OSLO),
    ]


def test_signed_reasoning_goes_back() -> None:
    """Anthropic's integration has blocks, with the index of each."""
    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {}, "index": 2}
    chat = small(
        {"content": [{"type": "thinking", "thinking": "h", "index": 0}]},
        {"content": [{"type": "thinking", "thinking": "m", "index": 0}]},
        {"content": [{"type": "thinking", "signature": "s1", "index": 0}]},
        {"content": [{"type": "text", "text": "I'll look.", "index": 1}]},
        {"content": [call], "tool_call_chunks": [piece(2, "", "t1", "weather")]},
        {
            "content": [{"type": "input_json_delta", "partial_json": OSLO, "index": 2}],
            "tool_call_chunks": [piece(2, OSLO)],
        },
        {"response_metadata": {"stop_reason": "tool_use"}},
        make=ChatAnthropic,
    )
    model = as_model(chat)
    reply = read(model, ASK)
    assert reply.finish_reason == "stop"
    assert joined(reply.items) == [
        ("reasoning", "hm"),
        ("text", "I'll look."),
        ("call", "t1", "weather", OSLO),
    ]
    block = {"type": "thinking", "signature": "s1", "index": 0}
    assert data_of(reply.items) == [{"langchain/ChatAnthropic": {"block": block}}]
    own = replied(reply.items)
    read(model, [*ASK, own, results(own)])
    told = chat.seen[-1][0][2]
    assert told.content == [{**block, "thinking": "hm"}, {"type": "text", "text": "I'll look."}]
    assert told.tool_calls[0]["args"] == {"city": "Oslo"}
    assert chat.seen[-1][0][3].status == "success"
    # Another chat model gets none of it.
    other = small({"content": "Done."})
    read(as_model(other), [*ASK, own, results(own)])
    assert other.seen[-1][0][2].content == "I'll look."


def test_additional_kwargs_go_back() -> None:
    chat = small(
        {"additional_kwargs": {"reasoning_content": "hm"}},
        {
            "tool_call_chunks": [piece(0, OSLO, "a", "weather")],
            "additional_kwargs": {"signatures": {"a": "s1"}, "tool_calls": [{"index": 0}]},
        },
        {"response_metadata": {"finish_reason": "tool_calls"}},
    )
    model = as_model(chat)
    reply = read(model, ASK)
    assert data_of(reply.items) == [
        {"langchain/Binding": {"reasoning_content": True}},
        {"langchain/Binding": {"additional_kwargs": {"signatures": {"a": "s1"}}}},
    ]
    first, second = data_of(reply.items)
    own = {
        "role": "assistant",
        "content": "",
        "items": [
            {"reasoning": "hm", "data": first},
            {"call": "a", "tool": "weather", "arguments": OSLO},
            {"reasoning": "", "data": second},
        ],
    }
    read(model, [*ASK, own, results(own)])
    told = chat.seen[-1][0][2]
    assert told.additional_kwargs == {"signatures": {"a": "s1"}, "reasoning_content": "hm"}


def test_a_whole_message_with_the_calls_as_they_came() -> None:
    raw = {"id": "a", "function": {"name": "pay", "arguments": '{"amount": 7, "amount": 9}'}}
    message = messages.AIMessage(
        content="",
        additional_kwargs={"tool_calls": [raw]},
        tool_calls=[{"id": "a", "name": "pay", "args": {"amount": 9}}],
    )
    items = LangChainReader("x").take(message, whole=True)[1]
    assert joined(items) == [("call", "a", "pay", '{"amount": 7, "amount": 9}')]


def test_invalid_calls_of_a_whole_message() -> None:
    wrong = {"type": "invalid_tool_call", "id": "b", "name": "pay", "args": "{", "error": None}
    right = {"id": "a", "name": "weather", "args": {"city": "Tromsø"}}
    message = messages.AIMessage(content="", tool_calls=[right], invalid_tool_calls=[wrong])
    items = LangChainReader("x").take(message, whole=True)[1]
    assert joined(items) == [
        ("call", "a", "weather", '{"city": "Tromsø"}'),
        ("call", "b", "pay", "{"),
    ]


def test_refusals_and_reports() -> None:
    chat = small({"content": [{"type": "refusal", "refusal": "No."}]})
    with pytest.raises(ModelRefused, match=r"No\."):
        read(as_model(chat), ASK)
    chat = small({"content": "So"}, {"response_metadata": {"finish_reason": "content_filter"}})
    with pytest.raises(ModelRefused, match="withheld"):
        read(as_model(chat), ASK)
    with pytest.raises(ModelError, match="expected a message from the chat model"):
        LangChainReader("x").take({"answer": 7}, whole=True)


def test_text_of_a_parser() -> None:
    items: tuple[Item, ...] = LangChainReader("x").take("Done.", whole=False)[1]
    assert items == (TextItem("Done."),)
