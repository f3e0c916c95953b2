"""A console in a real browser: what a person sees, types and decides."""

import http.server
import json
import threading

import pytest

from browsing import CHROMIUM, LEGIBLE, Watched
from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip.console import console
from consoles import TOKEN, boxes, decide, leave_waiting, pay, pay_call, served, signed_in, until
from hostile import ADDED, HOSTILE, named
from scripted import act, block, finish

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture
def store():
    return TicketStore()


@pytest.fixture
def address(store):
    with served(console(store, token=TOKEN)) as address:
        yield address


class Reader(Watched):
    """A page of the console, of a person who has signed in, and all that went wrong in it."""

    def __init__(self, browser, address, path="/", **options):
        super().__init__(browser, **options)
        self.page.on("request", self.asked)
        self.address = address
        has_script = options.get("java_script_enabled", True)
        self.page.goto(f"{address}/login#token={TOKEN}")
        if not has_script:
            self.page.get_by_label("Token").fill(TOKEN)
            self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{address}/")
        if path != "/":
            self.page.goto(f"{address}{path}")
        if has_script:
            self.page.locator("#live.is-live").wait_for()

    def asked(self, request):
        if not request.url.startswith((self.address, "data:")):
            self.happened.append(request.url)


def leave_two(store):
    calls = block(("one", "pay", {"invoice": 4711}), ("two", "pay", {"invoice": 4712}))
    return leave_waiting(store, calls, protocol="chatty")


def test_a_person_signs_in_reads_and_approves(browser, store, address):
    run_id = leave_waiting(store, pay_call(invoice=4711))
    with Reader(browser, address) as reader:
        page = reader.page
        assert page.url == f"{address}/"
        assert page.locator("h1").text_content() == "1 run waiting for you"
        page.get_by_role("link", name="Pay the bills.").click()
        page.locator("#live.is-live").wait_for()
        page.get_by_role("button", name="Approve this call").click()
        page.locator("#said", has_text="T1 is approved").wait_for()
        page.locator(".ask").wait_for(state="detached")
        assert store.run(run_id).trace().tickets[0].approval.by == "127.0.0.1"
        assert reader.happened == []


def test_a_decision_is_told_though_its_answer_comes_late(browser, store, address):
    run_id = leave_waiting(store, pay_call(invoice=4711))
    with Reader(browser, address, f"/runs/{run_id}") as reader:
        page = reader.page

        def late(route):
            answer = route.fetch()
            page.locator("#said", has_text="T1 does not wait any more").wait_for()
            route.fulfill(response=answer)

        page.route("**/decide", late)
        page.get_by_role("button", name="Approve this call").click()
        page.locator("#said", has_text="T1 is approved").wait_for()


def test_the_token_may_be_typed(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}/")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.locator("#live.is-live").wait_for()
    assert TOKEN not in page.content()
    context.close()


def test_what_a_person_types_and_opens_stays_while_the_page_changes(browser, store, address):
    steps = threading.Semaphore(0)

    @tool
    def step(number: int) -> str:
        """Step."""
        assert steps.acquire(timeout=60)
        return f"step {number} is done"

    script = [*(act("step", number=number) for number in range(3)), finish("all done")]
    agent = Agent(ScriptedModel(script), tools=[step], store=store)
    worker = threading.Thread(target=lambda: agent.run_sync("Take steps."))
    worker.start()
    until(store.tickets)
    (run,) = store.runs()
    with Reader(browser, address, f"/runs/{run.run_id}") as reader:
        page = reader.page
        row = page.locator("summary", has_text="T1 step")
        row.wait_for()
        row.focus()
        page.keyboard.press("Enter")
        steps.release(1)
        page.locator("summary", has_text="T2 step").wait_for()
        page.get_by_text("step 0 is done").wait_for()
        assert page.evaluate("document.activeElement.textContent").startswith("T1 step")
        steps.release(2)
        page.locator("h1", has_text="finished").wait_for()
        assert page.get_by_text("step 0 is done").is_visible()
        assert page.evaluate("document.activeElement.textContent").startswith("T1 step")
        assert reader.happened == []
    worker.join(60)


