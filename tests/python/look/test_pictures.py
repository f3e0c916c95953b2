"""The pictures of the documentation: `make pictures` takes them, and so does every test run."""

import os
import re
import threading
from pathlib import Path

import pytest

from browsing import CHROMIUM
from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip.console import console
from consoles import TOKEN, served, until
from scripted import block, finish

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = {"console-run.png", "console-runs.png", "trace.png"}


@tool
def invoices(of: str) -> list[dict]:
    """List the open invoices of a customer."""
    return [
        {"number": 4711, "amount": 912.4, "due": "2026-12-01"},
        {"number": 4712, "amount": 90.0, "due": "2026-12-15"},
    ]


@tool(needs_approval=True)
def pay(invoice: int, amount: float, note: str = "") -> str:
    """Pay an invoice."""
    return f"paid {amount} for invoice {invoice}"


SCRIPT = [
    "I look for the open invoices first.\n" + block(("find", "invoice", {"of": "Acme"})),
    "I look for the open invoices first.\n" + block(("find", "invoices", {"of": "Acme"})),
    "Both are due soon, so I pay them.\n"
    + block(
        ("first", "pay", {"invoice": 4711, "amount": 912.4, "note": "Acme & Sons, November"}),
        ("second", "pay", {"invoice": 4712, "amount": 90.0}),
    ),
    "Both invoices are paid: 4711 with 912.40 and 4712 with 90.00.",
]


@pytest.fixture(scope="module")
def pages():
    """A console with runs, and the page of one that is finished."""
    store = TicketStore()
    for task in ("Which invoices of Borg are open?", "Translate the reminder into Norwegian."):
        Agent(ScriptedModel([finish("None.")]), store=store, name="helper").run_sync(task)
    options = {"protocol": "chatty", "tools": [invoices, pay], "name": "bookkeeper"}
    agent = Agent(ScriptedModel(SCRIPT), store=TicketStore(), **options)
    done = agent.run_sync("Pay the open invoices of Acme.", approve=lambda _: True)
    assert done.value.startswith("Both invoices are paid")

    waiting = Agent(ScriptedModel(SCRIPT), store=store, **options)

    def work():
        with pytest.raises(Exception, match="cancelled"):
            waiting.run_sync("Pay the open invoices of Acme.")

    worker = threading.Thread(target=work)
    worker.start()
    until(lambda: len(store.tickets(awaiting_approval=True)) == 2)
    run_id = store.tickets(awaiting_approval=True)[0].run_id
    with served(console(store, token=TOKEN)) as address:
        yield address, f"/runs/{run_id}", done.to_html()
    store.run(run_id).cancel()
    worker.join(60)


@pytest.fixture
def take(browser, tmp_path):
    folder = DOCS / "pictures" if os.environ.get("CALLSLIP_WRITE_PICTURES") else tmp_path

    def take(page, name):
        assert name in PICTURES
        page.screenshot(path=folder / name)
        assert (folder / name).stat().st_size > 10_000

    page = browser.new_page(viewport={"width": 1000, "height": 640})
    yield page, take
    page.close()


def test_pictures_of_the_console(pages, take):
    address, path, _ = pages
    page, take = take
    page.goto(f"{address}/login#token={TOKEN}")
    page.wait_for_url(f"{address}/")
    page.locator("#live.is-live").wait_for()
    take(page, "console-runs.png")
    page.goto(f"{address}{path}")
    page.locator("#live.is-live").wait_for()
    assert page.locator(".ask").count() == 2
    take(page, "console-run.png")


def test_picture_of_a_trace(pages, take, tmp_path):
    page, take = take
    file = tmp_path / "trace.html"
    file.write_text(pages[2], "utf-8")
    page.goto(file.as_uri())
    take(page, "trace.png")


def test_every_picture_is_there_and_is_shown():
    linked = set()
    for page in DOCS.rglob("*.md"):
        linked |= set(re.findall(r"pictures/([\w-]+\.png)", page.read_text("utf-8")))
    assert linked == PICTURES == {one.name for one in (DOCS / "pictures").iterdir()}
