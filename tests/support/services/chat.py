"""A server of chat completions on this machine, which refuses what OpenAI's and others refuse.

A reply is a list of items: `("text", text)`, `("think", text)`, `("call", id, name, arguments)`,
`("refusal", text)` and `("cut",)` for one that ends with `length`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from callslip.models._items import CallItem, FaultItem, Item, ReasoningItem, TextItem

Reply = list[tuple[str, ...]]

OSLO = '{"city": "Oslo"}'


def weather(arguments: str, name: str = "call_A1", tool: str = "weather") -> tuple[str, ...]:
    return ("call", name, tool, arguments)


def pay(arguments: str, name: str = "call_B2") -> tuple[str, ...]:
    return ("call", name, "pay", arguments)


SCENES: dict[str, Reply] = {
    "one call": [weather(OSLO)],
    "text and two calls": [("text", "I'll look."), weather(OSLO), weather('{"city":"Rom"}', "c2")],
    "reasoning": [("think", "Which city?\nOslo."), weather(OSLO)],
    "reasoning, text and two calls": [
        ("think", "Both, thên."),
        ("text", "Both."),
        weather(OSLO),
        pay('{"amount": 5}'),
    ],
    "no arguments": [weather("", tool="ping")],
    "text that quotes a tool block": [
        ("text", 'Write <tool>[{"tool_name": "pay", "arguments": {"amount": 7}}]</tool> there.')
    ],
    "a key twice": [pay('{"amount": 7, "amount": 7000}')],
    "not a number": [pay('{"amount": NaN, "to": "é\\n"}')],
    "infinity": [pay('{"amount": 1e999}')],
    "cut by length": [weather('{"city": "Os'), ("cut",)],
    "cut, but it says stop": [pay('{"amount": 70')],
    "two objects": [pay('{"amount": 7}{"amount": 8}')],
    "an object and quotes": [weather('{}""', tool="ping")],
    "an array": [weather('["Oslo"]')],
    "an unknown tool": [weather(OSLO, tool="wether")],
    "a name with a prefix": [weather(OSLO, tool="functions.weather")],
    "an unknown argument": [weather('{"city": "Oslo", "day": 2}')],
    "a wrong type": [weather('{"city": "Oslo", "days": "soon"}')],
    "one right, one wrong": [weather(OSLO), pay('{"amount": "seven"}')],
    "an id twice": [weather(OSLO), weather('{"city": "Rom"}')],
    "brackets closed early": [weather('{"city": "Oslo"}}\n{"call":"c9","tool":"pay"')],
    "a refusal": [("refusal", "I can't help with that.")],
    "single quotes": [weather("{'city': 'Oslo'}")],
    "a comma behind": [weather('{"city": "Oslo",}')],
}
"""The kinds of replies that every adapter has to read the same way, whole and in pieces."""


def expected(reply: Reply) -> list[tuple[str, ...]]:
    """The items of a reply as `joined` returns them."""
    kinds = {"think": "reasoning"}
    told = [item for item in reply if item[0] not in ("cut", "refusal")]
    return [(kinds.get(item[0], item[0]), *item[1:]) for item in told]


def joined(items: Iterable[Item]) -> list[tuple[str, ...]]:
    """Join the pieces of items by kind and index, as the runtime does. Data is left out."""
    found: list[list[str]] = []
    calls: dict[int, list[str]] = {}
    for item in items:
        if isinstance(item, CallItem):
            call = calls.get(item.index)
            if call is None:
                call = calls[item.index] = ["call", "", "", ""]
                found.append(call)
            call[1], call[2] = call[1] or item.id, call[2] or item.tool
            call[3] += item.arguments
        elif isinstance(item, FaultItem):
            found.append(["fault", item.message, item.raw])
        else:
            kind = "text" if isinstance(item, TextItem) else "reasoning"
            if found and found[-1][0] == kind:
                found[-1][1] += item.text
            elif item.text:
                found.append([kind, item.text])
    return [tuple(one) for one in found]


def data_of(items: Iterable[Item]) -> list[Any]:
    """The data of items, of those that have some."""
    found = [item.data for item in items if isinstance(item, (CallItem, ReasoningItem))]
    return [data for data in found if data is not None]


def replied(items: Iterable[Item]) -> dict[str, Any]:
    """A reply as the next request of a run shows it: a message with items."""
    listed = list(items)
    data = iter(data_of(item for item in listed if isinstance(item, ReasoningItem)))
    told: list[dict[str, Any]] = []
    for kind, *rest in joined(listed):
        if kind == "call":
            told.append({"call": rest[0], "tool": rest[1], "arguments": rest[2]})
        elif kind == "reasoning":
            told.append({"reasoning": rest[0], **({"data": d} if (d := next(data, None)) else {})})
        elif kind == "text":
            told.append({"text": rest[0]})
    of_calls = [item for item in listed if isinstance(item, CallItem) and item.data is not None]
    calls = [one for one in told if "call" in one]
    for item in of_calls:
        calls[item.index]["data"] = item.data
    return {"role": "assistant", "content": "", "items": told}


def results(message: dict[str, Any], *texts: str) -> dict[str, Any]:
    """The results of the calls of a reply, and texts behind them."""
    items: list[dict[str, Any]] = [
        {"result": item["call"], "tool": item["tool"], "content": "4 degrees", "error": bool(at)}
        for at, item in enumerate(one for one in message["items"] if "call" in one)
    ]
    items += [{"text": text} for text in texts]
    return {"role": "user", "content": "\n".join(texts) or "weather: 4 degrees", "items": items}


# ---- the server


class ChatService(ThreadingHTTPServer):
    """Answers with the replies of a script, and keeps the requests.

    Attributes:
        script: The replies to come, in order; the last one stays.
        split: The length of the pieces of a stream.
        is_mixed: Whether the pieces of several calls come in turn.
        thinking: The field with the reasoning.
        needs_reasoning: Whether it refuses a reply with calls that comes back without reasoning.
        error: The status and the body to answer with, if it is not 200.
        late_error: An error in place of the end of a stream.
        bodies: The requests so far.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[dict[str, Any]] = []
        self.reset()

    def reset(self, *script: Reply) -> None:
        """Begin anew with a script."""
        self.script = list(script)
        self.split, self.is_mixed = 1000, False
        self.thinking, self.needs_reasoning = "reasoning_content", False
        self.error: tuple[int, Any] | None = None
        self.late_error: dict[str, Any] | None = None
        self.is_broken_off = False
        self.bodies.clear()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next_reply(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@contextmanager
def chat_service() -> Iterator[ChatService]:
    """A running server."""
    with ChatService() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else each answer waits for the one before to be acknowledged.
    disable_nagle_algorithm = True
    server: ChatService

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        refused = why_refused(body, needs_reasoning=self.server.needs_reasoning)
        if refused is not None:
            self._json(400, {"error": {"message": refused, "type": "invalid_request_error"}})
        elif self.server.error is not None:
            self._json(*self.server.error)
        elif body.get("stream"):
            self._stream(self.server.next_reply())
        else:
            self._json(200, whole(self.server.next_reply(), self.server.thinking))

    def _json(self, status: int, body: Any) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        chunks = list(streamed(reply, self.server))
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        if not self.server.is_broken_off:
            text += "data: [DONE]\n\n"
        self._send(200, "text/event-stream", text.encode())


_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m"}
_USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


def _of(reply: Reply, kind: str) -> str:
    return "".join(item[1] for item in reply if item[0] == kind)


def _finish(reply: Reply) -> str:
    if ("cut",) in reply:
        return "length"
    return "tool_calls" if any(item[0] == "call" for item in reply) else "stop"


def whole(reply: Reply, thinking: str = "reasoning_content") -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": _of(reply, "text") or None}
    message["refusal"] = _of(reply, "refusal") or None
    if thought := _of(reply, "think"):
        message[thinking] = thought
    calls = [
        {"id": item[1], "type": "function", "function": {"name": item[2], "arguments": item[3]}}
        for item in reply
        if item[0] == "call"
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}


def streamed(reply: Reply, server: ChatService) -> Iterator[dict[str, Any]]:
    """The chunks of a reply."""
    yield chunk({"role": "assistant", "content": ""})
    names = {"think": server.thinking, "text": "content", "refusal": "refusal"}
    calls: list[list[dict[str, Any]]] = []
    for item in reply:
        if item[0] in names:
            for piece in _pieces(item[1], server.split):
                yield chunk({names[item[0]]: piece})
        elif item[0] == "call":
            calls.append(list(_call_deltas(len(calls), item, server.split)))
    while any(calls):
        for deltas in calls:
            taken = deltas[:1] if server.is_mixed else deltas[:]
            del deltas[: len(taken)]
            for delta in taken:
                yield chunk({"tool_calls": [delta]})
    if server.late_error is not None:
        yield {"error": server.late_error}
        return
    if server.is_broken_off:
        return
    yield chunk({}, _finish(reply))
    yield {**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}


def _call_deltas(index: int, call: tuple[str, ...], split: int) -> Iterator[dict[str, Any]]:
    function = {"name": call[2], "arguments": ""}
    yield {"index": index, "id": call[1], "type": "function", "function": function}
    for piece in _pieces(call[3], split):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


# ---- what servers refuse

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "tool": {"role", "content", "tool_call_id"},
    "assistant": {"role", "content", "tool_calls"},
}


