"""Gemini on this machine: answers from a script, and refuses what the real service refuses."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SKIP = b"skip_thought_signature_validator"
USAGE = {
    "promptTokenCount": 12,
    "cachedContentTokenCount": 4,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 1,
    "totalTokenCount": 15,
}

Part = dict[str, Any]
# The service takes either name, and the client sends this one.
_CAMEL = {"parameters_json_schema": "parametersJsonSchema"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")


@dataclass
class Reply:
    """What the model replies.

    Attributes:
        parts: `{"text"}`, `{"text", "thought"}` and `{"functionCall"}`. `"sign"` has it signed.
        finish: Its finish reason.
        told: Its finish message.
        blocked: The reason for which the prompt is refused.
        broken: Whether the stream breaks off before its end.
    """

    parts: list[Part] = field(default_factory=list)
    finish: str = "STOP"
    told: str | None = None
    blocked: str | None = None
    broken: bool = False


class RefusedError(Exception):
    """The request is not admitted: `400 INVALID_ARGUMENT`."""


class Gemini(ThreadingHTTPServer):
    """The service.

    Attributes:
        script: The replies, one for each request; the last one stays.
        split: The characters of a piece of streamed text.
        bodies: The requests so far.
        signs: Whether it misses signatures, as Gemini 3 does.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[Reply] = []
        self.split = 3
        self.bodies: list[dict[str, Any]] = []
        self.signs = True
        # The signatures, and the text of the part on which each one was; `None` for a call's.
        self.issued: dict[bytes, str | None] = {}

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self, *script: Reply, split: int = 3) -> None:
        """Forget all requests, and reply by this script."""
        self.script, self.split, self.signs = list(script), split, True
        self.bodies, self.issued = [], {}

    def next_reply(self) -> Reply:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def signed(self, part: Part) -> Part:
        """Return a part with its signature, if it has one."""
        part = dict(part)
        if part.pop("sign", False):
            # Bytes that base64 writes in two ways.
            signature = b"\xfb\xff\xfe" + str(len(self.issued)).encode()
            self.issued[signature] = part.get("text")
            part["thoughtSignature"] = base64.b64encode(signature).decode()
        return part


@contextmanager
def gemini() -> Iterator[Gemini]:
    """A running service."""
    with Gemini() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Gemini

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for tool in body.get("tools", ()):
            tool["functionDeclarations"] = [
                {_CAMEL.get(name, name): value for name, value in one.items()}
                for one in tool["functionDeclarations"]
            ]
        self.server.bodies.append(body)
        try:
            _check(body, self.server)
        except RefusedError as error:
            told = {"code": 400, "message": str(error), "status": "INVALID_ARGUMENT"}
            self._send(400, "application/json", json.dumps({"error": told}))
            return
        reply = self.server.next_reply()
        if ":streamGenerateContent" not in self.path:
            parts = [self.server.signed(part) for part in reply.parts]
            self._send(200, "application/json", json.dumps(_response(parts, reply)))
            return
        chunks = "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in _chunks(reply, self.server))
        self._send(200, "text/event-stream", chunks)

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# ---- answers


def _response(parts: list[Part], reply: Reply | None = None) -> dict[str, Any]:
    if reply is not None and reply.blocked is not None:
        return {"promptFeedback": {"blockReason": reply.blocked}, "usageMetadata": USAGE}
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if not parts:
        # An empty content has nothing but its role.
        del candidate["content"]["parts"]
    if reply is not None:
        candidate["finishReason"] = reply.finish
        if reply.told is not None:
            candidate["finishMessage"] = reply.told
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m"}


def _chunks(reply: Reply, server: Gemini) -> Iterator[dict[str, Any]]:
    """Texts come in pieces, their signature behind them in an empty one; calls come whole."""
    for part in reply.parts:
        text = part.get("text")
        if text is None:
            yield _response([server.signed(part)])
            continue
        kept = {name: value for name, value in part.items() if name == "thought"}
        for at in range(0, len(text), server.split):
            yield _response([{"text": text[at : at + server.split], **kept}])
        if part.get("sign"):
            yield _response([server.signed({"text": "", "sign": True, **kept})])
    if not reply.broken:
        yield _response([], reply)


