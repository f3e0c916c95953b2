"""openai SDK: the loop of its guide on function calling."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI

from gateway_clients.job import MAX_REQUESTS, MAX_TOKENS, Job


def answer(job: Job) -> str | None:
    client = OpenAI(base_url=job.url, api_key=job.key)
    functions = {function.__name__: function for function in job.functions}
    messages: list[Any] = [{"role": "user", "content": job.text}]
    tools: Any = job.forms
    for _ in range(MAX_REQUESTS):
        completion = client.chat.completions.create(
            model="m", messages=messages, tools=tools, temperature=0, max_tokens=MAX_TOKENS
        )
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            assert call.type == "function"
            try:
                result = functions[call.function.name](**json.loads(call.function.arguments))
            except Exception as error:  # noqa: BLE001  # the model is told, as the guide advises
                result = f"Error: {type(error).__name__}: {error}"
            content = result if isinstance(result, str) else json.dumps(result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    raise RuntimeError(f"expected an answer within {MAX_REQUESTS} requests: got calls")