def why_refused(body: dict[str, Any], *, needs_reasoning: bool = False) -> str | None:
    """The words with which a request is refused; `None` for one that is admitted."""
    wrong = _wrong_tools(body)
    open_ids: list[str] = []
    used: set[str] = set()
    for at, message in enumerate(body["messages"]):
        wrong = wrong or _wrong_message(message, at, needs_reasoning=needs_reasoning)
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return "messages with role 'tool' must be a response to a preceding 'tool_calls'"
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            return f"these tool_call_ids did not have response messages: {open_ids}"
        if message["role"] == "assistant":
            open_ids = [call["id"] for call in message.get("tool_calls", ())]
            if len(set(open_ids)) < len(open_ids) or used & set(open_ids):
                return "a tool_call_id was used before"
            used |= set(open_ids)
    return wrong or (f"no response messages for {open_ids}" if open_ids else None)


def _wrong_tools(body: dict[str, Any]) -> str | None:
    tools = body.get("tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if tools is None and name in body:
            return f"'{name}' is only allowed when 'tools' are specified"
    if tools == []:
        return "[] is too short - 'tools'"
    for tool in tools or ():
        function = tool["function"]
        if tool["type"] != "function" or not _NAME.fullmatch(function["name"]):
            return "Invalid 'tools[0].function.name'"
        if function["parameters"].get("type") != "object":
            return "schema must be a JSON Schema of 'type: \"object\"'"
        if not set(function) <= {"name", "description", "parameters", "strict"}:
            return "Unknown parameter: 'tools[0].function'"
    choice = body.get("tool_choice", "auto")
    known = [tool["function"]["name"] for tool in tools or ()]
    if isinstance(choice, dict) and choice["function"]["name"] not in known:
        return "Tool choice names no tool"
    return None if isinstance(choice, dict) or choice in ("auto", "none", "required") else choice


def _wrong_message(message: dict[str, Any], at: int, *, needs_reasoning: bool) -> str | None:
    known = _FIELDS[message["role"]] | ({"reasoning_content"} if needs_reasoning else set())
    if not set(message) <= known:
        return f"Unknown parameter: 'messages[{at}]': {sorted(set(message) - known)}"
    content, calls = message.get("content"), message.get("tool_calls")
    if calls == [] or (content in (None, "", []) and not calls and message["role"] != "tool"):
        return f"Invalid value for 'content' of messages[{at}]: got {content!r}"
    if message["role"] == "tool" and not isinstance(content, str):
        return "the content of a tool message is a string"
    if needs_reasoning and calls and not message.get("reasoning_content"):
        return "The reasoning_content in the thinking mode must be passed back to the API."
    for call in calls or ():
        function = call["function"]
        if not _NAME.fullmatch(function["name"]):
            return f"Invalid 'messages[{at}].tool_calls[0].function.name'"
        if not call["id"] or len(call["id"]) > 64:
            return f"Invalid 'messages[{at}].tool_calls[0].id'"
        try:
            is_object = isinstance(json.loads(function["arguments"], parse_constant=int), dict)
        except ValueError:
            is_object = False
        if not is_object:
            # llama.cpp, and gateways in front of services that take an object.
            return "Failed to parse tool call arguments as JSON"
    return None
