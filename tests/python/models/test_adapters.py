"""Adapters and raw results with the real client libraries, against a server on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip.errors import UsageError
from callslip.models import ModelReply, as_model
from callslip.models._call import ModelCall
from callslip.models._reply import AsyncReplyStream, ReplyStream, open_result
from callslip.models.anthropic import AnthropicModel
from callslip.models.openai import OpenAIModel
from optional import optional_module

anthropic = optional_module("anthropic")
openai = optional_module("openai")

PIECES = ["Hel", "lo ", "wörld"]
TEXT = "".join(PIECES)
USAGE = {"input_tokens": 12, "output_tokens": 3, "cached_tokens": 4}
ASK = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "yes?"},
    {"role": "user", "content": "one"},
    {"role": "user", "content": "two"},
]


class Server(ThreadingHTTPServer):
    """Speaks enough of both wire formats, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.finish = "stop"
        self.endless = False
        self.error: int | None = None
        self.hung_up = threading.Event()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        if self.server.error is not None:
            told = {"type": "error", "error": {"type": "api_error", "message": "out of order"}}
            self.send(self.server.error, "application/json", json.dumps(told).encode())
            return
        speak = {
            "/v1/chat/completions": OpenAIChat,
            "/v1/responses": OpenAIResponses,
            "/v1/messages": AnthropicMessages,
        }[self.path](self.server.finish)
        if not body.get("stream"):
            self.send(200, "application/json", json.dumps(speak.whole()).encode())
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in speak.events(self.pieces(), usage="stream_options" in body):
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n" if self.path.endswith("completions") else b"")
        except OSError:
            self.server.hung_up.set()

    def pieces(self) -> Iterator[str]:
        yield from PIECES
        deadline = time.monotonic() + 120
        while self.server.endless and time.monotonic() < deadline:
            yield " and on"
            time.sleep(0.005)

    def send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Speaker:
    def __init__(self, finish: str) -> None:
        self.finish = finish

    def whole(self) -> dict[str, Any]:
        raise NotImplementedError

    def events(self, pieces: Iterator[str], *, usage: bool) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


class OpenAIChat(Speaker):
    usage = {  # noqa: RUF012
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }

    def whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": TEXT}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": self.usage}

    def events(self, pieces: Iterator[str], *, usage: bool) -> Iterator[dict[str, Any]]:
        def chunk(finish: str | None = None, **delta: object) -> dict[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}

        yield chunk(role="assistant", content="")
        for piece in pieces:
            yield chunk(content=piece)
        yield chunk(self.finish)
        if usage:
            yield {"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": self.usage}


class OpenAIResponses(Speaker):
    def whole(self) -> dict[str, Any]:
        content = [{"type": "output_text", "text": TEXT, "annotations": []}]
        message = {"type": "message", "role": "assistant", "content": content}
        return {
            "id": "1",
            "object": "response",
            "status": "completed" if self.finish == "stop" else "incomplete",
            "incomplete_details": None
            if self.finish == "stop"
            else {"reason": "max_output_tokens"},
            "output": [{"type": "reasoning", "summary": []}, message],
            "usage": {
                "input_tokens": 12,
                "output_tokens": 3,
                "input_tokens_details": {"cached_tokens": 4},
            },
        }

    def events(self, pieces: Iterator[str], *, usage: bool) -> Iterator[dict[str, Any]]:
        del usage
        item = {"type": "message", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        for piece in pieces:
            yield {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
        yield {"type": "response.output_text.done", "output_index": 0, "text": TEXT}
        end = self.whole()
        yield {"type": f"response.{end['status']}", "response": end}


class AnthropicMessages(Speaker):
    def whole(self) -> dict[str, Any]:
        return {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "text", "text": TEXT},
            ],
            "stop_reason": {"stop": "end_turn", "length": "max_tokens"}[self.finish],
            "usage": {"input_tokens": 6, "output_tokens": 3}
            | {"cache_read_input_tokens": 4, "cache_creation_input_tokens": 2},
        }

    def events(self, pieces: Iterator[str], *, usage: bool) -> Iterator[dict[str, Any]]:
        del usage
        whole = self.whole()
        start = whole | {"content": [], "stop_reason": None}
        start["usage"] = whole["usage"] | {"output_tokens": 1}
        yield {"type": "message_start", "message": start}
        yield {"type": "ping"}
        for index, block in enumerate(whole["content"]):
            empty = block | ({"text": ""} if block["type"] == "text" else {"thinking": ""})
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            name = "text" if block["type"] == "text" else "thinking"
            for piece in pieces if name == "text" else [block["thinking"]]:
                delta = {"type": f"{name}_delta", name: piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 3},
        }
        yield {"type": "message_stop"}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client_of(server: Server, library: str, *, is_async: bool = False) -> Any:
    if library == "anthropic":
        make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return make(base_url=server.base, api_key="k", max_retries=0)
    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    return make(base_url=f"{server.base}/v1", api_key="k", max_retries=0)


