"""The chat of the examples, as its page uses it: over HTTP, with reloads, tabs and restarts."""

import asyncio
import base64
import json
from io import BytesIO

import httpx
import pytest
from PIL import Image

from chatting import ANSWER, Page, begin, browser, decide, message
from example_server import Server
from pictures import png


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all tests: a test that kills it starts it again."""
    store = tmp_path_factory.mktemp("chat") / "chat.sqlite"
    server = Server("chat/app.py", "--store", store)
    server.start()
    yield server
    server.kill()


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
    assert httpx.get(f"{base}/runs/none/events", timeout=60).status_code == 404


PDF = b"%PDF-1.4 and so on"


def check_part(address, data, media_type, disposition):
    reply = httpx.get(address, timeout=60)
    assert reply.content == data
    assert reply.headers["content-type"] == media_type
    assert reply.headers["content-disposition"] == disposition
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_images_and_files_are_taken_shown_and_kept_over_a_kill(server):
    cat = png(32, 16)

    async def ask():
        async with browser(server) as client:
            files = [('Kätzchen "1".png', cat), ("report.pdf", PDF)]
            run = await begin(client, "What is this?", *files)
            page = await Page(client, run).read()
            seen = "image of 32 by 16 pixels; report.pdf: a file of 18 bytes."
            assert page.texts == [f'I see Kätzchen "1".png: an {seen}']
            # The next message has one too, and no words.
            await client.post(f"/runs/{run}/messages", json=message("", ("b.png", png(3, 2))))
            await page.read()
            assert page.texts[1:] == ["I see b.png: an image of 3 by 2 pixels."]
            return run

    async def started(run):
        async with browser(server) as client:
            page = Page(client, run)
            return (await page.read(until=lambda page: "run_started" in page.seen)).data

    run = asyncio.run(ask())
    for is_again in (False, True):
        if is_again:
            server.kill()
            server.start()
        event = asyncio.run(started(run))
        assert [(part["label"], part["media_type"], part["bytes"]) for part in event["parts"]] == [
            ("U1", "image/png", len(cat)),
            ("U2", "application/pdf", len(PDF)),
        ]
        assert base64.b64encode(cat).decode() not in json.dumps(event)
        parts = f"{server.url}/runs/{run}/parts"
        shown = "inline; filename*=UTF-8''K%C3%A4tzchen%20%221%22.png"
        check_part(f"{parts}/U1", cat, "image/png", shown)
        loaded = "attachment; filename*=UTF-8''report.pdf"
        check_part(f"{parts}/U2", PDF, "application/pdf", loaded)
        shown = "inline; filename*=UTF-8''b.png"
        check_part(f"{parts}/U3", png(3, 2), "image/png", shown)


def test_a_tool_returns_a_picture(server):
    async def main():
        async with browser(server) as client:
            run = await begin(client, "Draw a chart of 3 1 4")
            page = Page(client, run)
            await page.read(until=lambda page: page.seen[-1:] == ["ticket_completed"])
            (part,) = page.data["parts"]
            assert (part["label"], part["width"], part["height"]) == ("T1", 318, 160)
            await page.read()
            assert page.texts == ["I have drawn chart.png: an image of 318 by 160 pixels."]
            return (await client.get(f"/runs/{run}/parts/T1")).content

    drawn = Image.open(BytesIO(asyncio.run(main()))).convert("RGB")
    heights = [
        sum(drawn.getpixel((x, y)) == (0x25, 0x63, 0xEB) for y in range(160))
        for x in (50, 150, 250)
    ]
    assert heights == [120, 40, 160]


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        (
            "notes.png",
            b"words",
            "notes.png: expected an image in PNG, JPEG, GIF or WebP: got other bytes; open it with "
            "PIL and pass that image, or pass it as a File",
        ),
        (
            "none.png",
            b"",
            "none.png: expected a file with bytes in it: got none in none.png; pass another file, "
            "or say in the text that it is empty",
        ),
        (
            "big.png",
            png(1, 1) + bytes(10_000_000),
            "big.png: expected at most 10 MB: got 10000069 bytes; pass a smaller file",
        ),
    ],
    ids=["type", "empty", "size"],
)
def test_a_file_that_is_not_taken_is_refused_with_the_reason(server, name, data, error):
    sent = message("look", ("a.png", png(1, 1)), (name, data))
    reply = httpx.post(f"{server.url}/runs", json=sent, timeout=60)
    assert (reply.status_code, reply.json()) == (422, {"error": error})


def test_a_message_that_is_too_large_or_none_is_refused(server):
    reply = httpx.post(f"{server.url}/runs", content=bytes(60_000_001), timeout=60)
    error = "expected a body of at most 60,000,000 bytes: got more; pass less"
    assert (reply.status_code, reply.json()) == (413, {"error": error})
    for sent in (b"{", b'{"text": 1}', b'{"files": [{"name": "a.png", "data": "\xff"}]}'):
        assert httpx.post(f"{server.url}/runs", content=sent, timeout=60).status_code == 422


def test_a_part_that_is_not_there(server):
    run = httpx.post(f"{server.url}/runs", json={"text": "hello"}, timeout=60).json()["run"]
    for path in (f"/runs/{run}/parts/U1", "/runs/none/parts/U1"):
        assert httpx.get(server.url + path, timeout=60).status_code == 404
