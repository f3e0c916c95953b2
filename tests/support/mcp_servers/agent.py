"""An agent served as a tool: `python agent.py [http PORT]`. Its model does what the task says."""

import asyncio
import json
import sys

from callslip import Agent, Context, ReactProtocol, tool
from callslip.mcp import serve

begun, stopped = [], []


@tool
async def work(steps: int, context: Context) -> str:
    """Work for a while."""
    begun.append(context.run_id)
    try:
        for step in range(steps):
            context.progress(step + 1, steps)
            await asyncio.sleep(0.01 if steps < 100 else 1)
    except asyncio.CancelledError:
        stopped.append(context.run_id)
        raise
    return "worked"


def act(name, **args):
    return json.dumps({"thought": "t", "action": name, "args": json.dumps(args)})


def model(messages):
    task = messages[1]["content"]
    if task == "fail":
        raise RuntimeError("the model is away")
    if task.startswith("work") and len(messages) < 4:
        return act("work", steps=int(task.split()[1]))
    told = {"report": f"stopped: {len(stopped)}", "at work": f"begun: {len(begun)}"}
    answer = told.get(task, f"did: {task}")
    print("printed by the model")
    return json.dumps(
        {
            "thought": "t",
            "action": "FINISH",
            "final_answer": answer,
            "task_successful": True,
        }
    )


def main(arguments):
    agent = Agent(model, protocol=ReactProtocol(examples=False), tools=[work], name="worker")
    if arguments[:1] == ["http"]:
        serve(agent, transport="streamable-http", port=int(arguments[1]), description="Works.")
    else:
        serve(agent, description="Works.")


if __name__ == "__main__":
    main(sys.argv[1:])