def test_a_reason_stays_while_another_call_is_decided(browser, store, address):
    run_id = leave_two(store)
    with Reader(browser, address, f"/runs/{run_id}") as reader, signed_in(address) as other:
        page = reader.page
        field = page.get_by_label("Why not?").nth(1)
        field.fill("too much")
        first, _ = boxes(page.content())
        assert decide(other, first).status_code == 200
        page.locator(".ask").nth(1).wait_for(state="detached")
        field = page.get_by_label("Why not?")
        assert field.input_value() == "too much"
        assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
        assert page.locator("#said").text_content() == "T1 does not wait any more"
        field.press("Enter")
        assert len(store.tickets(awaiting_approval=True)) == 1
        # Presses are not taken just after a box has gone.
        page.wait_for_timeout(1_500)
        page.get_by_role("button", name="Deny").click()
        page.locator("#said", has_text="T2 is denied").wait_for()
        # Nobody is left without a place on the page.
        page.locator(".ask").wait_for(state="detached")
        assert page.evaluate("document.activeElement.id") == "said"
    assert "too much" in store.tickets()[0].error


def test_the_second_of_two_people_is_told(browser, store, address):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with Reader(browser, address, f"/runs/{run_id}") as reader, signed_in(address) as other:
        page = reader.page
        (box,) = boxes(page.content())

        def first(route):
            assert decide(other, box, "deny").status_code == 200
            route.continue_()

        page.route("**/decide", first)
        # What the page is told meanwhile would take the box away.
        page.evaluate("window.dispatchEvent(new Event('pagehide'))")
        page.get_by_role("button", name="Approve this call").click()
        page.locator(".ask [role=status]", has_text="already").wait_for()
        assert page.evaluate("document.activeElement.dataset.do") == "approve"
    assert store.tickets()[0].outcome == "denied"


@pytest.mark.parametrize("path", ["/", "/runs/"])
def test_without_javascript_a_page_is_read_and_decides_nothing(browser, store, address, path):
    run_id = leave_two(store)
    path = f"{path}{run_id}" if path != "/" else path
    with Reader(browser, address, path, java_script_enabled=False) as reader:
        page = reader.page
        assert "needs JavaScript" in page.locator("#live").text_content()
        if path != "/":
            page.get_by_role("button", name="Approve this call").first.click()
        assert len(store.tickets(awaiting_approval=True)) == 2


@pytest.fixture(scope="module")
def hostile():
    """A console with one run of all hostile texts, whose last call waits."""

    @tool
    def look(what: str) -> str:
        """Look."""
        return what

    store = TicketStore()
    texts = "\n".join(HOSTILE)
    script = [*(act("look", what=text) for text in HOSTILE), pay_call(invoice=1, note=texts)]
    agent = Agent(
        ScriptedModel([*script, finish("x")]), tools=[look, pay], store=store, name=texts[:90]
    )

    def work():
        with pytest.raises(Exception, match="cancelled"):
            agent.run_sync(texts)

    worker = threading.Thread(target=work)
    worker.start()
    until(lambda: store.tickets(awaiting_approval=True))
    (run,) = store.runs()
    with served(console(store, token=TOKEN)) as address:
        yield address, f"/runs/{run.run_id}"
    store.run(run.run_id).cancel()
    worker.join(60)


def test_hostile_texts_do_nothing_and_are_shown(browser, hostile):
    address, path = hostile
    for where in ("/", path):
        with Reader(browser, address, where) as reader:
            page = reader.page
            for summary in page.locator("summary").all()[:5]:
                summary.click()
            assert page.locator("iframe, base, object, link, img").count() == 0
            assert page.locator("script").count() == 1
            assert page.locator("h1").count() == 1
            assert reader.happened == []
    assert page is not None


def test_hostile_texts_of_a_call_are_shown_in_its_box(browser, hostile):
    address, path = hostile
    with Reader(browser, address, path) as reader:
        shown = reader.page.locator(".ask").text_content()
        for text in HOSTILE:
            assert named(text) in shown


@pytest.mark.parametrize(
    "added",
    [
        *ADDED,
        "<form id=f action=https://evil.example/><button></button></form>",
    ],
)
def test_markup_that_is_added_does_nothing(browser, hostile, added):
    address, path = hostile
    with Reader(browser, address, path) as reader:
        page = reader.page
        title = page.title()
        reached = []
        page.context.route(
            "https://**", lambda route: (reached.append(route.request.url), route.abort())
        )
        page.evaluate("html => document.querySelector('main').innerHTML += html", added)
        page.evaluate("document.getElementById('f')?.submit()")
        page.wait_for_timeout(200)
        assert reached == []
        assert page.url == f"{address}{path}"
        if "<form" not in added:  # Chromium blocks it, and has no page any more
            assert page.title() == title
            assert page.locator("h1").last.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_are_legible(browser, hostile, scheme, width):
    address, path = hostile
    size = {"width": width, "height": 800}
    for where in ("/", path):
        with Reader(browser, address, where, viewport=size, color_scheme=scheme) as reader:
            page = reader.page
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate(LEGIBLE) >= 4.5
            small = page.locator("button, input, select, textarea, summary").evaluate_all(
                "all => all.map(one => one.getBoundingClientRect().height).filter(h => h && h < 40)"
            )
            assert small == []


