"""Responses with the status 200 that are no reply: pages, errors, what a wrong address says."""

import asyncio
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from callslip import Agent, ModelError, Retrying, as_model
from callslip.models._no_reply import check_chunks_came
from optional import optional_module

anthropic = optional_module("anthropic")
openai = optional_module("openai")

PAGE = ("text/html; charset=utf-8", "<html>Please log in.</html>")
NO_SUCH_PATH = ("application/json", '{"error": "Unexpected endpoint or method. (POST /chat)"}')
MIDWAY = {"id": "c", "object": "chat.completion.chunk", "choices": None}


def sse(*events):
    return ("text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events))


@pytest.fixture
def server():
    """A server that says `said` to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.server.asked += 1
            kind, body = self.server.said
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = 0
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


WIRES = pytest.mark.parametrize(
    "wire", list(itertools.product(("chat", "responses", "anthropic"), (False, True))), ids=str
)


def model_of(server, wire, **options):
    library, is_async = wire
    base = f"http://user:secret@127.0.0.1:{server.server_address[1]}"
    name = "Async" * is_async + ("Anthropic" if library == "anthropic" else "OpenAI")
    make = getattr(anthropic if library == "anthropic" else openai, name)
    client = make(base_url=base, api_key="k", max_retries=0)
    if library == "responses":
        client = client.responses.create
    return as_model(client, model="m", **options)


def error_of(server, model, is_async):
    server.asked = 0
    # Plain text is an answer in chatty, so a page would be one.
    agent = Agent(model, protocol="chatty")
    with pytest.raises(ModelError) as caught:
        asyncio.run(agent.run("Hello.")) if is_async else agent.run_sync("Hello.")
    assert server.asked == 1
    return str(caught.value)


@WIRES
def test_a_page_is_no_answer(server, wire):
    server.said = PAGE
    error = error_of(server, model_of(server, wire, stream=False), wire[1])
    assert error == (
        "expected JSON from the model's server: got a page or another text; pass the right "
        "address to the client (base_url); the text begins: <html>Please log in.</html>"
    )


@WIRES
@pytest.mark.parametrize("body", ["<html>Please log in.</html>", '{"id":'], ids=["page", "part"])
def test_a_body_that_is_not_json_is_told(server, wire, body):
    server.said = ("application/json", body)
    error = error_of(server, model_of(server, wire, stream=False), wire[1])
    assert f" at http://127.0.0.1:{server.server_address[1]}/" in error
    assert "secret" not in error
    assert ": got the status 200 with a body that is not JSON (application/json); pass " in error
    assert error.endswith(f"; the body begins: {body}")


@WIRES
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_an_empty_body_is_asked_for_again(server, wire, kind):
    server.said = (kind, "")
    model = Retrying(model_of(server, wire, stream=False), tries=2, backoff=0)
    with pytest.raises(ModelError, match="with an empty body; ask|got an empty body; ask it again"):
        Agent(model).run_sync("Hello.")
    assert server.asked == 2


@WIRES
@pytest.mark.parametrize("body", ["null", "[]", "3"])
def test_json_that_is_no_object_is_told(server, wire, body):
    server.said = ("application/json", body)
    error = error_of(server, model_of(server, wire, stream=False), wire[1])
    assert error == (
        f"expected a JSON object from the model's server: got {body}; pass the right address to "
        "the client (base_url)"
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_body_that_is_not_json_is_told_of_ollama(server, stream, is_async):
    ollama = optional_module("ollama")
    make = ollama.AsyncClient if is_async else ollama.Client
    client = make(host=f"http://127.0.0.1:{server.server_address[1]}")
    server.said = PAGE
    error = error_of(server, as_model(client, model="m", stream=stream), is_async)
    assert "/api/chat: got the status 200 with a body that is not JSON (text/html; " in error


def test_other_exceptions_are_raised_as_they_are(server):
    def model(messages):
        yield json.loads("")

    with pytest.raises(ModelError, match="the model failed in turn 1: JSONDecodeError: Expecting"):
        Agent(model, protocol="chatty").run_sync("Hello.")


@WIRES
def test_a_page_without_chunks_is_no_reply_of_the_model(server, wire):
    server.said = PAGE
    error = error_of(server, Retrying(model_of(server, wire), backoff=0), wire[1])
    assert ": got text/html without any; pass the right address" in error
    assert f" at http://127.0.0.1:{server.server_address[1]}/" in error
    assert error.endswith("; the body begins: <html>Please log in.</html>")
    assert "secret" not in error


@WIRES
def test_the_error_of_a_server_in_place_of_a_stream_is_told(server, wire):
    server.said = NO_SUCH_PATH
    error = error_of(server, Retrying(model_of(server, wire), backoff=0), wire[1])
    assert error == (
        "the model's server reported an error: Unexpected endpoint or method. (POST /chat)"
    )


@WIRES
def test_an_error_that_the_client_takes_for_a_reply_is_raised(server, wire):
    server.said = NO_SUCH_PATH
    error = error_of(server, model_of(server, wire, stream=False), wire[1])
    assert error == (
        "the model's server reported an error: Unexpected endpoint or method. (POST /chat)"
    )


@WIRES
def test_an_empty_stream_is_asked_for_again(server, wire):
    server.said = sse()
    with pytest.raises(ModelError, match="got an empty one; ask it again, or look at what its"):
        Agent(Retrying(model_of(server, wire), tries=2, backoff=0)).run_sync("Hello.")
    assert server.asked == 2


def test_other_streams_may_be_empty():
    check_chunks_came(iter(()))
    check_chunks_came(object())


def test_a_chunk_may_say_that_it_has_no_choices(server):
    texts = [
        {**MIDWAY, "choices": [{"index": 0, "delta": {"content": "Hello."}}]},
        {**MIDWAY, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**MIDWAY, "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ]
    server.said = sse(MIDWAY, *texts)
    result = Agent(model_of(server, ("chat", False)), protocol="chatty").run_sync("Hello.")
    assert (result.value, result.usage.input_tokens) == ("Hello.", 5)


def test_events_that_are_not_known_yet_are_passed_over():
    def model(messages):
        yield {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
        yield {"type": "a_new_event", "index": 0}
        yield {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello."}}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}

    assert Agent(model, protocol="chatty").run_sync("Hello.").value == "Hello."


def test_a_stream_may_not_begin_with_an_event_that_is_not_known():
    def model(messages):
        yield {"type": "a_new_event"}

    with pytest.raises(ModelError, match="or a client's chunks from the model's stream: got dict"):
        Agent(model, protocol="chatty").run_sync("Hello.")