def read(result: object) -> ModelReply:
    """All of a sync model's result, as a driver takes it."""
    opened = open_result(result)
    if isinstance(opened, ModelReply):
        return opened
    assert isinstance(opened, ReplyStream)
    with closing(opened):
        return gather(list(opened))


async def read_async(result: Any) -> ModelReply:
    """All of an async model's result, as a driver takes it."""
    awaited = hasattr(result, "__await__")
    opened = open_result(await result if awaited else result, awaited=awaited)
    if isinstance(opened, ModelReply):
        return opened
    assert isinstance(opened, AsyncReplyStream)
    try:
        return gather([chunk async for chunk in opened])
    finally:
        await opened.aclose()


def gather(chunks: list[Any]) -> ModelReply:
    usage: dict[str, float] = {}
    finish = None
    for chunk in chunks:
        usage |= chunk.usage or {}
        finish = chunk.finish_reason or finish
    return ModelReply("".join(chunk.text for chunk in chunks), finish, usage or None)


both = pytest.mark.parametrize("library", ["openai", "anthropic"])


@both
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_reply_of_a_sync_client(server: Server, library: str, stream: bool, finish: str) -> None:
    server.finish = finish
    with client_of(server, library) as client:
        model = as_model(client, model="m", stream=stream)
        assert not ModelCall(model).is_async
        assert read(model(ASK)) == ModelReply(TEXT, finish, USAGE)
    assert server.bodies[0]["model"] == "m"
    assert bool(server.bodies[0].get("stream")) is stream


@both
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_reply_of_an_async_client(server: Server, library: str, stream: bool, finish: str) -> None:
    server.finish = finish

    async def ask() -> None:
        async with client_of(server, library, is_async=True) as client:
            model = as_model(client, model="m", stream=stream)
            assert ModelCall(model).is_async
            assert await read_async(model(ASK)) == ModelReply(TEXT, finish, USAGE)

    asyncio.run(ask())


@both
def test_closing_early_hangs_up(server: Server, library: str) -> None:
    server.endless = True
    with client_of(server, library) as client:
        stream = open_result(as_model(client, model="m")(ASK))
        assert isinstance(stream, ReplyStream)
        assert next(chunk.text for chunk in stream if chunk.text) == PIECES[0]
        assert not server.hung_up.is_set()
        stream.close()
        assert server.hung_up.wait(60)
        stream.close()


@both
def test_closing_early_hangs_up_async(server: Server, library: str) -> None:
    server.endless = True

    async def ask() -> None:
        async with client_of(server, library, is_async=True) as client:
            stream = open_result(await as_model(client, model="m")(ASK))  # type: ignore[misc]
            assert isinstance(stream, AsyncReplyStream)
            async for chunk in stream:
                if chunk.text:
                    break
            assert not server.hung_up.is_set()
            await stream.aclose()
            assert await asyncio.to_thread(server.hung_up.wait, 60)
            await stream.aclose()

    asyncio.run(ask())


@both
def test_cancelling_and_closing_hangs_up(server: Server, library: str) -> None:
    server.endless = True

    async def ask() -> None:
        async with client_of(server, library, is_async=True) as client:
            stream = open_result(await as_model(client, model="m")(ASK))  # type: ignore[misc]
            assert isinstance(stream, AsyncReplyStream)

            async def consume() -> None:
                try:
                    async for _ in stream:
                        pass
                finally:
                    await stream.aclose()

            task = asyncio.create_task(consume())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.hung_up.wait, 60)

    asyncio.run(ask())


