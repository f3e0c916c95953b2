"""The chat of the examples with two web processes and three workers on one database."""

import asyncio
import subprocess
import sys
import time

import pytest

from callslip import TicketStore
from callslip.fleet import status
from chatting import ANSWER, Page, begin, browser, decide, message
from example_server import EXAMPLES, Server


@pytest.fixture
def workers(database):
    words = [sys.executable, str(EXAMPLES / "chat/app.py"), "--store", database, "--work"]
    processes = [subprocess.Popen(words) for _ in range(3)]
    yield processes
    for process in processes:
        process.kill()
        process.wait(30)


@pytest.fixture
def servers(database, workers):
    servers = [Server("chat/app.py", "--store", database) for _ in range(2)]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        server.kill()


def test_a_page_of_one_process_follows_a_run_and_approvals_cross(servers):
    async def main():
        async with browser(servers[0]) as one, browser(servers[1]) as other:
            run = await begin(one, "send a mail")
            page = Page(other, run)
            await page.read(until=lambda page: page.seen[-1:] == ["ticket_opened"])
            assert page.data["needs_approval"] is True
            decisions = await asyncio.gather(
                decide(one, run, approved=True), decide(other, run, approved=True)
            )
            assert sorted(decisions) == [200, 409]
            await page.read()
            assert (page.is_over, page.texts) == (True, ["The mail is on its way."])
            # The next turn, by the other process.
            reply = await other.post(f"/runs/{run}/messages", json=message("hello"))
            assert reply.json()["run"] == run
            first = Page(one, run)
            await first.read()
            assert first.texts == ["The mail is on its way.", ANSWER.strip()]

    asyncio.run(main())


def test_an_answer_is_completed_by_another_worker(servers, workers, database):
    async def main():
        async with browser(servers[0]) as one:
            runs = [await begin(one, "hello") for _ in range(6)]
            with TicketStore(database) as store:
                while status(store).queued or not store.runs():
                    await asyncio.sleep(0.02)
            workers[0].kill()
            began = time.monotonic()
            for run in runs:
                page = Page(one, run)
                await asyncio.wait_for(page.read(), 60)
                assert page.texts == [ANSWER.strip()]
            return time.monotonic() - began

    # The lease of the example is five seconds.
    assert asyncio.run(main()) < 40
