"""What people write by hand: parse, call, append, ask again; no checks, limits or log."""

from __future__ import annotations

import json

from comparison.task import PROMPT, TASK, Run, Wait, add, text_model


def counter(turns: int, wait: Wait) -> Run:
    model = text_model(turns, wait)
    tools = {"add": add}

    async def run() -> str:
        messages: list[dict[str, str]] = [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": TASK},
        ]
        while True:
            text = await model(messages)
            messages.append({"role": "assistant", "content": text})
            reply = json.loads(text)
            if reply["action"] == "FINISH":
                return str(reply["final_answer"])
            try:
                result = await tools[reply["action"]](**json.loads(reply["args"]))
                observation = result if isinstance(result, str) else json.dumps(result)
            except Exception as error:  # noqa: BLE001
                observation = f"Error calling tool {reply['action']!r}: {error}"
            messages.append({"role": "user", "content": f"Observation: {observation}"})

    return run
