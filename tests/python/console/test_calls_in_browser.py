"""200 hostile arguments in boxes of the console: what is executed is on the screen, alone."""

import pytest

from browsing import CHROMIUM, Watched
from callslip import Agent, Limits, ScriptedModel, TicketStore, tool
from callslip.approval import view
from callslip.console import console
from consoles import TOKEN, leave, served
from hostile_calls import LOOK, hostile_values, read_back
from scripted import block

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

COUNT, PAGES = 200, 4
TAGS = [
    "h3", "h4", "p", "small", "dl", "dt", "dd", "pre", "ul", "li", "bdi", "div", "details",
    "summary", "label", "textarea", "button",
]  # fmt: skip


@tool(needs_approval=True)
def pay(to: object, amount: int) -> str:
    """Pay."""
    raise AssertionError("it was made")


@pytest.fixture(scope="module")
def runs():
    """A console with runs of which each awaits the decisions on 50 calls."""
    store, values = TicketStore(), hostile_values(COUNT)
    size = COUNT // PAGES
    ids = []
    for page in range(PAGES):
        some = enumerate(values[page * size : (page + 1) * size])
        calls = block(*((f"c{at}", "pay", {"to": one, "amount": 90000}) for at, one in some))
        limits = Limits(open_tickets=COUNT, reply_bytes=10_000_000)
        model = ScriptedModel([calls])
        agent = Agent(
            model, tools=[pay], store=store, name="bank", protocol="chatty", limits=limits
        )
        ids.append(leave(agent, "Pay the bills."))
    with served(console(store, token=TOKEN)) as address:
        yield store, address, ids


class Seen(Watched):
    """A page of a person who has signed in, and the requests that leave the console."""

    def __init__(self, browser, address, width):
        super().__init__(browser, viewport={"width": width, "height": 800})
        self.page.on(
            "request",
            lambda request: (
                request.url.startswith((address, "data:")) or self.happened.append(request.url)
            ),
        )
        self.page.goto(f"{address}/login#token={TOKEN}")
        self.page.wait_for_url(f"{address}/")


UNDER = """button => {
  button.scrollIntoView({ block: "center", behavior: "instant" });
  const { left, right, top, bottom } = button.getBoundingClientRect();
  return [[left + 4, top + 4], [right - 4, top + 4], [(left + right) / 2, (top + bottom) / 2],
          [left + 4, bottom - 4], [right - 4, bottom - 4]]
    .every(([x, y]) => document.elementFromPoint(x, y) === button);
}"""

ALL = f"""([boxes, allowed]) => boxes.map(box => {{
  const look = {LOOK};
  const under = {UNDER};
  const seen = look([box, box.querySelector(".buttons"), allowed]);
  const buttons = [...box.querySelectorAll("button")];
  const outer = box.getBoundingClientRect();
  if (!buttons.every(under)) seen.problems.push("something covers a button");
  if (!buttons.every(one => one.getBoundingClientRect().right <= outer.right)) {{
    seen.problems.push("a button leaves its box");
  }}
  return {{ ...seen, buttons: buttons.map(one => one.textContent), ticket: box.dataset.ticket }};
}})"""


@pytest.mark.random_cases
@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_executed_is_on_the_screen_and_nothing_else_looks_like_a_call(browser, runs, width):
    store, address, ids = runs
    with Seen(browser, address, width) as seen:
        for run_id in ids:
            page = seen.page
            page.goto(f"{address}/runs/{run_id}")
            page.locator("#live.is-live").wait_for()
            boxes = page.locator(".ask").element_handles()
            waiting = {one.id: one for one in store.run(run_id).awaiting_approval}
            assert len(boxes) == len(waiting) == COUNT // PAGES
            assert page.locator("button[data-do]").count() == 2 * len(boxes)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            for found in page.evaluate(ALL, [boxes, TAGS]):
                ticket = waiting[found["ticket"]]
                assert found["problems"] == [], ticket.arguments
                assert found["buttons"] == ["Approve this call", "Deny"]
                assert found["names"] == ["to", "amount"]
                shown = dict(zip(found["names"], map(read_back, found["fields"]), strict=True))
                assert shown == ticket.arguments
                assert found["short"] == view(ticket).short
        assert seen.happened == []


def test_what_was_shown_is_what_is_approved(browser, runs):
    store, address, (run_id, *_) = runs
    with Seen(browser, address, 390) as seen:
        page = seen.page
        page.goto(f"{address}/runs/{run_id}")
        page.locator("#live.is-live").wait_for()
        box = page.locator(".ask").nth(7)
        ticket_id = box.get_attribute("data-ticket")
        (shown, _) = map(read_back, page.evaluate(ALL, [[box.element_handle()], TAGS])[0]["fields"])
        box.get_by_role("button", name="Approve this call").click()
        page.locator("#said", has_text=f"{ticket_id} is approved").wait_for()
    (ticket,) = [one for one in store.run(run_id).tickets if one.id == ticket_id]
    assert not ticket.awaiting_approval
    assert ticket.arguments == {"to": shown, "amount": 90000}
