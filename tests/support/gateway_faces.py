"""One request in the words of each face of a gateway, and its answer in one form."""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from gateways import send


@dataclass
class Step:
    """A message of the user, an answer, or calls: rows of a tool, its arguments and its result."""

    kind: str
    text: str = ""
    calls: tuple = ()


@dataclass
class Asking:
    """A request.

    `tools` has rows of a name and a schema, `choice` is a word or the name of a tool in a tuple,
    `in_parts` writes texts as lists of parts, and `extra` chooses fields that change no answer.
    """

    steps: list = field(default_factory=lambda: [Step("user", "Weather in Oslo?")])
    tools: list = field(default_factory=list)
    choice: object = None
    parallel: object = None
    schema: object = None
    system: str = ""
    max_tokens: object = None
    stop: tuple = ()
    in_parts: bool = False
    extra: int = 0


class Got(NamedTuple):
    """An answer: its status, its text, its calls, how it ended, and the error."""

    status: int
    text: str = ""
    calls: tuple = ()
    end: str = ""
    error: str = ""


FACES = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


def ask(replies, asking, path, *, streamed=False, **options):
    """Send a request to a face, and return its answer and the model."""
    body = {"model": "m", "stream": streamed, **_BODIES[path](asking)}
    body |= _EXTRAS[path][asking.extra]
    if asking.in_parts:
        for message in body.get("messages") or body["input"]:
            _put_in_parts(message, path)
    sent = send(replies, body, path, **options)
    return _got(sent, path, streamed), sent


# Fields that clients send, and that change nothing of the answer.
EXTRAS = 4
_EXTRAS = {
    "/v1/chat/completions": [
        {},
        {"temperature": 0.5, "n": 1, "logprobs": False, "seed": -1, "user": "u", "store": True},
        {
            "functions": None,
            "audio": None,
            "modalities": ["text"],
            "metadata": {"a": "b"},
            "stream_options": {"include_usage": True},
        },
        {
            "max_tokens": None,
            "reasoning_effort": "low",
            "service_tier": "auto",
            "prediction": None,
            "logit_bias": {"50256": -100},
            "stream_options": None,
        },
    ],
    "/v1/messages": [
        {},
        {"temperature": 1.0, "top_k": 5, "top_p": 0.5, "metadata": {"user_id": "u"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "service_tier": "auto"},
        {"mcp_servers": [], "container": None, "context_management": {"edits": []}, "betas": ["x"]},
    ],
    "/v1/responses": [
        {},
        {"temperature": 0.5, "store": False, "include": ["reasoning.encrypted_content"]},
        {"previous_response_id": None, "background": False, "truncation": "auto", "user": "u"},
        {"reasoning": {"effort": "low", "summary": "auto"}, "metadata": {}, "max_tool_calls": 3},
    ],
}


def _put_in_parts(message, path):
    content = message.get("content")
    if not isinstance(content, str):
        return
    kind = "text"
    if path == "/v1/responses":
        kind = "output_text" if message["role"] == "assistant" else "input_text"
    part = {"type": kind, "text": content}
    if kind == "output_text":
        part |= {"annotations": [], "logprobs": []}
    elif path == "/v1/messages":
        part["cache_control"] = {"type": "ephemeral"}
    message["content"] = [part]


def _got(sent, path, streamed):
    if sent.status != 200:
        return Got(sent.status, error=sent.error)
    if not streamed:
        return _WHOLE[path](sent.body)
    return _STREAMED[path](sent.events)


def _without_none(**fields):
    return {name: value for name, value in fields.items() if value not in (None, "", (), [])}


def chat_body(asking):
    messages = [{"role": "system", "content": asking.system}] if asking.system else []
    for at, step in enumerate(asking.steps):
        if step.kind == "calls":
            rows = [
                {
                    "id": f"call_{at}_{n}",
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps(arguments)},
                }
                for n, (tool, arguments, _) in enumerate(step.calls)
            ]
            messages.append({"role": "assistant", "content": step.text or None, "tool_calls": rows})
            messages += [
                {"role": "tool", "tool_call_id": f"call_{at}_{n}", "content": result}
                for n, (_, _, result) in enumerate(step.calls)
            ]
        else:
            role = "user" if step.kind == "user" else "assistant"
            messages.append({"role": role, "content": step.text})
    choice = asking.choice
    if isinstance(choice, tuple):
        choice = {"type": "function", "function": {"name": choice[0]}}
    form = None
    if asking.schema is not None:
        named = {"name": "r", "schema": asking.schema, "strict": True}
        form = {"type": "json_schema", "json_schema": named}
    return _without_none(
        messages=messages,
        tools=[
            {
                "type": "function",
                "function": {"name": name, "description": "d", "parameters": schema},
            }
            for name, schema in asking.tools
        ],
        tool_choice=choice,
        parallel_tool_calls=asking.parallel,
        response_format=form,
        max_completion_tokens=asking.max_tokens,
        stop=list(asking.stop),
    )


