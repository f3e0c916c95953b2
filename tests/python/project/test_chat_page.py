"""The page of the chat example in a real browser."""

import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from example_server import Server

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LONG = re.compile(r"^You said: hello\. (I have nothing to add, and I say it at length\.\s*){5}$")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def server(tmp_path):
    server = Server("chat/app.py", "--store", tmp_path / "chat.sqlite")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def page(browser, server):
    context = browser.new_context()
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page = context.new_page()
    page.goto(f"{server.url}/")
    yield page
    context.close()


def say(page, text):
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send").click()


def test_an_answer_grows_and_is_the_same_after_a_reload_and_in_a_second_tab(page):
    say(page, "hello")
    answer = page.locator(".model")
    expect(answer).to_contain_text("nothing to add")
    part = answer.inner_text()
    second = page.context.new_page()
    second.goto(page.url)
    page.reload()
    for tab in (page, second):
        expect(tab.locator(".user")).to_have_text("hello")
        expect(tab.locator(".model")).to_have_text(LONG)
        assert tab.locator(".model").inner_text().startswith(part.strip())
    # A question in one tab is answered in both, once the other has connected again.
    say(second, "again")
    expect(second.locator(".model").nth(1)).to_contain_text("You said: again.")
    page.reload()
    expect(page.locator(".user")).to_have_text(["hello", "again"])
    expect(page.locator(".model").nth(1)).to_contain_text("You said: again.")


def test_a_call_is_shown_whole_and_a_denial_is_told_to_the_model(page):
    say(page, "Write a mail to Anna")
    ticket = page.locator(".ticket")
    expect(ticket).to_contain_text('"to": "anna@example.org"')
    expect(ticket).to_contain_text('"text": "Hello Anna! Write a mail to Anna"')
    second = page.context.new_page()
    second.goto(page.url)
    second.get_by_placeholder("Why not?").fill("not now")
    second.get_by_role("button", name="Deny").click()
    for tab in (page, second):
        expect(tab.locator(".ticket em")).to_have_text("denied")
        expect(tab.locator(".ticket button")).to_have_count(0)
        expect(tab.locator(".model")).to_have_text("Then I leave it.")


def test_an_approved_call_is_made(page):
    say(page, "Write a mail to Anna")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".model")).to_have_text("The mail is on its way.")


def test_the_page_connects_again_after_the_server_was_killed(page, server):
    say(page, "hello")
    expect(page.locator(".model")).to_contain_text("nothing to add")
    server.kill()
    server.start()
    expect(page.locator(".model")).to_have_text(LONG)
    expect(page.locator(".user")).to_have_text("hello")
    expect(page.locator(".failed")).to_have_count(0)
