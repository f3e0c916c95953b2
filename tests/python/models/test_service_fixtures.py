"""What services answer, as they document or show it, read by their own clients on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from callslip import Agent, ContextFull, ModelError, ModelRefused, Retrying, as_model
from optional import optional_module

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "services" / "replies.jsonl")
    .read_text("utf-8")
    .splitlines()
]
KINDS = {"ContextFull": ContextFull, "ModelError": ModelError, "ModelRefused": ModelRefused}
SERVICES = {
    "OpenAI",
    "Azure",
    "OpenRouter",
    "DeepInfra",
    "Perplexity",
    "DeepSeek",
    "GLM",
    "Kimi",
    "MiniMax",
    "Mistral",
    "Gemini",
    "Bedrock",
    "Cohere",
    "Groq",
    "xAI",
    "Fireworks",
    "Together",
    "Ollama",
    "vLLM",
    "SGLang",
    "TGI",
    "llama.cpp",
    "LM Studio",
}
THERE = "Hello again."


def good(wire):
    """A whole reply in the form of a client, after a failure."""
    first = next(
        row["body"]
        for row in ROWS
        if row["wire"] == wire and "body" in row and "answer" in row["expect"]
    )
    return json.loads(json.dumps(first).replace("Hello there.", THERE))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        length = self.headers["content-length"]
        body = json.loads(self.rfile.read(int(length)) if length else b"{}")
        self.server.asked += 1
        row = self.server.row if self.server.asked == 1 else {"body": good(self.server.row["wire"])}
        kind, text = "application/json", json.dumps(row.get("body"))
        if "chunks" in row and row.get("wire") == "ollama":
            kind = "application/x-ndjson"
            text = "".join(json.dumps(one) + "\n" for one in row["chunks"])
        elif "chunks" in row:
            kind = "text/event-stream"
            text = "".join(f"data: {json.dumps(one)}\n\n" for one in row["chunks"])
            text += "data: [DONE]\n\n"
        elif body.get("stream") and self.server.row["wire"] == "chat" and self.server.asked > 1:
            kind, text = "text/event-stream", ""
            for delta, end in (({"content": THERE}, None), ({}, "stop")):
                choice = {"index": 0, "delta": delta, "finish_reason": end}
                chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}
                text += f"data: {json.dumps(chunk)}\n\n"
        elif self.server.row["wire"] == "ollama" and body.get("stream"):
            kind = "application/x-ndjson"
        sent = text.encode()
        self.send_response(row.get("status", 200))
        for name, value in row.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(sent)))
        # No client keeps a socket that nobody closes.
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def clients(server):
    """Makes the client of a wire, once."""
    base, made = f"http://127.0.0.1:{server.server_address[1]}", {}

    def make(wire):
        if wire == "chat":
            openai = optional_module("openai")
            return openai.OpenAI(base_url=f"{base}/v1", api_key="k")
        if wire == "mistral":
            library = optional_module("mistralai.client")
            return library.Mistral(server_url=base, api_key="k")
        if wire == "google":
            library = optional_module("google.genai")
            return library.Client(api_key="k", http_options={"base_url": base})
        if wire == "cohere":
            return optional_module("cohere").ClientV2(base_url=base, api_key="k")
        if wire == "ollama":
            return optional_module("ollama").Client(host=base)
        boto3 = optional_module("boto3")
        config = optional_module("botocore.config").Config(retries={"max_attempts": 0})
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}
        return boto3.client("bedrock-runtime", endpoint_url=base, config=config, **keys)

    return lambda wire: made.get(wire) or made.setdefault(wire, make(wire))


def cases():
    """Each row whole or streamed; errors with the wire of OpenAI in both ways."""
    for at, row in enumerate(ROWS):
        ways = [True] if "chunks" in row else [False]
        if "body" in row and row["wire"] == "chat":
            # Also a server that does not stream, or answers with an error.
            ways = [False, True]
        for stream in ways:
            name = f"{at + 1}-{row['service']}-{'stream' if stream else 'whole'}"
            yield pytest.param(row, stream, id=name)


@pytest.mark.parametrize(("row", "stream"), list(cases()))
def test_a_fixture_ends_as_it_should(server, clients, row, stream):
    server.row, server.asked = row, 0
    model = Retrying(as_model(clients(row["wire"]), model="m", stream=stream), tries=2, backoff=0)
    agent = Agent(model, protocol="chatty")
    expected = row["expect"]
    if "error" in expected:
        with pytest.raises(KINDS[expected["error"]]) as caught:
            agent.run_sync("Hello.")
        assert expected["words"] in str(caught.value)
        assert server.asked == 1
        return
    is_retried = expected.get("retried", False)
    assert agent.run_sync("Hello.").value == expected.get("answer", THERE)
    assert server.asked == 1 + is_retried


def test_each_service_has_fixtures_that_name_their_source():
    assert {row["service"] for row in ROWS} >= SERVICES
    assert all(row["source"].startswith("https://") for row in ROWS)
    certain = {row["service"] for row in ROWS if not row.get("guessed")}
    # No source shows a whole stream of Perplexity's; its fixture is guessed from reports.
    assert SERVICES - certain <= {"Perplexity"}
