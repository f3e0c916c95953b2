"""What services of models answer, in their own wire formats, on a server of this machine."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pictures import count_parts

PIECES = ["Hel", "lo ", "wörld"]
TEXT = "".join(PIECES)
REASONING = "hm"

# The words of each service for the end of a reply.
_ENDS: dict[str, dict[str, str]] = {
    "chat": {"stop": "stop", "length": "length", "filter": "content_filter"},
    "google": {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"},
    "mistral": {"stop": "stop", "length": "length"},
    "cohere": {"stop": "COMPLETE", "length": "MAX_TOKENS"},
    "ollama": {"stop": "stop", "length": "length"},
    "bedrock": {"stop": "end_turn", "length": "max_tokens", "filter": "content_filtered"},
}


class Services(ThreadingHTTPServer):
    """Answers requests of every service, and keeps them.

    Attributes:
        finish: How replies end: `"stop"`, `"length"` or `"filter"`.
        bodies: The requests so far.
        text: Replaces the pieces of the reply.
        owner: Of the models that `GET /v1/models` lists.
        listed: The number of those requests.
        status: Of all answers, if it is not 200.
        refusal: The status and the words with which requests with pictures are refused. With the
            status 200 it is in the reply itself.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.finish = "stop"
        self.text: str | None = None
        self.owner: str | None = None
        self.listed = 0
        self.status = 200
        self.refusal: tuple[int, str] | None = None
        self.bodies: list[dict[str, Any]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def pieces(self) -> list[str]:
        return PIECES if self.text is None else [self.text]


@contextmanager
def services() -> Iterator[Services]:
    """A running server."""
    with Services() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Services

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.listed += 1
        if self.server.owner is None:
            self._send(404, "application/json", b"{}")
            return
        model = {"id": "m", "object": "model", "created": 0, "owned_by": self.server.owner}
        listing = {"object": "list", "data": [model]}
        self._send(200, "application/json", json.dumps(listing).encode())

    def do_POST(self) -> None:
        length = self.headers["content-length"]
        body = json.loads(self.rfile.read(int(length)) if length else self._read_chunked())
        self.server.bodies.append(body)
        if self.server.status != 200:
            error = {"message": "out of order", "error": {"message": "out of order"}}
            self._send(self.server.status, "application/json", json.dumps(error).encode())
            return
        if self.server.refusal is not None and count_parts(body):
            self._refuse(*self.server.refusal, streams=bool(body.get("stream")))
            return
        path = self.path.partition("?")[0]
        service, streams = _service_of(path, body)
        make = _SERVICES[service]
        end = _ENDS.get(service, {}).get(self.server.finish, self.server.finish)
        kind, answer = make(self.server.pieces(), end, streams=streams, body=body)
        self._send(200, kind, answer)

    def _refuse(self, status: int, words: str, *, streams: bool) -> None:
        told = {"message": words, "type": "invalid_request_error"}
        error: dict[str, Any] = {"message": words, "error": told}
        if status == 200:
            # As a response of OpenAI has it.
            error |= {"object": "response", "status": "failed", "output": []}
        is_late = status == 200 and streams
        self._send(status, *(_events([error]) if is_late else _json(error)))

    def _read_chunked(self) -> bytes:
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        # No client keeps a socket that nobody closes.
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _service_of(path: str, body: dict[str, Any]) -> tuple[str, bool]:
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "google", "stream" in path
    if path.startswith("/model/"):
        return "bedrock", path.endswith("stream")
    if path == "/api/chat":
        return "ollama", body["stream"]
    if path.startswith("/mistral/"):
        return "mistral", bool(body.get("stream"))
    name = {"/v2/chat": "cohere", "/v1/responses": "responses"}.get(path, "chat")
    return name, bool(body.get("stream"))


def _json(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _events(items: list[Any], *, done: bool = False) -> tuple[str, bytes]:
    lines = [
        (f"event: {item['type']}\n" if "type" in item else "") + f"data: {json.dumps(item)}\n\n"
        for item in items
    ]
    return "text/event-stream", ("".join(lines) + "data: [DONE]\n\n" * done).encode()


# Servers use either name, and some use both.
_THOUGHT = {"reasoning": REASONING, "reasoning_content": REASONING}


def _chat(pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]) -> tuple[str, bytes]:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    usage |= {"prompt_tokens_details": {"cached_tokens": 4}}  # type: ignore[dict-item]
    base = {"id": "1", "created": 0, "model": "m", "system_fingerprint": "f"}
    if not streams:
        message = {"role": "assistant", "content": "".join(pieces), **_THOUGHT}
        choice = {"index": 0, "message": message, "finish_reason": end}
        return _json(base | {"object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [_THOUGHT, *({"content": piece} for piece in pieces)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": end})
    base |= {"object": "chat.completion.chunk"}
    chunks: list[Any] = [base | {"choices": [choice]} for choice in choices]
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append(base | {"choices": [], "usage": usage})
    return _events(chunks, done=True)


def _responses(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    text = "".join(pieces)
    reasoning = {"id": "r", "type": "reasoning", "summary": []}
    reasoning["summary"] = [{"type": "summary_text", "text": REASONING}]
    if body.get("tools"):
        tool = {"id": "c", "call_id": "c", "type": "custom_tool_call"}
        part: dict[str, Any] = tool | {"name": body["tools"][0]["name"], "input": text}
        empty, delta = part | {"input": ""}, "custom_tool_call_input"
    else:
        block = {"type": "output_text", "text": text, "annotations": []}
        part = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
        part, empty, delta = part | {"content": [block]}, part | {"content": []}, "output_text"
    usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 4}}  # type: ignore[dict-item]
    usage |= {"output_tokens_details": {"reasoning_tokens": 1}}  # type: ignore[dict-item]
    reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(end)
    whole = {
        "id": "1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [reasoning, part],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    if not streams:
        return _json(whole)
    told = {"item_id": "x", "output_index": 1, "content_index": 0, "summary_index": 0}
    items: list[dict[str, Any]] = [
        {"type": "response.reasoning_summary_text.delta", "delta": REASONING, **told},
        {"type": "response.output_item.added", "output_index": 1, "item": empty},
        *({"type": f"response.{delta}.delta", "delta": piece, **told} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 1, "item": part},
        {"type": f"response.{whole['status']}", "response": whole},
    ]
    return _events([item | {"sequence_number": at} for at, item in enumerate(items)])


def _google(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    del body
    thought = {"text": REASONING, "thought": True}
    usage = {"promptTokenCount": 12, "cachedContentTokenCount": 4}
    usage |= {"candidatesTokenCount": 2, "thoughtsTokenCount": 1, "totalTokenCount": 15}

    def chunk(*parts: dict[str, Any], **more: object) -> dict[str, Any]:
        content = {"role": "model", "parts": list(parts)}
        return {"candidates": [{"content": content, "index": 0, **more}], "modelVersion": "m"}

    if not streams:
        whole = chunk(thought, {"text": "".join(pieces)}, finishReason=end)
        return _json(whole | {"usageMetadata": usage})
    chunks = [chunk(thought), *(chunk({"text": piece}) for piece in pieces)]
    return _events([*chunks, chunk({"text": ""}, finishReason=end) | {"usageMetadata": usage}])


def _mistral(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    del body
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": REASONING}]}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    base = {"id": "1", "model": "m", "created": 0}
    if not streams:
        content = [thinking, {"type": "text", "text": "".join(pieces)}]
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": end}
        return _json(base | {"object": "chat.completion", "usage": usage, "choices": [choice]})
    contents: list[Any] = [[thinking], *pieces, ""]
    chunks: list[Any] = []
    for at, content in enumerate(contents):
        is_last = at == len(contents) - 1
        delta = {"role": "assistant", "content": content}
        choice = {"index": 0, "delta": delta, "finish_reason": end if is_last else None}
        chunks.append(base | {"object": "chat.completion.chunk", "choices": [choice]})
    chunks[-1]["usage"] = usage
    return _events(chunks, done=True)


def _cohere(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    del body
    tokens = {"input_tokens": 12.0, "output_tokens": 3.0}
    usage = {"billed_units": {"input_tokens": 7.0, "output_tokens": 3.0}, "tokens": tokens}
    usage |= {"cached_tokens": 4.0}  # type: ignore[dict-item]
    if not streams:
        content = [{"type": "thinking", "thinking": REASONING}]
        content.append({"type": "text", "text": "".join(pieces)})
        message = {"role": "assistant", "content": content}
        return _json({"id": "1", "finish_reason": end, "message": message, "usage": usage})

    def event(kind: str, index: int, **content: str) -> dict[str, Any]:
        return {"type": kind, "index": index, "delta": {"message": {"content": content}}}

    return _events(
        [
            {"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}},
            event("content-start", 0, type="thinking", thinking=""),
            event("content-delta", 0, thinking=REASONING),
            {"type": "content-end", "index": 0},
            event("content-start", 1, type="text", text=""),
            *(event("content-delta", 1, text=piece) for piece in pieces),
            {"type": "content-end", "index": 1},
            {"type": "message-end", "id": "1", "delta": {"finish_reason": end, "usage": usage}},
        ]
    )


def _ollama(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    del body
    last = {"done": True, "done_reason": end, "prompt_eval_count": 12, "eval_count": 3}
    base = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}

    def message(content: str, thinking: str = "") -> dict[str, Any]:
        return base | {"message": {"role": "assistant", "content": content, "thinking": thinking}}

    if not streams:
        return _json(message("".join(pieces), REASONING) | last)
    items = [message("", REASONING), *(message(piece) for piece in pieces)]
    lines = [item | {"done": False} for item in items] + [message("") | last]
    return "application/x-ndjson", b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _bedrock(
    pieces: list[str], end: str, *, streams: bool, body: dict[str, Any]
) -> tuple[str, bytes]:
    del body
    usage = {"inputTokens": 6, "outputTokens": 3, "totalTokens": 15}
    usage |= {"cacheReadInputTokens": 4, "cacheWriteInputTokens": 2}
    if not streams:
        content = [{"reasoningContent": {"reasoningText": {"text": REASONING}}}]
        content.append({"text": "".join(pieces)})  # type: ignore[dict-item]
        message = {"role": "assistant", "content": content}
        told = {"output": {"message": message}, "stopReason": end, "usage": usage}
        return _json(told | {"metrics": {"latencyMs": 1}})
    deltas: list[tuple[int, Any]] = [(0, {"reasoningContent": {"text": REASONING}})]
    deltas += [(1, {"text": piece}) for piece in pieces]
    events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    events += [
        ("contentBlockDelta", {"contentBlockIndex": at, "delta": delta}) for at, delta in deltas
    ]
    events.append(("contentBlockStop", {"contentBlockIndex": 1}))
    events.append(("messageStop", {"stopReason": end}))
    events.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    framed = b"".join(_frame(kind, event) for kind, event in events)
    return "application/vnd.amazon.eventstream", framed


def _frame(kind: str, event: dict[str, Any]) -> bytes:
    """One message of Amazon's binary event streams."""
    headers = b""
    for name, value in (
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ):
        key, text = name.encode(), value.encode()
        headers += bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(text)) + text
    payload = json.dumps(event).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    message = prelude + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


_SERVICES = {
    "chat": _chat,
    "responses": _responses,
    "google": _google,
    "mistral": _mistral,
    "cohere": _cohere,
    "ollama": _ollama,
    "bedrock": _bedrock,
}