def messages_body(asking):
    messages = []
    for at, step in enumerate(asking.steps):
        if step.kind == "calls":
            text = [{"type": "text", "text": step.text}] if step.text else []
            rows = [
                {"type": "tool_use", "id": f"toolu_{at}_{n}", "name": tool, "input": arguments}
                for n, (tool, arguments, _) in enumerate(step.calls)
            ]
            results = [
                {"type": "tool_result", "tool_use_id": f"toolu_{at}_{n}", "content": result}
                for n, (_, _, result) in enumerate(step.calls)
            ]
            messages.append({"role": "assistant", "content": text + rows})
            messages.append({"role": "user", "content": results})
        elif step.kind == "user" and messages and messages[-1]["role"] == "user":
            if isinstance(messages[-1]["content"], str):
                messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}]
            messages[-1]["content"].append({"type": "text", "text": step.text})
        else:
            role = "user" if step.kind == "user" else "assistant"
            messages.append({"role": role, "content": step.text})
    choice = asking.choice
    if isinstance(choice, tuple):
        choice = {"type": "tool", "name": choice[0]}
    elif choice is not None:
        choice = {"type": {"required": "any"}.get(choice, choice)}
    if choice is not None and choice["type"] != "none" and asking.parallel is not None:
        choice["disable_parallel_tool_use"] = not asking.parallel
    form = None
    if asking.schema is not None:
        form = {"format": {"type": "json_schema", "schema": asking.schema}}
    return _without_none(
        max_tokens=1000 if asking.max_tokens is None else asking.max_tokens,
        system=asking.system,
        messages=messages,
        tools=[
            {"name": name, "description": "d", "input_schema": schema}
            for name, schema in asking.tools
        ],
        tool_choice=choice,
        output_config=form,
        stop_sequences=list(asking.stop),
    )


def responses_body(asking):
    items = []
    for at, step in enumerate(asking.steps):
        if step.kind == "calls":
            if step.text:
                items.append({"role": "assistant", "content": step.text})
            items += [
                {
                    "type": "function_call",
                    "call_id": f"c_{at}_{n}",
                    "name": tool,
                    "arguments": json.dumps(arguments),
                }
                for n, (tool, arguments, _) in enumerate(step.calls)
            ]
            items += [
                {"type": "function_call_output", "call_id": f"c_{at}_{n}", "output": result}
                for n, (_, _, result) in enumerate(step.calls)
            ]
        else:
            role = "user" if step.kind == "user" else "assistant"
            items.append({"role": role, "content": step.text})
    choice = asking.choice
    if isinstance(choice, tuple):
        choice = {"type": "function", "name": choice[0]}
    form = None
    if asking.schema is not None:
        form = {"format": {"type": "json_schema", "name": "r", "schema": asking.schema}}
    return _without_none(
        instructions=asking.system,
        input=items,
        tools=[
            {"type": "function", "name": name, "description": "d", "parameters": schema}
            for name, schema in asking.tools
        ],
        tool_choice=choice,
        parallel_tool_calls=asking.parallel,
        text=form,
        max_output_tokens=asking.max_tokens,
    )


_BODIES = dict(zip(FACES, (chat_body, messages_body, responses_body), strict=True))
_ENDS = {
    "tool_calls": "calls",
    "stop": "stop",
    "length": "length",
    "tool_use": "calls",
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop",
}


def _chat(body):
    (choice,) = body["choices"]
    message = choice["message"]
    calls = tuple(
        (row["function"]["name"], row["function"]["arguments"])
        for row in message.get("tool_calls", ())
    )
    return Got(200, message["content"] or "", calls, _ENDS[choice["finish_reason"]])


def _chat_stream(events):
    text, calls, end = "", [], ""
    for event in events:
        if "error" in event:
            return Got(422, error=event["error"]["message"])
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            for row in choice["delta"].get("tool_calls", ()):
                assert row["index"] == len(calls)
                calls.append((row["function"]["name"], row["function"]["arguments"]))
            end = choice["finish_reason"] or end
    return Got(200, text, tuple(calls), _ENDS[end])


def _messages(body):
    text = "".join(one["text"] for one in body["content"] if one["type"] == "text")
    used = [one for one in body["content"] if one["type"] == "tool_use"]
    calls = tuple((one["name"], _compact(one["input"])) for one in used)
    return Got(200, text, calls, _ENDS[body["stop_reason"]])


def _messages_stream(events):
    blocks, end = [], ""
    for event in events:
        match event["type"]:
            case "error":
                return Got(422, error=event["error"]["message"])
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append([event["content_block"], ""])
            case "content_block_delta":
                delta = event["delta"]
                blocks[event["index"]][1] += delta.get("text", "") + delta.get("partial_json", "")
            case "message_delta":
                end = event["delta"]["stop_reason"]
    text = "".join(written for block, written in blocks if block["type"] == "text")
    calls = tuple(
        (block["name"], written) for block, written in blocks if block["type"] == "tool_use"
    )
    return Got(200, text, calls, _ENDS[end])


def _responses(body):
    said = [one for one in body["output"] if one["type"] == "message"]
    text = "".join(part["text"] for one in said for part in one["content"])
    calls = tuple(
        (one["name"], one["arguments"]) for one in body["output"] if one["type"] == "function_call"
    )
    end = "calls" if calls else {"completed": "stop", "incomplete": "length"}[body["status"]]
    return Got(200, text, calls, end)


def _responses_stream(events):
    last = events[-1]
    if last["type"] == "response.failed":
        return Got(422, error=last["response"]["error"]["message"])
    got = _responses(last["response"])
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert "".join(deltas) == got.text
    return got


def _compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_WHOLE = dict(zip(FACES, (_chat, _messages, _responses), strict=True))
_STREAMED = dict(zip(FACES, (_chat_stream, _messages_stream, _responses_stream), strict=True))