@both
def test_errors_of_the_client_pass_through(server: Server, library: str) -> None:
    server.error = 500
    expected = {"openai": openai, "anthropic": anthropic}[library].InternalServerError
    with client_of(server, library) as client, pytest.raises(expected, match="out of order"):
        read(as_model(client, model="m")(ASK))

    async def ask() -> None:
        async with client_of(server, library, is_async=True) as client:
            with pytest.raises(expected, match="out of order"):
                await read_async(as_model(client, model="m")(ASK))

    asyncio.run(ask())


# ---- what is sent


def sent(server: Server, model: Any, **offered: object) -> dict[str, Any]:
    read(ModelCall(model)(ASK, **offered))
    body = server.bodies[-1]
    assert {"model", "messages"} <= body.keys()
    return {name: body[name] for name in body if name not in ("model", "messages")}


def test_openai_request(server: Server) -> None:
    with client_of(server, "openai") as client:
        plain = {"stream": True, "stream_options": {"include_usage": True}}
        assert sent(server, as_model(client, model="m")) == plain
        joined = {"role": "user", "content": "one\n\ntwo"}
        assert server.bodies[0]["messages"] == [*ASK[:3], joined]
        offered = {"stop": ("</output>",), "seed": 7, "max_tokens": 99, "grammar": "root ::= [a]"}
        received = {"stop": ["</output>"], "seed": 7, "max_tokens": 99}
        assert sent(server, as_model(client, model="m"), **offered) == plain | received
        assert sent(server, as_model(client, model="m", usage=False)) == {"stream": True}
        assert sent(server, as_model(client, model="m", stream=False, temperature=0)) == {
            "temperature": 0
        }
        fixed = as_model(client, model="m", stop=None, seed=1, max_completion_tokens=5)
        assert ModelCall(fixed).accepts == {"tools", "tool_choice"}
        assert sent(server, fixed, **offered) == plain | {"seed": 1, "max_completion_tokens": 5}


def test_openai_grammar(server: Server) -> None:
    gbnf, lark, schema = 'root ::= "a"', 'start: "a"', {"type": "object"}
    forms = Obj(gbnf=gbnf, lark=lark, json_schema=json.dumps(schema))
    with client_of(server, "openai") as client:

        def body(form: Any, grammar: object, **options: Any) -> dict[str, Any]:
            model = as_model(client, model="m", usage=False, grammar=form, **options)
            assert ModelCall(model).grammar_form == form
            return sent(server, model, grammar=grammar)

        plain = {"chat_template_kwargs": {"enable_thinking": False}}
        received = {"stream": True, "grammar": gbnf, **plain}
        assert body("gbnf", gbnf) == body("gbnf", forms) == received
        thinking = {"cache_prompt": True, "chat_template_kwargs": {}}
        assert body("gbnf", gbnf, extra_body=thinking) == received | thinking
        marked = f"%llguidance {{}}\n{lark}"
        assert body("lark", lark)["grammar"] == body("lark", marked)["grammar"] == marked
        assert body("lark", forms)["grammar"] == marked
        wanted = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": schema},
        }
        assert body("json_schema", schema)["response_format"] == wanted
        assert body("json_schema", forms)["response_format"] == wanted
        with pytest.raises(UsageError) as caught:
            body("json_schema", 7)
        assert str(caught.value) == (
            "expected a grammar in the form json_schema: got int: pass its text, or an object with "
            "the attribute json_schema"
        )


def test_a_protocol_without_a_schema_has_no_grammar_there(server: Server) -> None:
    chatty = Obj(gbnf="root ::= [a]", json_schema=None)
    with client_of(server, "anthropic") as client:
        model = as_model(client, model="m", grammar="json_schema")
        with pytest.warns(UserWarning, match="cannot be described as json_schema"):
            assert "output_config" not in sent(server, model, grammar=chatty)
        # It is said once: a warning is an error here.
        assert "output_config" not in sent(server, model, grammar=chatty)
        assert "output_config" not in sent(
            server, as_model(client, model="m", grammar="auto"), grammar=chatty
        )
        schema = {"type": "object"}
        assert sent(server, model, grammar=schema)["output_config"] == {
            "format": {"type": "json_schema", "schema": schema}
        }


