"""The chat of the examples, as its page uses it: over HTTP."""

import base64
import json
from contextlib import asynccontextmanager

import httpx


@asynccontextmanager
async def browser(server):
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:
        yield client


class Page:
    """What a page has read of a run: the events by their kind, and the text of the answer."""

    def __init__(self, client, run):
        self.client = client
        self.run = run
        self.last = None
        self.seen = []
        self.text = ""
        self.texts = []
        self.is_over = False

    async def read(self, *, until=lambda page: False):
        """Connect, and read until that, or to the end."""
        self.text = ""
        headers = {} if self.last is None else {"last-event-id": str(self.last)}
        path = f"/runs/{self.run}/events"
        async with self.client.stream("GET", path, headers=headers) as response:
            fields = {}
            async for line in response.aiter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                if "data" in fields:
                    self.take(fields)
                fields = {}
                if until(self):
                    return self
        return self

    def take(self, fields):
        data = json.loads(fields["data"])
        kind = fields["event"]
        if "id" in fields:
            self.last = int(fields["id"])
            self.seen.append(kind)
        match kind:
            case "delta" if data["delta"] in {"text", "answer"}:
                self.text += data["text"]
            case "model_asked" | "noted":
                self.text = ""
            case "moved" if "finish" in data["move"]:
                assert self.text.strip() in ("", data["move"]["finish"]["value"])
                self.texts.append(data["move"]["finish"]["value"])
            case "end":
                assert data["error"] is None
                self.is_over = True
        self.data = data


def message(text, *files):
    """A message as the page sends it, with `(name, data)` of files."""
    sent = [{"name": name, "data": base64.b64encode(data).decode()} for name, data in files]
    return {"text": text, "files": sent}


async def begin(client, text, *files):
    reply = await client.post("/runs", json=message(text, *files))
    return reply.json()["run"]


async def decide(client, run, **decision):
    return (await client.post(f"/runs/{run}/tickets/T1", json=decision)).status_code


ANSWER = "You said: hello. " + "I have nothing to add, and I say it at length. " * 5
