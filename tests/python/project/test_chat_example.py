"""The chat of the examples, as its page uses it: over HTTP, with reloads, tabs and restarts."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import pytest

from example_server import Server


@pytest.fixture
def server(tmp_path):
    server = Server("chat/app.py", "--store", tmp_path / "chat.sqlite")
    server.start()
    yield server
    server.kill()


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
            case "text":
                self.text += data
            case "model_asked" | "noted":
                self.text = ""
            case "moved" if "finish" in data["move"]:
                assert self.text.strip() in ("", data["move"]["finish"]["value"])
                self.texts.append(data["move"]["finish"]["value"])
            case "end":
                self.is_over = True
            case "failed":
                raise AssertionError(data)
        self.data = data


async def begin(client, text):
    reply = await client.post("/runs", json={"text": text})
    return reply.json()["run"]


async def decide(client, run, **decision):
    return (await client.post(f"/runs/{run}/tickets/T1", json=decision)).status_code


ANSWER = "You said: hello. " + "I have nothing to add, and I say it at length. " * 5


def test_the_page_is_there(server):
    reply = httpx.get(f"{server.url}/", timeout=60)
    assert "EventSource" in reply.text


def test_an_answer_is_streamed_to_all_tabs_and_after_a_reload(server):
    async def main():
        async with browser(server) as client:
            run = await begin(client, "hello")
            first, second = Page(client, run), Page(client, run)
            watching = asyncio.create_task(second.read())
            await first.read(until=lambda page: "nothing to add" in page.text)
            assert not first.is_over
            reloaded = await Page(client, run).read()
            await first.read()
            await watching
            for page in (first, second, reloaded):
                assert page.is_over
                assert page.texts == [ANSWER.strip()]
                assert page.seen[-1] == "run_finished"
            # Nothing twice, nothing lost.
            assert first.seen == second.seen == reloaded.seen
            # The next question of the conversation.
            await client.post(f"/runs/{run}/messages", json={"text": "again"})
            await first.read()
            assert first.texts[1].startswith("You said: again.")
            assert (await Page(client, run).read()).seen == first.seen

    asyncio.run(main())


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_is_decided_on_with_its_arguments_in_view(server, approved):
    async def main():
        async with browser(server) as client:
            run = await begin(client, "Write a mail to Anna")
            page = await Page(client, run).read(until=lambda page: "ticket_opened" in page.seen)
            assert page.data["needs_approval"] is True
            assert page.data["arguments"] == {
                "to": "anna@example.org",
                "text": "Hello Anna! Write a mail to Anna",
            }
            # Two people decide at once.
            codes = await asyncio.gather(
                *(decide(client, run, approved=approved, why="not now") for _ in range(2))
            )
            assert sorted(codes) == [200, 409]
            await page.read()
            end = "The mail is on its way." if approved else "Then I leave it."
            assert page.texts == [end]

    asyncio.run(main())


def test_a_page_connects_again_after_the_server_was_killed(server):
    async def main():
        async with browser(server) as client:
            run = await begin(client, "hello")
            page = Page(client, run)
            await page.read(until=lambda page: "nothing to add" in page.text)
        server.kill()
        server.start()
        async with browser(server) as client:
            page.client = client
            await page.read()
            assert page.is_over
            assert page.texts == [ANSWER.strip()]
            assert page.seen == (await Page(client, run).read()).seen
            assert page.seen.count("noted") == 1

    asyncio.run(main())


def test_fifty_clients_at_once(server):
    async def one(client, number):
        run = await begin(client, f"question {number}")
        tabs = await asyncio.gather(Page(client, run).read(), Page(client, run).read())
        return [page.texts for page in tabs]

    async def main():
        async with browser(server) as client:
            return await asyncio.gather(*(one(client, number) for number in range(50)))

    for number, tabs in enumerate(asyncio.run(main())):
        assert all(len(texts) == 1 for texts in tabs)
        assert all(texts[0].startswith(f"You said: question {number}.") for texts in tabs)


def test_a_run_that_is_not_there(server):
    base = server.url
    reply = httpx.post(f"{base}/runs/none/messages", json={"text": "x"}, timeout=60)
    assert reply.status_code == 404
    reply = httpx.post(f"{base}/runs/none/tickets/T1", json={"approved": True}, timeout=60)
    assert reply.status_code == 404
    assert "event: failed" in httpx.get(f"{base}/runs/none/events", timeout=60).text
