"""What a model may return, read without any client library."""

from __future__ import annotations

import asyncio
import timeit
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip.errors import ModelError
from callslip.models import ModelChunk, ModelReply
from callslip.models._reply import AsyncReplyStream, ReplyStream, open_result
from callslip.models._shapes import read_finish, read_usage

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
TEXT = ": return or yield its text"
NATIVE_TOOL_CALL = (
    "expected text from the model: got a native tool call: tools are called in the text of the "
    'reply, so call the client without tools of its own, or pass protocol="native"'
)


def text_of(result: object) -> str:
    opened = open_result(result)
    if isinstance(opened, ModelReply):
        return opened.text
    assert isinstance(opened, ReplyStream)
    return "".join(chunk.text for chunk in opened)


async def text_of_async(result: Any) -> str:
    opened = open_result(await result if hasattr(result, "__await__") else result)
    if isinstance(opened, ModelReply):
        return opened.text
    assert isinstance(opened, AsyncReplyStream)
    return "".join([chunk.text async for chunk in opened])


class Text(str):
    """A string of a client's own class."""

    __slots__ = ()


# ---- what a model may return


@pytest.mark.parametrize(
    ("result", "reply"),
    [
        ("hi", ModelReply("hi")),
        ("", ModelReply("")),
        (Text("hi"), ModelReply("hi")),
        (ModelReply("hi", "length"), ModelReply("hi", "length")),
        (
            ModelChunk("hi", "stop", {"input_tokens": 1}),
            ModelReply("hi", "stop", {"input_tokens": 1}),
        ),
        (Obj(text="hi"), ModelReply("hi")),
        (Obj(text=Text("hi"), finish_reason=Obj(value="MAX_TOKENS")), ModelReply("hi", "length")),
        ({"text": "hi", "finish_reason": "stop"}, ModelReply("hi", "stop")),
        ({"role": "assistant", "content": "hi"}, ModelReply("hi")),
        # OpenAI, as objects and as dicts
        (
            Obj(choices=[Obj(message=Obj(content="hi"), finish_reason="stop")], usage=None),
            ModelReply("hi", "stop"),
        ),
        (
            {
                "choices": [{"message": {"content": "hi"}, "finish_reason": "length"}],
                "usage": {
                    "prompt_tokens": 9,
                    "completion_tokens": 2,
                    "total_tokens": 11,
                    "prompt_tokens_details": {"cached_tokens": 4},
                },
            },
            ModelReply("hi", "length", {"input_tokens": 9, "output_tokens": 2, "cached_tokens": 4}),
        ),
        ({"choices": [{"text": "hi", "finish_reason": "stop"}]}, ModelReply("hi", "stop")),
        (
            {"choices": [{"message": {"content": None}, "finish_reason": "length"}]},
            ModelReply("", "length"),
        ),
        (
            {"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "text": "a"}]},
            ModelReply("a", "unknown"),
        ),
        # Anthropic
        (
            {
                "type": "message",
                "content": [
                    {"type": "thinking", "thinking": "hm", "text": "hm"},
                    {"type": "text", "text": "h"},
                    {"type": "text", "text": "i"},
                ],
                "stop_reason": "max_tokens",
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 3,
                    "cache_creation_input_tokens": 2,
                    "output_tokens": 1,
                },
            },
            ModelReply(
                "hi", "length", {"input_tokens": 10, "output_tokens": 1, "cached_tokens": 3}
            ),
        ),
        # Ollama
        (
            {
                "message": {"role": "assistant", "content": "hi"},
                "done_reason": "stop",
                "prompt_eval_count": 7,
                "eval_count": 2,
            },
            ModelReply("hi", "stop", {"input_tokens": 7, "output_tokens": 2}),
        ),
        # LangChain
        (
            Obj(
                content="hi",
                tool_calls=[],
                response_metadata={"finish_reason": "stop"},
                usage_metadata={
                    "input_tokens": 7,
                    "output_tokens": 2,
                    "input_token_details": {"cache_read": 4},
                },
            ),
            ModelReply("hi", "stop", {"input_tokens": 7, "output_tokens": 2, "cached_tokens": 4}),
        ),
    ],
)
def test_whole_reply(result: object, reply: ModelReply) -> None:
    opened = open_result(result)
    assert opened == reply
    assert isinstance(opened, ModelReply)
    assert type(opened.text) is str


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "got None: does the function return its reply?"),
        (3, f"got int{TEXT}"),
        (b"hi", "got bytes: decode it first"),
        ({}, f"got dict{TEXT}"),
        ({"answer": "hi"}, f'got dict{TEXT}; it says: {{"answer": "hi"}}'),
        (Obj(text=None), f"got SimpleNamespace{TEXT}"),
        (Obj(model_dump=1, __iter__=1), f"got SimpleNamespace{TEXT}"),
        (object(), f"got object{TEXT}"),
    ],
)
def test_no_reply(result: object, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        open_result(result)
    assert str(caught.value) == (
        "expected a string, an object with .text, a client's response or an iterator of these "
        f"from the model: {message}"
    )


def test_awaitable_must_be_awaited_first() -> None:
    async def model() -> str:
        return "hi"

    result = model()
    with pytest.raises(ModelError, match="got coroutine: await it first$"):
        open_result(result)
    result.close()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            {"choices": []},
            'expected a reply from the model: got a response without choices: {"choices": []}; '
            "ask it again, or look at what its server says of the request",
        ),
        (
            {"choices": None, "error": {"message": "no credit", "code": 402}},
            "the model's server reported an error: no credit",
        ),
        ({"error": "overloaded"}, "the model's server reported an error: overloaded"),
        (
            {"choices": [{"message": {"content": "", "tool_calls": [{"id": "1"}]}}]},
            NATIVE_TOOL_CALL,
        ),
        ({"content": [{"type": "tool_use", "name": "f"}], "type": "message"}, NATIVE_TOOL_CALL),
        ({"message": {"content": "", "tool_calls": [{}]}}, NATIVE_TOOL_CALL),
        ({"text": "", "finish_reason": "tool_calls"}, NATIVE_TOOL_CALL),
        (
            {"choices": [{"message": {"content": "par"}, "finish_reason": "content_filter"}]},
            "the model's provider withheld the reply (content_filter); it had written: par",
        ),
        (
            {
                "type": "message",
                "content": [],
                "stop_reason": "refusal",
                "stop_details": {"explanation": "harm"},
            },
            "the model's provider withheld the reply (refusal): harm",
        ),
        (ModelChunk(text=None), "expected a string as the text of a chunk: got None"),  # type: ignore[arg-type]
    ],
)
def test_reply_without_text(result: object, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        open_result(result)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (["h", "", "i"], "hi"),
        ((Text("h"), Obj(text="i")), "hi"),
        (["h", ModelChunk("i"), ModelChunk("", "stop")], "hi"),
        ([{"choices": [{"delta": {"content": "h"}}]}, {"choices": []}, "i"], "hi"),
        ([{"choices": [{"index": 1, "delta": {"content": "b"}}]}, "i"], "i"),
        ([{"message": {"content": "h"}}, {"message": {"content": "i"}, "done": True}], "hi"),
        ([Obj(type="text", text="hi")], "hi"),
        ([Obj(type="ping"), Obj(type="text", text="hi", snapshot="hi"), "!"], "!"),
        ([], ""),
    ],
)
def test_streamed_reply(items: list[object], text: str) -> None:
    assert text_of(items) == text
    assert text_of(iter(items)) == text
    assert text_of(item for item in items) == text

    async def stream() -> AsyncIterator[object]:
        for item in items:
            yield item

    assert asyncio.run(text_of_async(stream())) == text


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "got None: does the function return its reply?"),
        (b"hi", "got bytes: decode it first"),
        (("content", "hi"), f"got tuple{TEXT}"),
    ],
)
def test_stream_of_something_else(item: object, message: str) -> None:
    stream = open_result(iter(["a", item]))
    assert isinstance(stream, ReplyStream)
    assert next(stream) == ModelChunk("a")
    with pytest.raises(ModelError) as caught:
        next(stream)
    assert str(caught.value) == (
        "expected strings, objects with .text or a client's chunks from the model's stream: "
        f"{message}"
    )