def test_anthropic_request(server: Server) -> None:
    with client_of(server, "anthropic") as client:
        plain = {"stream": True, "max_tokens": 4096, "system": "be brief"}
        assert sent(server, as_model(client, model="m")) == plain
        assert server.bodies[0]["messages"] == [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "yes?"},
            {"role": "user", "content": "one\n\ntwo"},
        ]
        offered = {"stop": ["</output>", "\n\n"], "seed": 7, "max_tokens": 99, "grammar": "g"}
        received = {"stop_sequences": ["</output>"], "max_tokens": 99}
        assert sent(server, as_model(client, model="m"), **offered) == plain | received
        fixed = as_model(client, model="m", stop=None, max_tokens=7, stream=False)
        assert ModelCall(fixed).accepts == {"tools", "tool_choice"}
        assert sent(server, fixed, **offered) == {"system": "be brief", "max_tokens": 7}


def test_anthropic_leaves_out_what_the_api_refuses(server: Server) -> None:
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": ""},
        {"role": "system", "content": "late"},
        {"role": "user", "content": "again"},
    ]
    with client_of(server, "anthropic") as client:
        read(as_model(client, model="m")(messages))
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "hello\n\nagain"}]
    assert server.bodies[0]["system"] == "late"
    assert messages[0]["content"] == "hello"


def test_options_that_cannot_be(server: Server) -> None:
    with client_of(server, "anthropic") as client:
        with pytest.raises(UsageError, match="^`system` comes from the run"):
            as_model(client, model="m", system="x")
        with pytest.raises(UsageError, match="^expected one of auto, json_schema as grammar"):
            as_model(client, model="m", grammar="gbnf")
        with pytest.raises(TypeError, match="temprature"):
            as_model(client, model="m", temprature=0)(ASK)
    with client_of(server, "openai") as client:
        with pytest.raises(UsageError, match="^`messages` comes from the run"):
            as_model(client, model="m", messages=[])
        with pytest.raises(UsageError, match="^expected one of auto, gbnf, lark, vllm, "):
            as_model(client, model="m", grammar="bnf")
        with pytest.raises(UsageError, match="got the client OpenAI: wrap it with as_model"):
            ModelCall(client)
    assert server.bodies == []


# ---- callables around a client


def test_a_function_with_a_clients_parameters(server: Server) -> None:
    with client_of(server, "openai") as client:
        model = as_model(client.chat.completions.create, model="m")
        assert isinstance(model, OpenAIModel)
        assert read(model(ASK)) == ModelReply(TEXT, "stop", USAGE)
    with client_of(server, "anthropic") as client:
        model = as_model(client.messages.create, model="m")
        assert isinstance(model, AnthropicModel)
        assert read(model(ASK)) == ModelReply(TEXT, "stop", USAGE)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_raw_results_of_openai_responses(server: Server, stream: bool, finish: str) -> None:
    server.finish = finish
    with client_of(server, "openai") as client:
        result = client.responses.create(model="m", input="hello", stream=stream)
        assert read(result) == ModelReply(TEXT, finish, USAGE)


def test_raw_results_as_dicts(server: Server) -> None:
    with client_of(server, "openai") as client:
        whole = client.chat.completions.create(model="m", messages=ASK)
        assert read(whole.model_dump()) == ModelReply(TEXT, "stop", USAGE)
        chunks = client.chat.completions.create(model="m", messages=ASK, stream=True)
        assert read(chunk.model_dump() for chunk in chunks) == ModelReply(TEXT, "stop")


def test_the_stream_helper_of_anthropic_is_not_read_twice(server: Server) -> None:
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}

    def model(_: object) -> Iterator[object]:
        with client_of(server, "anthropic") as client, client.messages.stream(**request) as stream:
            yield from stream

    assert read(model(ASK)) == ModelReply(TEXT, "stop", USAGE)
    server.endless = True
    stream = open_result(model(ASK))
    assert isinstance(stream, ReplyStream)
    next(chunk for chunk in stream if chunk.text)
    stream.close()
    assert server.hung_up.wait(60)


def test_a_generator_around_a_stream_hangs_up(server: Server) -> None:
    server.endless = True

    async def model(client: Any) -> Any:
        # Without `async with` the library's stream stays open until it is collected as garbage.
        async with await client.chat.completions.create(
            model="m", messages=ASK, stream=True
        ) as stream:
            async for chunk in stream:
                yield chunk.choices[0].delta.content

    async def ask() -> None:
        async with client_of(server, "openai", is_async=True) as client:
            stream = open_result(model(client))
            assert isinstance(stream, AsyncReplyStream)
            while not (await anext(stream)).text:
                pass
            await stream.aclose()
            assert await asyncio.to_thread(server.hung_up.wait, 60)

    asyncio.run(ask())
