"""A chat in a web page: streamed answers, reloads, more tabs, approvals, restarts.

    pip install callslip fastapi uvicorn
    python examples/chat/app.py                      # then open http://127.0.0.1:8000
    OPENAI_API_KEY=… python examples/chat/app.py --model gpt-4.1-mini

Without `--model` a few lines of Python answer in place of a model, so that nothing is needed to try
the page. The conversations are in `chat.sqlite`. Stop the program in the middle of an answer and
start it again: the page connects again, and the answer is completed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import APIRouter, Body, Depends, FastAPI, Header, Request
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse

from callslip import (
    Agent,
    CallslipError,
    Delta,
    Event,
    StoreError,
    TicketStore,
    UsageError,
    as_model,
    tool,
)
from callslip.models import Model

PAGE = Path(__file__).with_name("page.html")


@tool(needs_approval=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"The mail to {to} was sent, with {len(text)} characters."


async def stand_in(messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """Answer in place of a model, slowly."""
    last = messages[-1]["content"].partition("\n\n")[0]
    if last.startswith("TOOL_EXECUTION_RESULT"):
        reply = "The mail is on its way." if "was sent" in last else "Then I leave it."
    elif "mail" in last:
        call = {
            "call_id": "mail",
            "tool_name": "send_mail",
            "arguments": {"to": "anna@example.org", "text": f"Hello Anna! {last}"},
        }
        reply = f"<tool>{json.dumps([call])}</tool>"
    else:
        reply = f"You said: {last}. " + "I have nothing to add, and I say it at length. " * 5
    for word in reply.split(" "):
        await asyncio.sleep(0.03)
        yield word + " "


router = APIRouter()


def _agent(request: Request) -> Agent:
    agent: Agent = request.app.state.agent
    return agent


def _store(request: Request) -> TicketStore:
    store = _agent(request).store
    assert store is not None
    return store


Worker = Annotated[Agent, Depends(_agent)]
Store = Annotated[TicketStore, Depends(_store)]


@router.get("/")
def page() -> FileResponse:
    """Return the page."""
    return FileResponse(PAGE)


@router.post("/runs")
async def begin(agent: Worker, text: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """Start a conversation."""
    return {"run": agent.start(text).id}


@router.post("/runs/{run_id}/messages")
async def say(agent: Worker, run_id: str, text: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """Take the next turn of a conversation."""
    return {"run": agent.start(run=run_id, say=text).id}


@router.get("/runs/{run_id}/events")
async def watch(
    store: Store,
    run_id: str,
    after: int | None = None,
    last_event_id: Annotated[int | None, Header()] = None,
) -> StreamingResponse:
    """Stream a run to whoever looks at it, first what has happened, then as it happens."""
    # The header comes with a browser's own second try, which repeats the address as it was.
    known = after if last_event_id is None else last_event_id
    return StreamingResponse(events(store, run_id, known), media_type="text/event-stream")


async def events(store: TicketStore, run_id: str, after: int | None) -> AsyncIterator[str]:
    """Yield a run as server-sent events."""
    try:
        async for item in store.watch(run_id, after=after):
            if isinstance(item, Event):
                yield f"id: {item.seq}\nevent: {item.kind}\ndata: {item.to_json()}\n\n"
            elif isinstance(item, Delta.Text | Delta.Answer):
                yield f"event: text\ndata: {json.dumps(item.text)}\n\n"
    except CallslipError as error:
        yield f"event: failed\ndata: {json.dumps(str(error))}\n\n"
    yield "event: end\ndata: null\n\n"


@router.post("/runs/{run_id}/tickets/{ticket_id}")
def decide(
    store: Store,
    run_id: str,
    ticket_id: str,
    approved: Annotated[bool, Body()],
    why: Annotated[str, Body()] = "",
) -> None:
    """Approve or deny a call."""
    run = store.run(run_id)
    if approved:
        run.approve(ticket_id)
    else:
        run.deny(ticket_id, why)


def refused(_: Request, error: Exception) -> JSONResponse:
    """Tell that there is no such run, or that another person was faster."""
    return JSONResponse({"detail": str(error)}, 404 if isinstance(error, StoreError) else 409)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Resume the runs that a restart has interrupted."""
    resuming = asyncio.create_task(app.state.agent.resume_all())
    yield
    resuming.cancel()


def create_app(agent: Agent) -> FastAPI:
    """Return the application for an agent that has a store."""
    app = FastAPI(lifespan=lifespan)
    app.state.agent = agent
    app.include_router(router)
    app.add_exception_handler(StoreError, refused)
    app.add_exception_handler(UsageError, refused)
    return app


def main() -> None:
    """Serve the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model of OpenAI; default: a few lines of Python")
    parser.add_argument("--store", default="chat.sqlite")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    model: Model = stand_in
    if options.model:
        from openai import AsyncOpenAI

        model = as_model(AsyncOpenAI(), model=options.model)
    agent = Agent(model, protocol="chatty", tools=[send_mail], store=options.store)
    uvicorn.run(create_app(agent), port=options.port, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
