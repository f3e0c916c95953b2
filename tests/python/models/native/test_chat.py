"""Tool calls of chat completions, by OpenAI's own client, whole and streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from callslip.errors import ContextFull, ModelError, ModelRefused, UsageError
from callslip.models import ClientModel, ModelReply, as_model
from callslip.models._items import (
    CallItem,
    FaultItem,
    Item,
    TextItem,
    ToolChoice,
    ToolForm,
)
from callslip.models.native._chat import ChatReader
from callslip.models.native._chat_messages import dialect_of
from callslip.models.native._faults import fault_of
from callslip.models.native._reading import NativeStream, NativeStreamAsync, read_native
from callslip.parts import File, Image
from optional import optional_module
from pictures import png
from services.chat import (
    OSLO,
    SCENES,
    ChatService,
    chat_service,
    chunk,
    data_of,
    expected,
    joined,
    replied,
    results,
    whole,
    why_refused,
)

openai = optional_module("openai")

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    ToolForm("weather", "Get the weather.", CITY, strict=True),
    ToolForm("pay", "", {"type": "object", "properties": {"amount": {"type": "number"}}}),
    ToolForm("ping", "Ping.", {"type": "object", "properties": {}}, strict=False),
]
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Do it."}]
END = [("text", "Done.")]
COUNTS = {"input_tokens": 12, "output_tokens": 3}


@pytest.fixture(scope="module")
def running() -> Iterator[ChatService]:
    with chat_service() as server:
        yield server


@pytest.fixture
def server(running: ChatService) -> ChatService:
    running.reset(END)
    return running


@pytest.fixture(scope="module")
def client(running: ChatService) -> Any:
    with openai.OpenAI(base_url=running.base, api_key="k", max_retries=0) as client:
        yield client


def read(model: ClientModel, messages: Any, **offered: Any) -> ModelReply:
    """A reply to a request with tools, read to its end."""
    offered = {"tools": TOOLS, "tool_choice": ToolChoice(), **offered}
    result = model(messages, **offered)
    if isinstance(result, ModelReply):
        return result
    assert not hasattr(result, "__await__")
    chunks = list(result)  # type: ignore[call-overload]
    ends = [one.finish_reason for one in chunks if one.finish_reason]
    usage = [one.usage for one in chunks if one.usage]
    items = tuple(item for one in chunks for item in one.items)
    return ModelReply("", ends[-1] if ends else None, usage[-1] if usage else None, items=items)


async def read_async(model: ClientModel, messages: Any) -> ModelReply:
    result: Any = await model(messages, tools=TOOLS, tool_choice=ToolChoice())  # type: ignore[misc]
    if isinstance(result, ModelReply):
        return result
    assert isinstance(result, NativeStreamAsync)
    chunks = [one async for one in result]
    items = tuple(item for one in chunks for item in one.items)
    return ModelReply("", chunks[-2].finish_reason, chunks[-1].usage, items=items)


# ---- the scenes


SPLITS = [None, 1, 3, 1000]


def check_scene(name: str, reply: ModelReply) -> None:
    assert joined(reply.items) == expected(SCENES[name])
    assert reply.finish_reason == ("length" if ("cut",) in SCENES[name] else "stop")
    assert reply.usage == COUNTS
    assert reply.text == ""


@pytest.mark.parametrize("name", SCENES)
def test_each_scene(name: str, server: ChatService, client: Any) -> None:
    for split in SPLITS:
        server.reset(SCENES[name], END)
        server.split, server.is_mixed = split or 1, split == 1
        server.needs_reasoning = name.startswith("reasoning")
        model = as_model(client, model="m", stream=split is not None)
        if name == "a refusal":
            with pytest.raises(ModelRefused, match="I can't help with that"):
                read(model, ASK)
            continue
        reply = read(model, ASK)
        check_scene(name, reply)
        if split in (3, 1000):
            # The same items, so the same request.
            continue
        own = replied(reply.items)
        last = read(model, [*ASK, own, results(own, "Go on.")])
        assert joined(last.items) == [("text", "Done.")]


def test_each_scene_async(server: ChatService) -> None:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=server.base, api_key="k", max_retries=0) as client:
            for name in SCENES:
                for split in (None, 3):
                    await scene(client, name, split)

    async def scene(client: Any, name: str, split: int | None) -> None:
        server.reset(SCENES[name], END)
        server.split = split or 1
        server.needs_reasoning = name.startswith("reasoning")
        model = as_model(client, model="m", stream=split is not None)
        if name == "a refusal":
            with pytest.raises(ModelRefused):
                await read_async(model, ASK)
            return
        reply = await read_async(model, ASK)
        check_scene(name, reply)
        own = replied(reply.items)
        last = await read_async(model, [*ASK, own, results(own)])
        assert len(server.bodies) == 2
        assert joined(last.items) == [("text", "Done.")]

    asyncio.run(main())


# ---- the request


def test_tools_and_choices(server: ChatService, client: Any) -> None:
    model = as_model(client, model="m", stream=False)
    read(model, ASK)
    body = server.bodies[-1]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Get the weather.",
                "parameters": CITY,
                "strict": True,
            },
        },
        {"type": "function", "function": {"name": "pay", "parameters": TOOLS[1].parameters}},
        {
            "type": "function",
            "function": {
                "name": "ping",
                "description": "Ping.",
                "parameters": TOOLS[2].parameters,
            },
        },
    ]
    assert not {"tool_choice", "parallel_tool_calls"} & body.keys()
    for choice, told in (
        (ToolChoice("required"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required", "pay"), {"type": "function", "function": {"name": "pay"}}),
    ):
        read(model, ASK, tool_choice=choice)
        assert server.bodies[-1]["tool_choice"] == told
        assert json.dumps(server.bodies[-1]["tools"]) == json.dumps(body["tools"])
    read(model, ASK, tool_choice=ToolChoice(parallel=False))
    assert server.bodies[-1]["parallel_tool_calls"] is False
    read(model, ASK, tools=[], tool_choice=ToolChoice("none", parallel=False))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.bodies[-1].keys()


def test_options_of_the_run_and_of_the_model(server: ChatService, client: Any) -> None:
    model = as_model(client, model="m", temperature=0)
    assert {"tools", "tool_choice"} <= model.accepts
    read(model, ASK, seed=7, max_tokens=99)
    body = server.bodies[-1]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0, 7, 99)
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("name", ["tools", "tool_choice", "functions"])
def test_tools_of_its_own(name: str, client: Any) -> None:
    model = as_model(client, model="m", **{name: [{"type": "web_search"}]})
    with pytest.raises(UsageError, match=f"expected no {name} in the options of a model"):
        read(model, ASK)


def test_a_run_of_text_is_sent_no_tools(server: ChatService, client: Any) -> None:
    model = as_model(client, model="m", stream=False)
    model(ASK, stop=["x"])
    assert server.bodies[-1] == {"model": "m", "messages": ASK, "stop": ["x"]}


def test_results_stand_before_all_else(server: ChatService, client: Any) -> None:
    own = {
        "role": "assistant",
        "content": "",
        "items": [
            {"call": "call_1", "tool": "weather", "arguments": OSLO},
            {"call": "", "tool": "a b", "arguments": '{"city": "Os'},
        ],
    }
    image = Image(png(2, 2))
    after = {**results(own, "Look.", "Go on."), "parts": [image]}
    read(as_model(client, model="m", stream=False), [*ASK, own, after])
    bad = json.dumps({"INVALID_JSON": '{"city": "Os'})
    assert server.bodies[-1]["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": OSLO},
                },
                {
                    "id": "c00002001",
                    "type": "function",
                    "function": {"name": "a_b", "arguments": bad},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
        {"role": "tool", "tool_call_id": "c00002001", "content": "error: 4 degrees"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look.\n\nGo on."},
                {"type": "image_url", "image_url": {"url": image.to_url()}},
            ],
        },
    ]


def test_images_alone_behind_results(server: ChatService, client: Any) -> None:
    own = {
        "role": "assistant",
        "content": "",
        "items": [{"call": "call_1", "tool": "weather", "arguments": OSLO}],
    }
    file = File(b"%PDF-1.4", media_type="application/pdf", name="a.pdf")
    after = {**results(own), "parts": [file]}
    read(as_model(client, model="m", stream=True), [*ASK, own, after])
    tool, user = server.bodies[-1]["messages"][3:]
    assert tool["role"] == "tool"
    assert [block["type"] for block in user["content"]] == ["file"]
    # A model that takes none is told of them by their text alone.
    read(as_model(client, model="m", parts=()), [*ASK, own, after])
    assert [one["role"] for one in server.bodies[-1]["messages"]][3:] == ["tool"]


def test_earlier_conversation_alternates(server: ChatService, client: Any) -> None:
    earlier = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "One."},
        {"role": "user", "content": "Two."},
    ]
    reasoning = {"role": "assistant", "content": "", "items": [{"reasoning": "hm"}]}
    again = {"role": "user", "content": "Again.", "items": [{"text": "Again."}]}
    read(as_model(client, model="m"), [ASK[0], *earlier, reasoning, again])
    assert server.bodies[-1]["messages"][3:] == [
        {"role": "user", "content": "One.\n\nTwo.\n\nAgain."}
    ]


def test_what_the_service_refuses() -> None:
    """The stand-in refuses what real ones refuse, or the scenes would prove nothing."""
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    own = {"role": "assistant", "content": None, "tool_calls": [call]}
    told = {"role": "tool", "tool_call_id": "a", "content": "4"}
    user = {"role": "user", "content": "Hi."}
    bad = {**call, "function": {"name": "weather", "arguments": "{"}}
    assert why_refused({"messages": [user, own, told]}) is None
    for messages in (
        [user, own],
        [user, own, user, told],
        [user, told],
        [user, own, told, own, told],
        [user, {**own, "tool_calls": [call, call]}, told],
        [user, {**own, "tool_calls": [bad]}, told],
        [user, {"role": "assistant", "content": None}],
        [user, {**own, "reasoning_content": "hm"}, told],
    ):
        assert why_refused({"messages": messages}) is not None
    assert why_refused({"messages": [user, own, told]}, needs_reasoning=True) is not None


# ---- reasoning and data that go back


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_reasoning_goes_back_in_a_tool_turn(stream: bool, server: ChatService, client: Any) -> None:
    server.reset([("think", "hm"), *SCENES["one call"]], [("think", "so"), ("text", "4.")], END)
    server.split, server.needs_reasoning = 1, True
    model = as_model(client, model="m", stream=stream)
    reply = read(model, ASK)
    assert data_of(reply.items) == [{"chat/127.0.0.1": {"reasoning_content": True}}]
    own = replied(reply.items)
    told = [*ASK, own, results(own)]
    final = replied(read(model, told).items)
    assert server.bodies[-1]["messages"][2]["reasoning_content"] == "hm"
    more = {"role": "user", "content": "And?", "items": [{"text": "And?"}]}
    last = replied(read(model, [*told, final, more]).items)
    assert [one.get("reasoning_content") for one in server.bodies[-1]["messages"]][2:] == [
        "hm",
        None,
        "so",
        None,
    ]
    # An answer without a call before it goes back without.
    read(model, [*told, final, more, {**last, "items": [*final["items"], *last["items"]]}, more])
    assert "reasoning_content" not in server.bodies[-1]["messages"][-2]


def test_reasoning_goes_back_nowhere_else(server: ChatService, client: Any) -> None:
    server.reset([("think", "hm"), *SCENES["one call"]], END)
    model = as_model(client, model="m")
    own = replied(read(model, ASK).items)
    other = {"chat/api.deepseek.com": {"reasoning_content": True}}
    own["items"][0]["data"] = other
    read(model, [*ASK, own, results(own)])
    assert "reasoning_content" not in server.bodies[-1]["messages"][2]
    # Servers that call it `reasoning` refuse it.
    server.reset([("think", "hm"), *SCENES["one call"]], END)
    server.thinking = "reasoning"
    reply = read(model, ASK)
    assert joined(reply.items)[0] == ("reasoning", "hm")
    assert data_of(reply.items) == []


GEMINI = {"extra_content": {"google": {"thought_signature": "c2ln"}}}


def test_the_signature_of_a_call_goes_back(server: ChatService, client: Any) -> None:
    reader = ChatReader("chat/127.0.0.1")
    call = {"index": 0, "id": "f1", "function": {"name": "weather", "arguments": OSLO}, **GEMINI}
    items = take(reader, chunk({"tool_calls": [call]}, "tool_calls"))
    assert data_of(items) == [{"chat/127.0.0.1": GEMINI}]
    own = replied(items)
    model = as_model(lambda *, model, messages, **sent: messages, model="m", stream=False)
    model._dialect = dialect_of(None, "127.0.0.1", "m")  # type: ignore[attr-defined]
    turns = messages_of(model, [*ASK, own, results(own)])
    assert turns[2]["tool_calls"][0]["extra_content"] == GEMINI["extra_content"]


def messages_of(model: ClientModel, messages: Any) -> list[dict[str, Any]]:
    """The messages that a model would send."""
    kept: list[Any] = []

    def create(*, model: str, messages: Any, **sent: Any) -> dict[str, Any]:
        kept.append(messages)
        return {"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}

    model._client = create
    read(model, messages)
    told: list[dict[str, Any]] = kept[0]
    return told


def thinking(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, **more}


@pytest.mark.parametrize(
    "deltas",
    [
        # LiteLLM, whole and in pieces, with and without the text in the blocks.
        [{"thinking_blocks": [thinking("hm, so", signature="s1")]}],
        [
            {"reasoning_content": "hm,", "thinking_blocks": [thinking("hm,", signature=None)]},
            {"reasoning_content": " so", "thinking_blocks": [thinking(" so", signature="")]},
            {"thinking_blocks": [thinking("", signature="s1")]},
        ],
        [
            {"reasoning_content": "hm,"},
            {"reasoning_content": " so"},
            {"thinking_blocks": [thinking("", signature="s1")]},
        ],
    ],
)
def test_signed_reasoning_goes_back(deltas: list[dict[str, Any]]) -> None:
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    call = {"index": 0, "id": "f1", "function": {"name": "weather", "arguments": OSLO}}
    reader = ChatReader("litellm/anthropic")
    items = take(
        reader,
        *map(chunk, deltas),
        chunk({"thinking_blocks": [hidden]}),
        chunk({"tool_calls": [call]}, "tool_calls"),
    )
    assert joined(items)[0] == ("reasoning", "hm, so")
    assert data_of(items) == [
        {"litellm/anthropic": {"thinking_blocks": {"type": "thinking", "signature": "s1"}}},
        {"litellm/anthropic": {"thinking_blocks": hidden}},
    ]
    first, second = data_of(items)
    own = {
        "role": "assistant",
        "content": "",
        "items": [
            {"reasoning": "hm, so", "data": first},
            {"reasoning": "", "data": second},
            {"call": "f1", "tool": "weather", "arguments": OSLO},
        ],
    }
    model = as_model(lambda *, model, messages, **sent: None, model="anthropic/c")
    model._dialect = dialect_of(litellm_completion, "", "anthropic/c")  # type: ignore[attr-defined]
    sent = messages_of(model, [*ASK, own, results(own)])[2]
    assert sent["thinking_blocks"] == [thinking("hm, so", signature="s1"), hidden]
    assert "reasoning_content" not in sent


def litellm_completion() -> None:
    """Stands for `litellm.completion`."""


litellm_completion.__module__ = "litellm.main"


def test_details_of_reasoning_go_back() -> None:
    """OpenRouter: pieces with an index, and what only the provider can read."""
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "xyz", "index": 1}
    reader = ChatReader("chat")
    items = take(
        reader,
        chunk({"reasoning": "h", "reasoning_details": [{**text, "text": "h"}]}),
        chunk({"reasoning": "m", "reasoning_details": [{**text, "text": "m"}]}),
        chunk({"reasoning_details": [{**text, "signature": "s1"}]}),
        chunk({"reasoning_details": [sealed]}),
        chunk({"content": "So."}, "stop"),
    )
    assert joined(items) == [("reasoning", "hm"), ("text", "So.")]
    assert data_of(items) == [
        {"chat": {"reasoning_details": {**text, "signature": "s1"}}},
        {"chat": {"reasoning_details": sealed}},
    ]


# ---- the pieces of calls


def take(reader: ChatReader, *chunks: dict[str, Any]) -> list[Item]:
    return [item for one in chunks for item in reader.take(one, whole=False)[1]]


def deltas(*calls: dict[str, Any], finish: str = "tool_calls") -> list[tuple[str, ...]]:
    """The items of a stream with a piece of a call in each chunk."""
    chunks = [chunk({"tool_calls": [call]}) for call in calls]
    return joined(take(ChatReader("chat"), *chunks, chunk({}, finish)))


def delta(
    index: int | None, arguments: str | None, name: str | None = None, tool: str | None = None
) -> dict[str, Any]:
    return {"index": index, "id": name, "function": {"name": tool, "arguments": arguments}}


def test_an_index_used_again_with_another_id_is_another_call() -> None:
    assert deltas(
        delta(0, OSLO, "a", "weather"), delta(0, '{"amount"', "b", "pay"), delta(0, ": 5}")
    ) == [("call", "a", "weather", OSLO), ("call", "b", "pay", '{"amount": 5}')]


def test_an_index_used_again_with_another_name_is_another_call() -> None:
    assert deltas(delta(0, OSLO, "", "weather"), delta(0, '{"amount": 5}', "", "pay")) == [
        ("call", "", "weather", OSLO),
        ("call", "", "pay", '{"amount": 5}'),
    ]


def test_a_name_and_an_id_in_each_piece() -> None:
    pieces = [delta(0, piece, "a", "weather") for piece in (OSLO[:5], OSLO[5:8], OSLO[8:])]
    assert deltas(*pieces) == [("call", "a", "weather", OSLO)]
    assert deltas(
        *(delta(None, piece["function"]["arguments"], "a", "weather") for piece in pieces)
    ) == [("call", "a", "weather", OSLO)]


def test_a_second_object_without_an_id_is_not_guessed_to_be_a_call() -> None:
    """It may be one piece of a call that is wrong: where a stream is cut says nothing."""
    assert deltas(delta(0, '{"amount": 5}', "", "pay"), delta(0, '{"amount": 6}', "", "pay")) == [
        ("call", "", "pay", '{"amount": 5}{"amount": 6}')
    ]


def test_calls_in_one_list() -> None:
    both = [delta(0, OSLO, "", "weather"), delta(0, '{"city": "Rom"}', "", "weather")]
    items = take(ChatReader("chat"), chunk({"tool_calls": both}, "stop"))
    assert [one[3] for one in joined(items)] == [OSLO, '{"city": "Rom"}']
    without = [delta(None, OSLO, None, "weather"), delta(None, "{}", None, "ping")]
    items = take(ChatReader("chat"), chunk({"tool_calls": without}, "stop"))
    assert [one[2] for one in joined(items)] == ["weather", "ping"]


def test_an_id_that_comes_late() -> None:
    assert deltas(delta(0, "", None, "weather"), delta(0, OSLO, "a")) == [
        ("call", "a", "weather", OSLO)
    ]


@pytest.mark.parametrize("end", ["tool_calls", "stop", "function_call", "TOOL_CALLS"])
def test_the_ends_of_calls(end: str) -> None:
    chunks = [chunk({"tool_calls": [delta(at, "{}", f"c{at}", "ping")]}) for at in (0, 1)]
    reader = ChatReader("chat")
    take(reader, *chunks)
    piece, items = reader.take(chunk({}, end), whole=False)
    assert (piece.finish_reason, piece.is_service) == ("stop", True)
    assert items == (CallItem(0, is_whole=True), CallItem(1, is_whole=True))
    # Some servers say it once more, beside the counts.
    assert reader.take(chunk({}, end), whole=False)[1] == ()


def test_a_cut_call_has_no_end() -> None:
    reader = ChatReader("chat")
    take(reader, chunk({"tool_calls": [delta(0, "{", "a", "ping")]}))
    piece, items = reader.take(chunk({}, "length"), whole=False)
    assert (piece.finish_reason, items) == ("length", ())


def test_a_whole_reply_that_was_cut() -> None:
    cut = [*SCENES["one call"], *SCENES["cut by length"]]
    items = ChatReader("chat").take(whole(cut), whole=True)[1]
    assert [item.index for item in items if isinstance(item, CallItem) and item.is_whole] == [0]


def test_the_older_interface() -> None:
    legacy = [
        {"name": "weather", "arguments": ""},
        {"arguments": OSLO[:4]},
        {"arguments": OSLO[4:]},
    ]
    chunks = [chunk({"function_call": one}) for one in legacy]
    items = take(ChatReader("chat"), *chunks, chunk({}, "function_call"))
    assert joined(items) == [("call", "", "weather", OSLO)]


def test_arguments_as_an_object() -> None:
    call = {"id": "a", "function": {"name": "weather", "arguments": {"city": "Tromsø"}}}
    message = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    items = ChatReader("chat").take(message, whole=True)[1]
    assert joined(items) == [("call", "a", "weather", '{"city": "Tromsø"}')]


def test_a_last_chunk_that_repeats_the_reply() -> None:
    call = delta(0, OSLO, "a", "weather")
    message = {"role": "assistant", "content": "I'll look.", "tool_calls": [call]}
    reader = ChatReader("chat")
    last = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    items = take(
        reader,
        chunk({"content": "I'll "}),
        chunk({"content": "look."}),
        chunk({"tool_calls": [call]}),
    )
    items += take(reader, last)
    assert joined(items) == [("text", "I'll look."), ("call", "a", "weather", OSLO)]


# ---- errors


def test_a_stream_that_broke_off(server: ChatService, client: Any) -> None:
    server.reset(SCENES["text and two calls"])
    server.is_broken_off = True
    reply = read(as_model(client, model="m"), ASK)
    assert reply.finish_reason == "length"
    assert not any(isinstance(item, CallItem) and item.is_whole for item in reply.items)


GROQ = {
    "message": "Failed to call a function. Please adjust your prompt.",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": '<function=weather{"city": "Oslo"}</function>',
}
LLAMA = {
    "code": 500,
    "message": "Failed to parse input at pos 12: <tool_call>\n<function=x",
    "type": "server_error",
}
FAULTS = {
    "groq": (
        (400, {"error": GROQ}),
        FaultItem(f"tool_use_failed: {GROQ['message']}", GROQ["failed_generation"]),
    ),
    "llama.cpp": (
        (500, {"error": LLAMA}),
        FaultItem("the server could not parse the reply", "<tool_call>\n<function=x"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_service(name: str, server: ChatService, client: Any) -> None:
    (status, body), fault = FAULTS[name]
    server.error = (status, body)
    model = as_model(client, model="m")
    assert read(model, ASK).items == (fault,)
    server.error, server.late_error = None, body["error"]
    server.reset([("text", "I'll look.")])
    server.late_error = body["error"]
    reply = read(model, ASK)
    assert reply.items == (TextItem("I'll look."), fault)
    assert reply.finish_reason == "stop"

    async def main() -> tuple[Item, ...]:
        async with openai.AsyncOpenAI(base_url=server.base, api_key="k", max_retries=0) as own:
            result: Any = await as_model(own, model="m")(ASK, tools=TOOLS)  # type: ignore[misc]
            return tuple([item async for one in result for item in one.items])

    assert asyncio.run(main()) == (TextItem("I'll look."), fault)


def test_other_errors_are_raised(server: ChatService, client: Any) -> None:
    for status, words in ((400, "Invalid schema"), (500, "Failed to parse tool call arguments")):
        server.error = (status, {"error": {"message": words}})
        with pytest.raises(openai.APIStatusError, match=words):
            read(as_model(client, model="m"), ASK)
    server.error, server.late_error = None, {"message": "the server is overloaded"}
    with pytest.raises(openai.APIError, match="overloaded"):
        read(as_model(client, model="m"), ASK)


def test_a_fault_that_a_library_has_in_its_words() -> None:
    error = ValueError(f"GroqException - {json.dumps({'error': GROQ})}. Received Model Group=m")
    assert fault_of(error) == FAULTS["groq"][1]
    assert fault_of(ValueError("GroqException - {'failed_generation'")) is None


def test_a_finish_reason_that_tells_of_a_fault() -> None:
    reason = "function_call_filter: MALFORMED_FUNCTION_CALL"
    piece, items = ChatReader("chat").take(chunk({}, reason), whole=False)
    assert (piece.finish_reason, items) == ("stop", (FaultItem(reason),))


@pytest.mark.parametrize(
    ("body", "failure", "words"),
    [
        ({"error": {"message": "no such model"}}, ModelError, "no such model"),
        ({"choices": []}, ModelError, "a response without choices"),
        ({"id": 7}, ModelError, "expected a chat completion from the model's server"),
        (
            {"choices": [{"message": {"content": "x"}, "finish_reason": "model_length"}]},
            ContextFull,
            "the context of the model is full",
        ),
        (
            {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]},
            ModelRefused,
            "withheld the reply",
        ),
    ],
)
def test_bodies_without_a_reply(body: Any, failure: type[Exception], words: str) -> None:
    with pytest.raises(failure, match=words):
        read_native(body, ChatReader("chat"))


def test_a_server_that_does_not_stream(server: ChatService, client: Any) -> None:
    server.error = (200, whole(SCENES["reasoning, text and two calls"]))
    reply = read(as_model(client, model="m"), ASK)
    assert joined(reply.items) == expected(SCENES["reasoning, text and two calls"])


def test_an_empty_reply_is_left_to_the_reader(server: ChatService, client: Any) -> None:
    for stream in (True, False):
        server.reset([])
        assert read(as_model(client, model="m", stream=stream), ASK).items == ()


def test_a_function_that_returns_text() -> None:
    def create(*, model: str, messages: Any, **sent: Any) -> str:
        return "Done."

    assert joined(read(as_model(create, model="m"), ASK).items) == [("text", "Done.")]


# ---- dialects


def test_dialects() -> None:
    assert dialect_of(litellm_completion, "", "anthropic/c").service == "litellm/anthropic"
    assert dialect_of(litellm_completion, "", "gpt").service == "litellm/gpt"
    assert dialect_of(print, "api.x.ai", "m").service == "chat/api.x.ai"
    assert dialect_of(litellm_completion, "", "gemini/g").ids.fullmatch("call_1__thought__a+/b==")


def test_mistral_by_chat_completions() -> None:
    model = as_model(lambda *, model, messages, **sent: None, model="m")
    model._dialect = dialect_of(None, "api.mistral.ai", "m")  # type: ignore[attr-defined]
    own = replied([CallItem(0, "call_1", "weather", OSLO), CallItem(1, "abcDEF123", "pay", "{}")])
    sent = messages_of(model, [*ASK, own, results(own, "Go on.")])
    assert [one["id"] for one in sent[2]["tool_calls"]] == ["c00002000", "abcDEF123"]
    assert [one["role"] for one in sent[3:]] == ["tool", "tool", "assistant", "user"]
    assert sent[5]["content"] == "OK"


def test_streams_are_closed(server: ChatService, client: Any) -> None:
    server.reset(SCENES["text and two calls"])
    server.split = 1
    result = as_model(client, model="m")(ASK, tools=TOOLS)
    assert isinstance(result, NativeStream)
    next(result)
    result.close()
    assert result._source.response.is_closed  # type: ignore[attr-defined]
