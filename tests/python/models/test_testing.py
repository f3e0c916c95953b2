"""The models for tests: `ScriptedModel` and `FunctionModel`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callslip import Agent
from callslip.errors import RunFailed, UsageError
from callslip.models import ModelChunk, ModelReply
from callslip.models._call import ModelCall
from callslip.models._reply import AsyncReplyStream, ReplyStream, open_result
from callslip.models.testing import FunctionModel, ScriptedModel, UnexpectedCall

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]


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


# ---- models for tests


def test_script_is_followed_in_order_and_recorded() -> None:
    with ScriptedModel(
        ["one", ModelReply("two", "length"), lambda messages: messages[-1]["content"]]
    ) as model:
        call = ModelCall(model)
        assert call.accepts == {"stop", "seed", "max_tokens", "tools", "tool_choice"}
        messages = [dict(one) for one in ASK]
        assert open_result(call(messages, stop=["x"])) == ModelReply("one")
        messages[0]["content"] = "changed later"
        assert open_result(call(messages)) == ModelReply("two", "length")
        assert text_of(call(messages)) == "hello"
    assert [one.options for one in model.requests] == [{"stop": ["x"]}, {}, {}]
    assert model.requests[0].messages == ASK
    assert [one.sent for one in model.requests] == ["one", "two", "hello"]


def test_script_streams() -> None:
    model = ScriptedModel(["abcde", ["x", ModelChunk("y", "length")]], chunk_size=2)
    assert list(open_result(model(ASK))) == [  # type: ignore[arg-type]
        ModelChunk("ab"),
        ModelChunk("cd"),
        ModelChunk("e"),
        ModelChunk("", "stop"),
    ]
    assert list(open_result(model(ASK))) == [ModelChunk("x"), ModelChunk("y", "length")]  # type: ignore[arg-type]


def test_early_stop_is_seen_in_the_request() -> None:
    for is_async in (False, True):
        model = ScriptedModel(["abcdef"], chunk_size=2, is_async=is_async)

        async def stop_early(model: ScriptedModel = model) -> None:
            result: Any = model(ASK)
            stream = open_result(await result if model.is_async else result)
            if isinstance(stream, AsyncReplyStream):
                await anext(stream)
                await stream.aclose()
            else:
                assert isinstance(stream, ReplyStream)
                next(stream)
                stream.close()

        asyncio.run(stop_early())
        assert model.requests[0].sent == "ab"
        assert model.requests[0].closed


def test_async_script() -> None:
    async def ask() -> None:
        model = ScriptedModel(["one", ["t", "wo"], KeyError("k")], is_async=True)
        assert ModelCall(model).is_async
        assert await text_of_async(model(ASK)) == "one"
        assert await text_of_async(model(ASK)) == "two"
        with pytest.raises(KeyError):
            await text_of_async(model(ASK))
        with pytest.raises(UnexpectedCall):
            await text_of_async(model(ASK))

    asyncio.run(ask())


def test_script_raises() -> None:
    model = ScriptedModel([TimeoutError("slow"), ["a", TimeoutError("cut")], ValueError])
    with pytest.raises(TimeoutError, match="^slow$"):
        model(ASK)
    with pytest.raises(TimeoutError, match="^cut$"):
        text_of(model(ASK))
    with pytest.raises(ValueError, match="^$"):
        model(ASK)


def test_unexpected_call_prints_the_unanswered_messages() -> None:
    model = ScriptedModel(["one"])
    model(ASK)
    messages = [*ASK, {"role": "assistant", "content": "one"}, {"role": "user", "content": "more"}]
    with pytest.raises(UnexpectedCall) as caught:
        model(messages)
    assert str(caught.value) == (
        "expected no call 2: the script has 1 reply; unanswered:\n[3] user: more"
    )
    with pytest.raises(UnexpectedCall) as caught:
        ScriptedModel([])([{"role": "user", "content": "x" * 5000}])
    assert str(caught.value) == (
        "expected no call 1: the script has 0 replies; unanswered:\n"
        f"[0] user: {'x' * 1000} ... (3000 characters left out) ... {'x' * 1000}"
    )


def test_unused_replies_are_told() -> None:
    model = ScriptedModel(["one", "two"])
    model(ASK)
    with pytest.raises(AssertionError) as caught:
        model.assert_done()
    assert str(caught.value) == "expected 2 calls: got 1; replies left:\n- two"
    with pytest.raises(AssertionError, match="replies left"), ScriptedModel(["one"]):
        pass
    with pytest.raises(KeyError), ScriptedModel(["one"]):
        raise KeyError


def test_a_call_too_many_is_told_though_the_test_has_caught_it() -> None:
    def caught() -> None:
        with pytest.raises(RunFailed):
            Agent(model, protocol="react").run_sync("go")

    model = ScriptedModel(["no move"])
    caught()
    for _ in range(2):
        with pytest.raises(UnexpectedCall, match="^expected no call 2: the script has 1 reply"):
            model.assert_done()
    with pytest.raises(UnexpectedCall, match="call 1"), ScriptedModel([]) as model:
        caught()


@pytest.mark.parametrize("reply", [3, None, b"x", {"text": "x"}])
def test_wrong_script(reply: Any) -> None:
    with pytest.raises(UsageError, match="^expected a string, a ModelReply, pieces to stream, an"):
        ScriptedModel([reply])(ASK)
    with pytest.raises(UsageError, match="^expected a string, a ModelReply, pieces to stream, an"):
        FunctionModel(lambda messages: reply)(ASK)


def test_wrong_arguments_of_a_script() -> None:
    with pytest.raises(UsageError, match="^expected a list of replies: got a string"):
        ScriptedModel("one")
    with pytest.raises(UsageError, match="^expected chunk_size to be a whole number from 1"):
        ScriptedModel([], chunk_size=0)


def test_function_model() -> None:
    def echo(messages: Any, *, stop: object = None) -> str:
        return f"{messages[-1]['content']} {stop}"

    model = FunctionModel(echo)
    call = ModelCall(model)
    assert call.accepts == {"stop", "tools", "tool_choice"}
    assert text_of(call(ASK, stop=["x"], seed=1)) == "hello ['x']"
    assert text_of(FunctionModel(echo, chunk_size=3)(ASK)) == "hello None"
    assert model.requests[0].options == {"stop": ["x"]}


def test_async_function_model() -> None:
    async def echo(messages: Any) -> str:
        await asyncio.sleep(0)
        return str(messages[-1]["content"])

    async def ask() -> None:
        for size in (None, 2):
            model = FunctionModel(echo, chunk_size=size)
            assert model.is_async
            assert await text_of_async(model(ASK)) == "hello"
            assert model.requests[0].sent == "hello"

    asyncio.run(ask())
