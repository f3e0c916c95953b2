"""The CPU time that the gateway itself takes for a request, as Markdown: the model costs nothing.

python benches/gateway.py [--requests 300]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from callslip.gateway import gateway

CALL = '{"thought": "", "action": "tool_0", "args": {"a": "x", "b": 1}}'
TOOLS = (1, 3, 20, 128)


def request(tools: int, *, stream: bool) -> bytes:
    """The body of a request with so many tools."""
    properties = {"a": {"type": "string"}, "b": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties, "required": ["a"]}
    rows = [
        {
            "type": "function",
            "function": {"name": f"tool_{n}", "description": "Do it.", "parameters": parameters},
        }
        for n in range(tools)
    ]
    messages = [{"role": "user", "content": "Do it."}]
    return json.dumps(
        {"model": "m", "messages": messages, "tools": rows, "stream": stream}
    ).encode()


async def post(app: Any, body: bytes) -> bytes:
    """Send a request, without a server."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "http_version": "1.1",
        "server": ("localhost", 80),
        "client": None,
        "root_path": "",
    }
    sent = [{"type": "http.request", "body": body, "more_body": False}]
    over = asyncio.Event()
    received: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        received.append(message.get("body", b""))

    await app(scope, receive, send)
    return b"".join(received)


async def measure(tools: int, requests: int, *, stream: bool) -> float:
    """Milliseconds of CPU for a request."""

    async def model(messages: Any) -> str:
        return CALL

    app = gateway(model)
    body = request(tools, stream=stream)
    assert b"tool_calls" in await post(app, body)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        for _ in range(requests):
            await post(app, body)
        best = min(best, (time.thread_time() - began) / requests)
    return best * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    print("| tools | CPU a request | streamed |\n|---|---|---|")
    for tools in TOOLS:
        figures = [
            asyncio.run(measure(tools, options.requests, stream=stream)) for stream in (False, True)
        ]
        print(f"| {tools} | {figures[0]:.2f} ms | {figures[1]:.2f} ms |")


if __name__ == "__main__":
    main()
