"""A gateway in front of a scripted model, and requests to it."""

import asyncio
import json
import re
from contextlib import contextmanager

import httpx

from callslip import ScriptedModel
from callslip.gateway import gateway
from consoles import served

HINT = re.compile(r"\b(?:pass|use|send|leave|call)\b")
"""What an error says to do."""
USER = {"role": "user", "content": "Weather in Oslo?"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


LOOK = "I call get_weather(city: str)."
"""The thought with which the example before the task would call `WEATHER`."""


def act(name, /, *, thought="", **arguments):
    return json.dumps({"thought": thought, "action": name, "args": arguments}, ensure_ascii=False)


def finish(answer):
    end = {"action": "FINISH", "final_answer": answer, "task_successful": True}
    return json.dumps({"thought": "", **end}, ensure_ascii=False)


def function(name, parameters=CITY, **more):
    """A tool of chat completions."""
    described = {"name": name, "description": "d", "parameters": parameters, **more}
    return {"type": "function", "function": described}


WEATHER = function("get_weather")


def called(own, name, arguments):
    """A call of chat completions."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": own, "type": "function", "function": {"name": name, "arguments": written}}


@contextmanager
def opened(replies, **options):
    """The address of a gateway before a model, and the model."""
    model = ScriptedModel(replies) if isinstance(replies, list) else replies
    with served(gateway(model, **options)) as address:
        yield address, model


class Sent:
    """The answer to a request."""

    def __init__(self, response, model):
        self.status = response.status_code
        self.headers = response.headers
        self.text = response.text
        self.model = model

    @property
    def body(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.body["error"]["message"]

    @property
    def message(self):
        return self.body["choices"][0]["message"]

    @property
    def calls(self):
        rows = self.message.get("tool_calls", ())
        return [(row["function"]["name"], json.loads(row["function"]["arguments"])) for row in rows]

    @property
    def events(self):
        """The data of the events of a stream."""
        rows = [line for line in self.text.split("\n") if line.startswith("data: {")]
        return [json.loads(row.removeprefix("data: ")) for row in rows]


def send(replies, body=None, path="/v1/chat/completions", *, headers=None, raw=None, **options):
    """Send one request to a gateway in this process."""
    model = ScriptedModel(replies) if isinstance(replies, list) else replies
    app = options.pop("app", None) or gateway(model, **options)
    content = raw if raw is not None else json.dumps(body).encode()

    async def main():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, content=content, headers=headers or {}, timeout=60)

    return Sent(asyncio.run(main()), model)


def chat(replies, *, messages=(USER,), headers=None, app=None, options=None, **body):
    """Send one request for a chat completion."""
    whole = {"model": "m", "messages": list(messages), **body}
    return send(replies, whole, headers=headers, app=app, **(options or {}))


def prompt(sent, request=-1):
    """The messages that the model received."""
    return [(one["role"], one["content"]) for one in sent.model.requests[request].messages]


def tool_requests(schema, *, streamed):
    """For each face its address, a request with a tool `f`, and a reader of the arguments."""
    user = {"role": "user", "content": "Do it."}
    common = {"model": "m", "stream": streamed}
    described = {"name": "f", "description": "d"}
    function_of = {"type": "function", "function": {**described, "parameters": schema}}
    return [
        (
            "/v1/chat/completions",
            {**common, "messages": [user], "tools": [function_of]},
            _streamed_chat if streamed else lambda sent: sent.calls[0][1],
        ),
        (
            "/v1/messages",
            {
                **common,
                "max_tokens": 100,
                "messages": [user],
                "tools": [{**described, "input_schema": schema}],
            },
            _streamed_messages if streamed else lambda sent: sent.body["content"][0]["input"],
        ),
        (
            "/v1/responses",
            {
                **common,
                "input": [user],
                "tools": [{"type": "function", **described, "parameters": schema}],
            },
            _streamed_responses
            if streamed
            else lambda sent: json.loads(sent.body["output"][0]["arguments"]),
        ),
    ]


def _streamed_chat(sent):
    deltas = [event["choices"][0]["delta"] for event in sent.events]
    (call,) = [call for delta in deltas for call in delta.get("tool_calls", ())]
    return json.loads(call["function"]["arguments"])


def _streamed_messages(sent):
    deltas = [event["delta"] for event in sent.events if "delta" in event]
    return json.loads("".join(delta.get("partial_json", "") for delta in deltas))


def _streamed_responses(sent):
    (call,) = sent.events[-1]["response"]["output"]
    return json.loads(call["arguments"])


def typed_requests(schema, *, streamed):
    """For each face its address, a request with a schema, and a reader of the answer."""
    user = {"role": "user", "content": "Do it."}
    common = {"model": "m", "stream": streamed}
    form = {"type": "json_schema", "name": "r", "schema": schema}
    return [
        (
            "/v1/chat/completions",
            {
                **common,
                "messages": [user],
                "response_format": {"type": "json_schema", "json_schema": form},
            },
            _chat_text if streamed else lambda sent: sent.message["content"],
        ),
        (
            "/v1/messages",
            {
                **common,
                "max_tokens": 100,
                "messages": [user],
                "output_config": {"format": form},
            },
            _messages_text if streamed else lambda sent: sent.body["content"][0]["text"],
        ),
        (
            "/v1/responses",
            {**common, "input": [user], "text": {"format": form}},
            _responses_text
            if streamed
            else lambda sent: sent.body["output"][0]["content"][0]["text"],
        ),
    ]


def _chat_text(sent):
    deltas = [event["choices"][0]["delta"] for event in sent.events]
    return "".join(delta.get("content") or "" for delta in deltas)


def _messages_text(sent):
    deltas = [event["delta"] for event in sent.events if "delta" in event]
    return "".join(delta.get("text", "") for delta in deltas)


def _responses_text(sent):
    return "".join(
        event["delta"] for event in sent.events if event["type"] == "response.output_text.delta"
    )