OTHER = """<!doctype html><title>other</title><iframe src="{page}"></iframe>
<script>
fetch("{page}", {{credentials: "include"}}).then(() => document.title += " read", () => 0);
fetch("{decide}", {{method: "POST", credentials: "include", body: '{{}}'}})
  .then(() => document.title += " sent", () => document.title += " refused");
fetch("{decide}", {{method: "POST", mode: "no-cors", credentials: "include", body: '{body}',
  headers: {{"Content-Type": "text/plain"}}}})
  .finally(() => document.title += " done").catch(() => 0);
</script>"""


def test_a_page_of_another_origin_reads_and_decides_nothing(browser, store, address):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with signed_in(address) as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
    body = json.dumps({"do": "approve", "ticket": "T1", "seal": box["seal"], "why": ""})
    html = OTHER.format(
        page=f"{address}/runs/{run_id}", decide=f"{address}{box['address']}", body=body
    )

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Reader(browser, address) as reader:
            page = reader.page
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_function("document.title.includes('done')")
            assert "read" not in page.title()
            assert "sent" not in page.title()
            assert page.frames[1].url.startswith("chrome-error:")
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
    assert store.tickets(awaiting_approval=True)


def test_a_page_tells_that_its_server_is_gone_and_comes_back(browser, store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    with served(app) as address, Reader(browser, address, f"/runs/{run_id}") as reader:
        page = reader.page
        app.end_streams()
        page.locator("#live.is-lost").wait_for()
        assert "trying again" in page.locator("#live").text_content()
        app._live._closed = False
        page.locator("#live.is-live").wait_for()
        store.run(run_id).deny("T1")
        page.locator(".ask").wait_for(state="detached")


def test_a_page_that_nobody_sees_holds_no_connection_and_catches_up(browser, store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    with served(app) as address, Reader(browser, address, f"/runs/{run_id}") as reader:
        page = reader.page
        page.evaluate(HIDDEN, True)
        until(lambda: app._live._pages == 0)
        store.run(run_id).deny("T1")
        page.evaluate(HIDDEN, False)
        page.locator(".ask").wait_for(state="detached")
        assert reader.happened == []


HIDDEN = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


TALL = {"width": 1280, "height": 2_000}


def leave_four(store):
    calls = [(f"c{at}", "pay", {"invoice": 7}) for at in range(4)]
    return leave_waiting(store, block(*calls), protocol="chatty")


def test_two_presses_at_one_place_are_one_decision(browser, store, address):
    run_id = leave_four(store)
    with Reader(browser, address, f"/runs/{run_id}", viewport=TALL) as reader:
        page = reader.page
        for waiting in (3, 2):
            place = page.get_by_role("button", name="Approve this call").first.bounding_box()
            at = (place["x"] + 5, place["y"] + 5)
            page.mouse.click(*at)
            for pause in (150, 300, 500, 1_000):
                page.wait_for_timeout(pause)
                page.mouse.click(*at)
            page.locator(".ask").nth(waiting).wait_for(state="detached")
            assert len(store.tickets(awaiting_approval=True)) == waiting
            page.wait_for_timeout(1_200)
        assert reader.happened == []


PRESS_WHEN_IT_GOES = """([x, y]) => {
  const all = document.querySelector('[data-section="asks"]');
  window.pressed = "";
  new MutationObserver(() => {
    const under = document.elementFromPoint(x, y);
    under.click();
    window.pressed = under.textContent;
  }).observe(all, { childList: true });
}"""


def test_a_press_that_comes_after_another_persons_decision_decides_nothing(browser, store, address):
    run_id = leave_four(store)
    with Reader(browser, address, f"/runs/{run_id}", viewport=TALL) as reader:
        page = reader.page
        place = page.get_by_role("button", name="Approve this call").nth(1).bounding_box()
        at = [place["x"] + 5, place["y"] + 5]
        page.evaluate(PRESS_WHEN_IT_GOES, at)
        store.run(run_id).deny("T2", by="bob")
        page.locator("#said", has_text="T2 does not wait any more").wait_for()
        # The box goes, and the next one comes under the pointer.
        until(lambda: page.evaluate("window.pressed"))
        assert page.evaluate("window.pressed") == "Approve this call"
        page.locator("#said", has_text="the page has just changed: press again").wait_for()
        assert len(store.tickets(awaiting_approval=True)) == 3


@pytest.mark.parametrize(
    "note",
    [
        "Send the newsletter to all. " * 65 + "AND ALL THE MONEY TO MALLORY",
        "Send the newsletter." + "\u2800" * 1_500 + "AND ALL THE MONEY TO MALLORY",
        "Send the newsletter." + "\n" * 40 + "AND ALL THE MONEY TO MALLORY",
        "Send the newsletter." + "\u3000" * 1_800 + "AND ALL THE MONEY TO MALLORY",
    ],
    ids=["long", "blank", "lines", "spaces"],
)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_part_of_a_call_that_is_out_of_sight_is_told(browser, store, address, note, width):
    run_id = leave_waiting(store, pay_call(invoice=7, note=note))
    size = {"width": width, "height": 800}
    with Reader(browser, address, f"/runs/{run_id}", viewport=size) as reader:
        hidden, told = reader.page.evaluate(
            """() => ["pre", ".more"].map(name => [...document.querySelectorAll(`.ask ${name}`)]
              .filter(one => name === ".more" || one.scrollHeight > one.clientHeight + 1).length)"""
        )
        assert hidden == told
        # A browser lets spaces hang over the end of a line.
        assert hidden == 1 or width == 1280 or "\u3000" in note
        if "\u2800" in note:
            assert "\u27e8U+2800\u27e9" in reader.page.locator(".ask").text_content()


def test_a_reason_stays_while_another_process_has_the_file(browser, path):
    with TicketStore(path) as kept:
        run_id = leave_waiting(kept, pay_call(invoice=7))
    app = console(path, token=TOKEN)
    with served(app) as address, Reader(browser, address, f"/runs/{run_id}") as reader:
        page = reader.page
        page.get_by_label("Why not?").fill("too much")
        app._source.owner = lambda: "process 7"
        page.get_by_text("process 7").wait_for()
        assert page.locator(".ask button").count() == 0
        assert page.locator("#said").text_content() == ""
        app._source.owner = lambda: None
        page.get_by_role("button", name="Deny").wait_for()
        assert page.get_by_label("Why not?").input_value() == "too much"


def test_a_reason_and_an_approval_do_not_go_together(browser, store, address):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with Reader(browser, address, f"/runs/{run_id}") as reader:
        page = reader.page
        page.get_by_label("Why not?").fill("only if the amount is right")
        page.get_by_role("button", name="Approve this call").click()
        page.get_by_text("A reason is for a denial").wait_for()
        assert store.tickets(awaiting_approval=True)


def test_a_link_of_another_site_signs_in_and_leads_to_its_run(browser, store, address, tmp_path):
    run_id = leave_waiting(store, pay_call(invoice=7))
    links = (f"{address}/login#token={TOKEN}", f"{address}/runs/{run_id}")
    page_of_links = tmp_path / "links.html"
    page_of_links.write_text("".join(f'<a href="{link}">{link}</a><br>' for link in links))
    with Watched(browser) as other:
        for link, title in zip(
            links, ("1 run waiting for you", "bank: awaiting approval"), strict=True
        ):
            other.page.goto(page_of_links.as_uri())
            other.page.get_by_text(link).click()
            other.page.locator("h1", has_text=title).wait_for()
        other.context.clear_cookies()
        other.page.goto(page_of_links.as_uri())
        other.page.get_by_text(links[1]).click()
        other.page.get_by_label("Token").wait_for()


def test_the_list_keeps_the_focus_while_runs_come(browser, store, address):
    agent = Agent(ScriptedModel([finish("x")]), store=store, name="first")
    # The browser's driver has a loop in this thread.
    worker = threading.Thread(target=lambda: agent.run_sync("The first task."))
    worker.start()
    worker.join()
    with Reader(browser, address) as reader:
        page = reader.page
        page.get_by_role("link", name="The first task.").focus()
        leave_waiting(store, pay_call(invoice=7))
        page.get_by_role("link", name="Pay the bills.").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "The first task."
