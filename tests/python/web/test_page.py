"""The application and the page of the how-to, as copied, in a real browser."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browsing import CHROMIUM, Watched
from callslip import Agent, ScriptedModel
from callslip.web import Guard
from consoles import served
from scripted import block, task_of, turn_of

HOW_TO = Path(__file__).resolve().parents[3] / "docs/howto/web.md"
STATE = "source.readyState"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def site():
    """The address of the application of the how-to, and that of another site."""
    text = HOW_TO.read_text("utf-8").partition("\n## Errors\n")[0]
    names = {"__name__": "how_to"}
    code = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    # Playwright's own loop runs in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: [exec(one, names) for one in code]).result()
    app = Guard(names["app"])

    async def other(scope, receive, send):
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<title>Another site</title>"})

    with served(app, lifespan="on") as address, served(other) as foreign:
        yield address, foreign, names


def say(page, text):
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_a_conversation_with_reloads_tabs_decisions_and_an_end(browser, site):
    address, _, names = site
    store = names["agent"].store
    with Watched(browser) as watched:
        page, lines = watched.page, watched.page.locator("#log p")
        watched.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        asked = []
        watched.context.on("request", lambda one: asked.append(one.url))
        expect.set_options(timeout=60_000)
        page.goto(f"{address}/")
        say(page, "Write a mail to Ann")
        expect(lines).to_have_count(2)
        # A reload while the call waits, and a second tab.
        page.reload()
        second = watched.context.new_page()
        second.goto(page.url)
        second.get_by_role("button", name="Approve").wait_for()
        # One that is decided between the page's last look and the press.
        page.get_by_role("button", name="Approve").wait_for()
        second.evaluate("source.close()")
        page.get_by_role("button", name="Approve").click()
        expect(lines).to_have_text(["Write a mail to Ann", "T1: ok", "It is done."])
        second.get_by_role("button", name="Deny").click()
        expect(second.locator("#log")).to_contain_text("which was approved already")
        assert page.evaluate(STATE) == 2
        # The next turn goes on behind the last event.
        say(page, "What is the capital of Norway?")
        expect(lines.last).to_have_text("Oslo.")
        expect(lines).to_have_count(5)
        assert "?after=" in asked[-1]
        assert page.evaluate(STATE) == 2
        # By the standard, 204 ends all attempts of a browser that does not close at the end.
        last = page.evaluate(
            """() => new Promise(done => {
              const again = new EventSource(source.url.replace(/after=.*/, "after=" + last))
              again.onerror = () => done(again.readyState)
            })"""
        )
        assert last == 2
        (run,) = [one for one in store.runs() if one.task == "Write a mail to Ann"]
        assert store.run(run.run_id).seq == int(page.evaluate("last"))
        assert watched.happened == []


def test_calls_of_child_runs_are_decided_one_by_one(browser, site, monkeypatch):
    address, _, names = site

    def below(messages):
        mail = ("a", "send_mail", {"to": task_of(messages), "text": "Hello!"})
        return "over" if turn_of(messages) else block(mail)

    mailer = Agent(below, tools=[names["send_mail"]], protocol="chatty", name="mailer")
    calls = [(who, "mailer", {"task": f"{who}.example"}) for who in ("ann", "bob")]
    above = ScriptedModel([block(*calls), "It is done."])
    store = names["agent"].store
    leader = Agent(above, tools=[mailer.as_tool()], protocol="chatty", store=store)
    monkeypatch.setitem(names, "agent", leader)
    with Watched(browser) as watched:
        page = watched.page
        watched.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        page.goto(f"{address}/")
        say(page, "Write to both")
        approve = page.get_by_role("button", name="Approve")
        expect(approve).to_have_count(2)
        second = watched.context.new_page()
        second.goto(page.url)
        expect(second.get_by_role("button", name="Approve")).to_have_count(2)
        approve.nth(1).click()
        for tab in (page, second):
            expect(tab.get_by_role("button", name="Deny")).to_have_count(1)
            expect(tab.locator("#log")).to_contain_text("ann.example")
        second.get_by_role("button", name="Deny").click()
        for tab in (page, second):
            expect(tab.locator("#log p").last).to_have_text("It is done.")
            expect(tab.get_by_role("button", name="Deny")).to_have_count(0)
        outcomes = {
            run.task: [ticket.outcome for ticket in run.tickets]
            for run in store.run(page.url.partition("#")[2]).children
        }
        assert outcomes == {"ann.example": ["denied"], "bob.example": ["ok"]}
        assert watched.happened == []


def test_another_site_can_start_and_decide_nothing(browser, site):
    address, foreign, names = site
    store = names["agent"].store
    before = len(store.runs())
    with Watched(browser) as watched:
        watched.page.goto(foreign)
        for kind in ("text/plain", "application/json"):
            watched.page.evaluate(
                """([address, kind]) => fetch(address, {
                  method: "POST", mode: kind === "text/plain" ? "no-cors" : "cors",
                  headers: { "content-type": kind }, body: '{"text": "hello"}',
                }).catch(() => null)""",
                [f"{address}/runs", kind],
            )
    assert len(store.runs()) == before
