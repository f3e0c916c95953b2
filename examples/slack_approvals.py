"""Approvals in a chat tool: a message for each call that awaits approval, with two buttons.

    SLACK_WEBHOOK=https://hooks.slack.com/… SLACK_SECRET=… python examples/slack_approvals.py
    curl -d 'Pay the bill of 900.' http://127.0.0.1:8000/runs

The message goes to an incoming webhook. Set the address of the buttons, "Interactivity" in the
settings of the app, to `/slack/actions` of this program. Slack signs what it sends there:
https://api.slack.com/authentication/verifying-requests-from-slack. Nothing has to run while a
person thinks: the runs are in `approvals.sqlite`, and a restart loses nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import httpx
import uvicorn
from fastapi import FastAPI, HTTPException, Request

from callslip import Agent, RunFailed, Ticket, UsageError, tool
from callslip.approval import view
from callslip.events import ArgumentsFilled, TicketOpened
from callslip.web import Guard


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def stand_in(messages: list[dict[str, str]]) -> str:
    """Answer in place of a model."""
    if messages[-1]["content"].startswith("TOOL_EXECUTION_RESULT"):
        return "Paid." if "paid" in messages[-1]["content"] else "Not paid."
    call = {"call_id": "pay", "tool_name": "pay", "arguments": {"amount": 900}}
    return f"<tool>{json.dumps([call])}</tool>"


agent = Agent(
    stand_in, protocol="chatty", tools=[pay], store=os.environ.get("STORE", "approvals.sqlite")
)


async def ask_people(run_id: str) -> None:
    """Post a message for each call of a run that awaits approval, until the run ends."""
    assert agent.store is not None
    asked = set()
    async with httpx.AsyncClient() as client:
        try:
            async for event in agent.store.watch(run_id):
                match event:
                    case TicketOpened(needs_approval=True) | ArgumentsFilled(needs_approval=True):
                        for ticket in agent.store.run(run_id).awaiting_approval:
                            if ticket.id not in asked:
                                asked.add(ticket.id)
                                await client.post(os.environ["SLACK_WEBHOOK"], json=message(ticket))
        except RunFailed:
            pass


def message(ticket: Ticket) -> dict[str, Any]:
    """Return the message about a call: the whole call as the runtime writes it, and two buttons."""
    value = json.dumps({"run": ticket.run_id, "ticket": ticket.id, "seal": ticket.seal})
    buttons = [
        {
            "type": "button",
            "action_id": action,
            "text": {"type": "plain_text", "text": action.capitalize()},
            "value": value,
        }
        for action in ("approve", "deny")
    ]
    call = view(ticket)
    text = {"type": "plain_text", "text": "\n".join(call.lines())}
    return {
        "text": f"May this be done? {call.short}",
        "blocks": [{"type": "section", "text": text}, {"type": "actions", "elements": buttons}],
    }


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Resume what a restart has interrupted, and ask again where nobody has decided."""
    assert agent.store is not None
    tasks = [asyncio.create_task(agent.resume_all())]
    tasks += [
        asyncio.create_task(ask_people(run.run_id)) for run in agent.store.runs(status="running")
    ]
    yield
    for task in tasks:
        task.cancel()


app = FastAPI(lifespan=lifespan)
asking = set()


@app.post("/runs")
async def begin(request: Request) -> dict[str, str]:
    """Start a run for the text of the request."""
    run = agent.start((await request.body()).decode())
    task = asyncio.create_task(ask_people(run.id))
    asking.add(task)
    task.add_done_callback(asking.discard)
    return {"run": run.id}


@app.get("/runs/{run_id}")
async def look(run_id: str) -> dict[str, Any]:
    """Tell how far a run has come."""
    assert agent.store is not None
    run = agent.store.run(run_id)
    value = run.log[-1].value if run.finished else None  # type: ignore[attr-defined]
    return {"status": run.status, "value": value}


@app.post("/slack/actions")
async def decide(request: Request) -> dict[str, str]:
    """Take a decision."""
    assert agent.store is not None
    body = await request.body()
    check_signature(request, body)
    payload = json.loads(parse_qs(body.decode())["payload"][0])
    action, person = payload["actions"][0], payload["user"]["username"]
    chosen = json.loads(action["value"])
    run = agent.store.run(chosen["run"])
    try:
        if action["action_id"] == "approve":
            run.approve(chosen["ticket"], seal=chosen["seal"], by=person)
        else:
            run.deny(chosen["ticket"], by=person)
    except UsageError as error:
        # Another person was faster.
        return {"text": str(error)}
    return {"text": f"{person}: {action['action_id']}"}


def check_signature(request: Request, body: bytes) -> None:
    """Refuse what Slack has not signed, and what is older than five minutes."""
    at = request.headers.get("x-slack-request-timestamp", "0")
    signed = b"v0:" + at.encode() + b":" + body
    due = hmac.new(os.environ["SLACK_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
    given = request.headers.get("x-slack-signature", "")
    is_late = not at.isdecimal() or abs(time.time() - int(at)) > 300
    if is_late or not hmac.compare_digest(f"v0={due}", given):
        raise HTTPException(401, "the signature is not valid")


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--host", action="append", default=["127.0.0.1", "localhost"])
    # Slack signs what it sends; all else comes from this machine, and from no page of a web site.
    guarded = Guard(app, hosts=parser.parse_args().host, public=["/slack/actions"])
    uvicorn.run(guarded, port=parser.parse_args().port, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