def test_native_tool_call_in_a_stream() -> None:
    for items in (
        [{"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}],
        [{"type": "content_block_start", "content_block": {"type": "tool_use"}}],
        [{"type": "response.output_item.added", "item": {"type": "function_call"}}],
    ):
        with pytest.raises(ModelError) as caught:
            text_of(items)
        assert str(caught.value) == NATIVE_TOOL_CALL


def test_error_in_a_stream() -> None:
    for item in (
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        {"error": {"message": "busy"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "busy"}}},
    ):
        with pytest.raises(ModelError, match="^the model's server reported an error: busy$"):
            text_of([item])


def test_closing_a_generator_runs_its_finally() -> None:
    ended: list[str] = []

    def sync_model() -> Iterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            ended.append("sync")

    async def async_model() -> AsyncIterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            ended.append("async")

    stream = open_result(sync_model())
    assert isinstance(stream, ReplyStream)
    assert next(stream).text == "a"
    stream.close()
    stream.close()
    assert ended == ["sync"]
    assert list(stream) == []

    async def close_early() -> None:
        stream = open_result(async_model())
        assert isinstance(stream, AsyncReplyStream)
        assert (await anext(stream)).text == "a"
        await stream.aclose()
        await stream.aclose()
        assert ended == ["sync", "async"]

    asyncio.run(close_early())


def test_closing_reaches_iterables_and_iterators_alike() -> None:
    closed: list[str] = []

    class Stream:
        def __iter__(self) -> Iterator[str]:
            try:
                yield "a"
            finally:
                closed.append("iterator")

        def close(self) -> None:
            closed.append("stream")

    stream = open_result(Stream())
    assert isinstance(stream, ReplyStream)
    next(stream)
    stream.close()
    assert closed == ["iterator", "stream"]


class BothWays:
    """A stream like LiteLLM's: sync and async at once, with the client's stream inside."""

    def __init__(self, completion_stream: object) -> None:
        self.completion_stream = completion_stream

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return "sync"

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        return "async"


def test_a_stream_that_goes_both_ways() -> None:
    closed: list[str] = []

    class AsyncStream:
        async def close(self) -> None:
            closed.append("async")

    stream = open_result(BothWays(Obj(close=lambda: closed.append("sync"))))
    assert isinstance(stream, ReplyStream)
    assert next(stream).text == "sync"
    stream.close()

    async def read_one() -> None:
        stream = open_result(BothWays(AsyncStream()), awaited=True)
        assert isinstance(stream, AsyncReplyStream)
        assert (await anext(stream)).text == "async"
        await stream.aclose()

    asyncio.run(read_one())
    assert closed == ["sync", "async"]


def test_errors_of_a_stream_pass_through() -> None:
    def model() -> Iterator[str]:
        yield "a"
        raise TimeoutError("slow")

    with pytest.raises(TimeoutError, match="^slow$"):
        text_of(model())


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        (None, None),
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        (Obj(value="MAX_TOKENS"), "length"),
    ],
)
def test_finish_reason(reason: object, read: str | None) -> None:
    assert read_finish(reason) == read


def test_usage_of_litellm_is_not_counted_twice() -> None:
    usage = Obj(prompt_tokens=10, completion_tokens=1, cache_read_input_tokens=4)
    assert read_usage(usage) == {"input_tokens": 10, "output_tokens": 1}
    assert read_usage(Obj(prompt_tokens=None, flag=True)) is None


def test_cost_is_read_where_it_is_told() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.0005}
    assert read_usage(usage) == {"input_tokens": 10, "output_tokens": 1, "cost": 0.0005}


def test_a_string_costs_next_to_nothing() -> None:
    # A ratio, not seconds: a reply is one small object.
    plain = min(timeit.repeat(lambda: ModelReply("hi"), number=5000, repeat=9))
    opened = min(timeit.repeat(lambda: open_result("hi"), number=5000, repeat=9))
    assert opened < 3 * plain
