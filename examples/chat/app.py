"""A chat in a web page: streamed answers, images, reloads, more tabs, approvals, restarts.

    pip install callslip fastapi uvicorn
    python examples/chat/app.py                      # then open http://127.0.0.1:8000
    OPENAI_API_KEY=… python examples/chat/app.py --model gpt-4.1-mini

Without `--model` a few lines of Python answer in place of a model, so that nothing is needed to try
the page: ask for a mail or for a chart of 3 1 4, or send an image. The conversations are in
`chat.sqlite`. Stop the program in the middle of an answer and start it again: the page connects
again, and the answer is completed.

With a database as the store, any number of these processes serve the page, and others answer:

    callslip migrate postgresql://…
    python examples/chat/app.py --store postgresql://…           # here and there
    python examples/chat/app.py --store postgresql://… --work    # as many as you like
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, Response
from pydantic import Base64Bytes, BaseModel, Field, ValidationError

from callslip import Agent, File, Image, TicketStore, UsageError, as_model, tool
from callslip.fleet import Fleet
from callslip.models import Message, Messages, Model
from callslip.web import Guard, event_response, exception_handlers, read_json

PAGE = Path(__file__).with_name("page.html")
FILE_BYTES = 10_000_000
REQUEST_BYTES = 60_000_000


@tool(needs_approval=True)
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"The mail to {to} was sent, with {len(text)} characters."


@tool(readonly=True)
def draw_chart(
    values: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1, max_length=40)],
) -> Image:
    """Draw a bar chart."""
    width, height, bar, paper = 320 // len(values), 160, b"\x25\x63\xeb", b"\xf1\xf5\xf9"
    tops = [height * (1 - value / (max(values) or 1)) for value in values]
    rows = [
        b"\0" + b"".join((bar if y >= top else paper) * (width - 1) + paper for top in tops)
        for y in range(height)
    ]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width * len(values), height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows)))
    return Image(b"\x89PNG\r\n\x1a\n" + chunks + chunk(b"IEND", b""), name="chart.png")


class StandIn:
    """Answers in place of a model, slowly."""

    parts = ("image", "pdf")

    async def __call__(self, messages: Messages) -> AsyncIterator[str]:
        """Yield the words of a reply."""
        for word in self.reply(messages[-1]).split(" "):
            await asyncio.sleep(0.03)
            yield word + " "

    def reply(self, message: Message) -> str:
        """Return the reply to the last message."""
        text = message["content"].partition("\n\n")[0]
        seen = [f"{one.name or one.label}: {look(one)}" for one in message.get("parts", ())]
        if text.startswith("TOOL_EXECUTION_RESULT"):
            if seen:
                return "I have drawn " + ", ".join(seen) + "."
            return "The mail is on its way." if "was sent" in text else "Then I leave it."
        if seen:
            return "I see " + "; ".join(seen) + "."
        if "chart" in text:
            values = [float(number) for number in re.findall(r"\d+", text)] or [3, 1, 4, 1, 5]
            return tool_block("draw_chart", values=values[:40])
        if "mail" in text:
            return tool_block("send_mail", to="anna@example.org", text=f"Hello Anna! {text}")
        return f"You said: {text}. " + "I have nothing to add, and I say it at length. " * 5


def look(file: File) -> str:
    """Return what can be seen of a file without a model."""
    if isinstance(file, Image):
        return f"an image of {file.width} by {file.height} pixels"
    return f"a file of {file.size} bytes"


def tool_block(name: str, **arguments: Any) -> str:
    """Return a reply that calls a tool."""
    call = {"call_id": name, "tool_name": name, "arguments": arguments}
    return f"<tool>{json.dumps([call])}</tool>"


router = APIRouter()


def _agent(request: Request) -> Agent:
    agent: Agent = request.app.state.agent
    return agent


def _store(request: Request) -> TicketStore:
    store = _agent(request).store
    assert store is not None
    return store


def _fleet(request: Request) -> Fleet | None:
    fleet: Fleet | None = request.app.state.fleet
    return fleet


Worker = Annotated[Agent, Depends(_agent)]
Store = Annotated[TicketStore, Depends(_store)]
Workers = Annotated[Fleet | None, Depends(_fleet)]


@router.get("/")
def page() -> FileResponse:
    """Return the page."""
    return FileResponse(PAGE)


class Upload(BaseModel):
    """A file that a user sends."""

    name: str
    data: Base64Bytes


class Said(BaseModel):
    """The words of a user, and files beside them."""

    text: str = ""
    files: list[Upload] = []

    def content(self) -> list[str | File]:
        """Return the message as an agent takes it: the words, then the files."""
        words = [self.text] if self.text.strip() else []
        return [*words, *map(as_file, self.files)]


def as_file(upload: Upload) -> File:
    """Return an uploaded image or PDF file, whose bytes have to say what it is."""
    if len(upload.data) > FILE_BYTES:
        raise UsageError(
            f"{upload.name}: expected at most {FILE_BYTES // 1_000_000} MB: got "
            f"{len(upload.data)} bytes; pass a smaller file"
        )
    kind = File if upload.data.startswith(b"%PDF-") else Image
    try:
        return kind(upload.data, name=upload.name)
    except UsageError as error:
        raise UsageError(f"{upload.name}: {error}") from error


async def read(request: Request) -> list[str | File]:
    """Read a message, and no more of a request than may be in memory."""
    body = await read_json(request, most=REQUEST_BYTES)
    try:
        return await asyncio.to_thread(lambda: Said.model_validate(body).content())
    except ValidationError as error:
        raise UsageError(str(error)) from error


Content = Annotated[list[str | File], Depends(read)]


@router.post("/runs")
async def begin(agent: Worker, workers: Workers, content: Content) -> dict[str, str]:
    """Start a conversation."""
    if workers is not None:
        return {"run": await workers.submit(agent.name, content)}
    return {"run": agent.start(content).id}


@router.post("/runs/{run_id}/messages")
async def say(
    agent: Worker, store: Store, workers: Workers, run_id: str, content: Content
) -> dict[str, str]:
    """Take the next turn of a conversation."""
    if workers is not None:
        # One of them continues the run; the page reads it from the store.
        await asyncio.to_thread(lambda: store.run(run_id).send(content))
        return {"run": run_id}
    return {"run": agent.start(run=run_id, say=content).id}


@router.get("/runs/{run_id}/events")
def watch(request: Request, store: Store, run_id: str) -> Response:
    """Stream a run to whoever looks at it, first what has happened, then as it happens."""
    return event_response(request, store.run(run_id))


@router.get("/runs/{run_id}/parts/{label}")
def part(store: Store, run_id: str, label: str) -> Response:
    """Return an image or a file of a run: of the user, or of a result."""
    file = store.run(run_id).parts.get(label)
    if file is None:
        raise HTTPException(404, f"there is no part {label} in run {run_id}")
    # Anything but an image might be a page with a script of whoever has made the file.
    shown = "inline" if isinstance(file, Image) else "attachment"
    headers = {
        "Content-Disposition": f"{shown}; filename*=UTF-8''{quote(file.name or label, safe='')}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=31536000, immutable",  # a label never changes its bytes
    }
    return Response(file.data, media_type=file.media_type, headers=headers)


class Decision(BaseModel):
    """The decision of a person, on the call that was shown."""

    approved: bool
    why: str = ""
    seal: str | None = None


@router.post("/runs/{run_id}/tickets/{ticket_id}")
def decide(store: Store, run_id: str, ticket_id: str, decision: Decision) -> None:
    """Approve or deny a call."""
    run = store.run(run_id)
    if decision.approved:
        run.approve(ticket_id, seal=decision.seal)
    else:
        run.deny(ticket_id, decision.why)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Resume the runs that a restart has interrupted, where no worker does."""
    if app.state.fleet is not None:
        yield
        return
    resuming = asyncio.create_task(app.state.agent.resume_all())
    yield
    resuming.cancel()


def create_app(agent: Agent, fleet: Fleet | None = None) -> FastAPI:
    """Return the application for an agent that has a store, or for the workers of a fleet."""
    app = FastAPI(lifespan=lifespan, exception_handlers=exception_handlers())
    app.state.agent, app.state.fleet = agent, fleet
    app.include_router(router)
    return app


def main() -> None:
    """Serve the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model of OpenAI; default: a few lines of Python")
    parser.add_argument("--store", default="chat.sqlite", help="a file, or the URL of a database")
    parser.add_argument("--work", action="store_true", help="answer, and serve no page")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    model: Model = StandIn()
    if options.model:
        from openai import AsyncOpenAI

        model = as_model(AsyncOpenAI(), model=options.model)
    store = TicketStore(options.store)
    agent = Agent(model, protocol="chatty", tools=[send_mail, draw_chart], store=store, name="chat")
    fleet = None if store.address is None else Fleet(store, [agent], lease=5)
    if options.work:
        assert fleet is not None, "--work needs a database as --store"
        asyncio.run(fleet.work())
        return
    # Any web site that its user visits could start runs and decide on calls.
    app = Guard(create_app(agent, fleet))
    uvicorn.run(app, port=options.port, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