# ---- checks


def _check(body: dict[str, Any], server: Gemini) -> None:
    declared = [
        one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())
    ]
    for one in declared:
        _check_names(one, {"name", "description", "parametersJsonSchema"})
        if not isinstance(one.get("parametersJsonSchema"), dict) or not _is_name(one["name"]):
            raise RefusedError(f"invalid function declaration: {one}")
    calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
    _check_names(calling, {"mode", "allowedFunctionNames"})
    allowed = calling.get("allowedFunctionNames", [])
    if calling and not declared:
        raise RefusedError("Function calling config is set without function_declarations.")
    if allowed and calling["mode"] != "ANY":
        raise RefusedError("allowed_function_names should only be set in the mode ANY.")
    if not set(allowed) <= {one["name"] for one in declared}:
        raise RefusedError("allowed_function_names has a name that is not declared.")
    _check_contents(body["contents"], server)


def _check_contents(contents: list[dict[str, Any]], server: Gemini) -> None:
    if contents[0]["role"] != "user":
        raise RefusedError("the first content should be of the user")
    open_calls: list[dict[str, Any]] = []
    before: tuple[str, bool] = ("model", False)
    for content in contents:
        _check_names(content, {"role", "parts"})
        if not content.get("parts"):
            raise RefusedError("contents.parts must not be empty.")
        answers = [one["functionResponse"] for one in content["parts"] if "functionResponse" in one]
        if before == (content["role"], False) and not answers:
            raise RefusedError("contents should alternate between user and model")
        before = (content["role"], bool(answers))
        if content["role"] == "model":
            if open_calls or answers:
                raise RefusedError("function response turn comes right after a call turn")
            open_calls = _check_own(content["parts"], server)
            continue
        _check_answers(answers, open_calls)
        if answers and len(answers) != len(content["parts"]):
            raise RefusedError("function responses come in a content of their own")
        open_calls = []
        for part in content["parts"]:
            if part.get("text") == "":
                raise RefusedError("Unable to submit request because it has an empty text.")
    if contents[-1]["role"] != "user":
        raise RefusedError("the last content should be of the user")


def _check_answers(answers: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    if len(answers) != len(calls):
        raise RefusedError(
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn."
        )
    for answer, call in zip(answers, calls, strict=True):
        _check_names(answer, {"id", "name", "response"})
        if not isinstance(answer["response"], dict):
            raise RefusedError("function_response.response should be an object")
        if (answer["name"], answer.get("id")) != (call["name"], call.get("id")):
            raise RefusedError(f"function response {answer} is not that of {call}")


def _check_own(parts: list[Part], server: Gemini) -> list[dict[str, Any]]:
    """Check the parts of the model. Returns its calls."""
    calls: list[dict[str, Any]] = []
    for part in parts:
        _check_names(part, {"text", "thought", "thoughtSignature", "functionCall"})
        signature = _check_signature(part, server)
        call = part.get("functionCall")
        if call is None:
            if not part["text"] and signature is None:
                raise RefusedError("Unable to submit request because it has an empty text.")
            continue
        _check_names(call, {"id", "name", "args"})
        if not isinstance(call["args"], dict) or not _is_name(call["name"]):
            raise RefusedError(f"invalid function call: {call}")
        if server.signs and not calls and signature is None:
            raise RefusedError("Function call is missing a thought_signature in functionCall parts")
        calls.append(call)
    return calls


def _check_signature(part: Part, server: Gemini) -> bytes | None:
    told = part.get("thoughtSignature")
    if told is None:
        return None
    signature = base64.b64decode(told.replace("-", "+").replace("_", "/"), validate=True)
    if signature == SKIP:
        return signature
    if server.issued.get(signature, 0) != part.get("text"):
        raise RefusedError("Thought signature is not valid")
    return signature


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _check_names(value: dict[str, Any], known: set[str]) -> None:
    unknown = value.keys() - known
    if unknown:
        raise RefusedError(f'Invalid JSON payload received. Unknown name "{unknown.pop()}"')
