"""A model service on this machine that speaks OpenAI's chat completions, word for word.

Each peer talks to it through its own client for that protocol, as its docs show. The replies are
scripted: what a model writes as arguments reaches the peer as it stands, valid JSON or not.
"""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call; its arguments are the text that the model wrote."""

    arguments: str
    name: str = "transfer"
    id: str = "c1"


@dataclass(frozen=True)
class Reply:
    """What the model answers to one request."""

    calls: Sequence[Call] = ()
    text: str | None = None
    refusal: str | None = None
    finish: str | None = None
    """`finish_reason`; by default what a service says of such a reply."""
    silent: bool = False
    """No answer at all: the connection stays open."""
    is_unsaid: bool = False
    """Whether it is cut off, and `finish` says nothing of it."""
    is_raw: bool = False
    """Whether its text stays as it is in a protocol of text, though it is no answer there."""

    @property
    def is_cut(self) -> bool:
        return self.is_unsaid or self.finish == "length"

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    @property
    def message(self) -> dict[str, Any]:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in self.calls
        ]
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.refusal is not None:
            message["refusal"] = self.refusal
        return message | ({"tool_calls": calls} if calls else {})


@dataclass
class Script:
    """Gives the replies in order; `last` answers everything after them."""

    replies: Sequence[Reply]
    last: Reply
    requests: list[dict[str, Any]] = field(default_factory=list)
    open: int = 0
    """Requests that wait for an answer which does not come."""
    most: int = 1000
    """Requests after which the service is silent, so that a run without an end has one."""
    check: Callable[[Mapping[str, Any]], str | None] | None = None
    """Returns why a request is refused, by a service that refuses some."""

    def answer(self, request: dict[str, Any]) -> Reply:
        place = len(self.requests)
        self.requests.append(request)
        if place >= self.most:
            return Reply(silent=True)
        return self.replies[place] if place < len(self.replies) else self.last


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script
    ended: threading.Event

    def log_message(self, *_: object) -> None:
        pass

    def keep_silent(self) -> None:
        """Send nothing until the client or the service ends."""
        self.close_connection = True
        script = self.script
        script.open += 1
        while not self.ended.wait(0.02):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1):
                break
        script.open -= 1

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        refused = self.script.check(request) if self.script.check else None
        reply = self.script.answer(request)
        if refused is not None:
            error = {"message": refused, "type": "invalid_request_error"}
            self.send(400, "application/json", json.dumps({"error": error}).encode())
        elif reply.silent:
            self.keep_silent()
        elif request.get("stream"):
            self.send(200, "text/event-stream", _stream(reply))
        else:
            self.send(200, "application/json", json.dumps(_whole(reply)).encode())

    def send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


def _whole(reply: Reply) -> dict[str, Any]:
    choice = {"index": 0, "message": reply.message, "finish_reason": reply.finish_reason}
    return _head("chat.completion") | {"choices": [choice], "usage": USAGE}


def _stream(reply: Reply) -> bytes:
    """Return the reply in chunks, each call with a chunk for its name and one for its arguments."""
    message = reply.message
    deltas = [{name: value for name, value in message.items() if name != "tool_calls"}]
    for place, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        opened = {**call, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [{"index": place, **opened}]})
        deltas.append({"tool_calls": [{"index": place, "function": {"arguments": arguments}}]})
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reply.finish_reason})
    head = _head("chat.completion.chunk")
    chunks = [head | {"choices": [choice]} for choice in choices]
    chunks.append(head | {"choices": [], "usage": USAGE})
    lines = [*map(json.dumps, chunks), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def _head(kind: str) -> dict[str, Any]:
    return {"id": "r", "object": kind, "created": int(time.time()), "model": "gpt-4o"}


@contextmanager
def serve(script: Script) -> Iterator[str]:
    """Serve the replies of a script; yields the address for clients."""
    ended = threading.Event()
    handler = type("Handler", (_Handler,), {"script": script, "ended": ended})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
