"""A console in a server on loopback, and what a browser would send to it."""

import asyncio
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import uvicorn

from callslip import Agent, ScriptedModel, tool
from callslip.console import console
from scripted import act, finish

TOKEN = "a-token-that-is-long-enough-for-this"


@tool(needs_approval=True)
def pay(invoice: int, amount: float = 1, note: str = "") -> str:
    """Pay."""
    return f"paid {invoice}"


@contextmanager
def served(app, **options):
    """The address of an application."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = uvicorn.Config(app, **({"log_level": "error", "lifespan": "off"} | options))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{port}"
    finally:
        app.end_streams() if hasattr(app, "end_streams") else None
        server.should_exit = True
        thread.join(60)
        listening.close()


def until(holds, seconds=60):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


@contextmanager
def opened(store, path="", **options):
    """A client that is signed in to the console of a store."""
    app = console(store, token=TOKEN, **options)
    with served(app) as address, signed_in(address) as client:
        yield client


def visitor(address):
    return httpx.Client(base_url=address, headers={"Accept": "text/html"}, timeout=60)


@contextmanager
def signed_in(address):
    with visitor(address) as client:
        assert client.post("/login", data={"token": TOKEN}).status_code == 303
        yield client


def leave_waiting(store, *calls, protocol="react", name="bank", task="Pay the bills."):
    """Leave a run whose first call awaits approval, and that no driver works on."""
    model = ScriptedModel([*calls, finish("paid")])
    return leave(Agent(model, tools=[pay], store=store, name=name, protocol=protocol), task)


def leave(agent, task):
    """Leave a run of an agent that awaits approval."""

    async def main():
        run = agent.start(task)
        async for event in run.watch():
            if getattr(event, "needs_approval", False):
                break
        return run.id

    # In a thread of its own: a browser that is driven has a loop in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(asyncio.wait_for(main(), 60))).result()


def boxes(html):
    """The boxes of a page: for each the fields that a decision on it has."""
    found = re.findall(r'data-seal="(\w+)" data-address="([^"]+)" data-ticket="(\w+)"', html)
    return [{"seal": seal, "address": address, "ticket": ticket} for seal, address, ticket in found]


def decide(client, box, do="approve", why="", **changed):
    """The answer to a decision, sent as a page of the console sends it."""
    address = str(client.base_url).rstrip("/")
    fields = {"do": do, "ticket": box["ticket"], "seal": box["seal"], "why": why}
    headers = {"Origin": address, "Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
    headers |= changed.pop("headers", {})
    headers = {name: value for name, value in headers.items() if value is not None}
    body = changed.pop("body", None)
    body = json.dumps(fields | changed).encode() if body is None else body
    headers.setdefault("Content-Type", "application/json")
    return client.post(box["address"], content=body, headers=headers)


class Events:
    """The changes that an open page receives."""

    def __init__(self, client, address):
        self.stack = client.stream("GET", address, headers={"Accept": "text/event-stream"})
        self.response = self.stack.__enter__()
        self.lines = self.response.iter_lines()

    def __iter__(self):
        name = None
        end = time.monotonic() + 60
        # At the latest there is a comment every 15 seconds.
        for line in self.lines:
            assert time.monotonic() < end, "waited too long"
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with closing(self.response):
            self.stack.__exit__(None, None, None)


def parts_of(events, holds, parts=None):
    """Apply the changes of a page to its parts until they are as they should be."""
    if parts is None:
        parts = {}
    elif holds(parts):
        return parts
    for name, data in events:
        if name == "pieces":
            pieces = parts.setdefault(data["section"], [])
            del pieces[data["count"] :]
            pieces += [None] * (data["count"] - len(pieces))
            for at, (digest, html) in data["changed"].items():
                pieces[int(at)] = (digest, html)
        else:
            parts[name] = data
        if holds(parts):
            return parts
    raise AssertionError(f"the stream has ended: {parts}")


def text_of(parts, section):
    return "".join(html for _, html in parts.get(section, []))


def pay_call(**arguments):
    return act("pay", **arguments)
