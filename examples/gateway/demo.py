"""The OpenAI client calls tools with a local model that only writes text.

    python examples/gateway/demo.py                     # SmolLM2-135M-Instruct: no key needed
    python examples/gateway/demo.py --gguf model.gguf   # another local model

The client is the ordinary one. The gateway describes its tools to the model, holds the model to a
grammar, and sends calls that fit the schemas. No reply is scripted. A small model may choose the
wrong tool, but never writes an invalid call. The demo ends with status 1 if no call came.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from openai import OpenAI

from callslip import LocalModel
from callslip.gateway import gateway

QUESTION = "What is the weather in Paris?"
WEATHER = {"Paris": "sunny, 21 degrees", "Oslo": "snow, -4 degrees"}


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return WEATHER.get(city, f"no data for {city}")


TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@contextmanager
def served(model: LocalModel) -> Iterator[str]:
    """Serve a model on a free port of this machine, and return its address."""
    app = gateway(model, calls_first=True)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


def ask(client: OpenAI) -> int:
    """Ask the question, call the tools, and return the number of calls."""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    print(f"user:  {QUESTION}")
    calls = 0
    for _ in range(4):
        reply = client.chat.completions.create(model="local", messages=messages, tools=[TOOL])
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            print(f"model: {message.content}")
            break
        for call in message.tool_calls:
            calls += 1
            result = get_weather(**json.loads(call.function.arguments))
            print(f"call:  {call.function.name}({call.function.arguments}) -> {result}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return calls


def main() -> None:
    """Serve the model, and ask it the question."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", metavar="FILE", help="a model file; default the small model")
    options = parser.parse_args()
    with LocalModel(options.gguf) as model, served(model) as address:
        print(f"the gateway is at {address}")
        client = OpenAI(base_url=address, api_key="none", timeout=600, max_retries=0)
        sys.exit(0 if ask(client) else 1)


if __name__ == "__main__":
    main()
