"""The page of the chat example in a real browser."""

import base64
import re

import pytest
from playwright.sync_api import expect

from browsing import CHROMIUM
from example_server import Server
from pictures import png

LONG = re.compile(r"^You said: hello\. (I have nothing to add, and I say it at length\.\s*){5}$")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all tests: a test that kills it starts it again."""
    store = tmp_path_factory.mktemp("chat") / "chat.sqlite"
    server = Server("chat/app.py", "--store", store)
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
    # Nothing more is asked for after the end: a source that is closed does not connect again.
    second.wait_for_function("source.readyState === EventSource.CLOSED")
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
    # One tab that knows nothing of the decision yet.
    third = page.context.new_page()
    third.goto(page.url)
    third.get_by_role("button", name="Approve").wait_for()
    third.evaluate("source.close()")
    second.get_by_placeholder("Why not?").fill("not now")
    second.get_by_role("button", name="Deny").click()
    expect(second.locator(".ticket em")).to_have_text("denied")
    third.get_by_role("button", name="Approve").click()
    expect(third.locator(".failed")).to_contain_text("got T1, which was denied already")
    for tab in (page, second):
        expect(tab.locator(".ticket em")).to_have_text("denied")
        expect(tab.locator(".ticket button")).to_have_count(0)
        expect(tab.locator(".model")).to_have_text("Then I leave it.")


def test_a_conversation_that_is_not_there_is_told_once(page):
    address = page.url
    # A new hash alone would load nothing.
    page.goto("about:blank")
    page.goto(f"{address}#none")
    expect(page.locator(".failed")).to_have_text(
        "there is no run none in this store: it was never written here, or it was deleted"
    )
    assert page.evaluate("source.readyState") == 2


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


def file(name, data, kind="image/png"):
    return {"name": name, "mimeType": kind, "buffer": data}


def attach(page, *files):
    page.get_by_label("Attach").set_input_files(list(files))


def check_picture(image, width, height):
    """The picture is there, and its bytes have arrived."""
    expect(image).to_be_visible()
    image.evaluate("image => image.decode()")
    size = image.evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert size == [width, height]


def check_words(page, *texts):
    """These are the user's words, without the lines that stand for files."""
    expect(page.locator(".user")).to_have_count(len(texts))
    shown = page.locator(".user").evaluate_all("boxes => boxes.map(box => box.firstChild.data)")
    assert shown == list(texts)


def test_images_are_seen_before_they_are_sent_and_stay(page, server, browser):
    files = [file("cat.png", png(32, 16)), file("report.pdf", b"%PDF-1.4", "application/pdf")]
    attach(page, *files, file("wrong.png", png(1, 1)))
    page.get_by_role("button", name="Remove wrong.png").click()
    check_picture(page.locator("form img"), 32, 16)
    say(page, "What is this?")
    expect(page.locator(".model")).to_have_text(
        "I see cat.png: an image of 32 by 16 pixels; report.pdf: a file of 8 bytes. "
    )
    expect(page.locator("form img")).to_have_count(0)
    attach(page, file("square.png", png(9, 9)))
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".model").nth(1)).to_contain_text("I see square.png")

    second = page.context.new_page()
    second.goto(page.url)
    page.reload()
    server.kill()
    server.start()
    # One that has nothing of the first one in its cache.
    third = browser.new_context().new_page()
    third.goto(page.url)
    for tab in (second, page, third):
        expect(tab.locator(".model")).to_have_count(2)
        check_words(tab, "What is this?", None)
        check_picture(tab.locator(".user").nth(0).get_by_role("img", name="cat.png"), 32, 16)
        check_picture(tab.locator(".user").nth(1).get_by_role("img", name="square.png"), 9, 9)
    with page.expect_download() as download:
        page.get_by_role("link", name="report.pdf").click()
    assert download.value.suggested_filename == "report.pdf"
    third.context.close()


def test_images_are_pasted_and_dropped(page):
    data = base64.b64encode(png(7, 5)).decode()
    for kind, field in (("paste", "clipboardData"), ("drop", "dataTransfer")):
        page.evaluate(
            """([kind, field, data]) => {
                const bytes = Uint8Array.from(atob(data), character => character.charCodeAt())
                const transfer = new DataTransfer()
                transfer.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }))
                const options = { bubbles: true, cancelable: true, [field]: transfer }
                const own = kind === "paste" ? ClipboardEvent : DragEvent
                document.querySelector("[name=text]").dispatchEvent(new own(kind, options))
            }""",
            [kind, field, data],
        )
        check_picture(page.get_by_role("img", name=f"{kind}.png"), 7, 5)
    say(page, "both")
    expect(page.locator(".user img")).to_have_count(2)


def test_a_picture_of_a_tool_is_shown_under_its_call(page):
    say(page, "Draw a chart of 3 1 4")
    for _ in range(2):
        check_picture(page.locator(".ticket").get_by_role("img", name="chart.png"), 318, 160)
        expect(page.locator(".ticket em")).to_have_text("ok")
        expect(page.locator(".model")).to_contain_text("I have drawn chart.png")
        page.reload()


def test_a_file_that_is_not_taken_is_told_and_may_be_replaced(page):
    attach(page, file("huge.png", bytes(10_000_001)), file("notes.txt", b"words", "text/plain"))
    expect(page.locator(".failed")).to_have_text(
        "huge.png is too large: expected at most 10 MB a file"
    )
    say(page, "What is this?")
    expect(page.locator(".failed").nth(1)).to_have_text(
        "notes.txt: expected an image in PNG, JPEG, GIF or WebP: got other bytes; open it with PIL "
        "and pass that image, or pass it as a File"
    )
    expect(page.get_by_label("Your message")).to_have_value("What is this?")
    page.get_by_role("button", name="Remove notes.txt").click()
    attach(page, file("cat.png", png(32, 16)))
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".model")).to_contain_text("I see cat.png")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    files = [file("wide" + "x" * 200 + ".png", png(3000, 20)), file("tall.png", png(20, 3000))]
    attach(page, *files, file("y" * 200 + ".pdf", b"%PDF-1.4", "application/pdf"))

    def check_width():
        assert page.evaluate("document.documentElement.scrollWidth") == width

    check_picture(page.locator("form img").nth(0), 3000, 20)
    check_width()
    say(page, "Draw a chart")
    expect(page.locator(".model")).to_contain_text("I see wide")
    check_picture(page.locator(".user img").nth(1), 20, 3000)
    check_width()
