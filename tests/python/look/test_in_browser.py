"""Pages of runs in a real browser, without a network and without scripts of their own."""

import pytest

from browsing import CHROMIUM, LEGIBLE, Opened
from callslip import Agent, Limits, ScriptedModel, tool
from hostile import ADDED, HOSTILE, named
from scripted import act, finish

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    # The browser's driver has a loop in the thread of the tests.
    pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning"),
]


@tool
def look(what: str) -> str:
    """Look."""
    return what


@tool
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(what)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    script = [act(HOSTILE[0])]
    for text in HOSTILE:
        script += [act("look", what=text), act("fail", what=f"{text} {'wide' * 400}")]
    agent = Agent(
        ScriptedModel([*script, finish("\n".join(HOSTILE))]),
        tools=[look, fail],
        protocol="react",
        name="hostile",
        limits=Limits(turns=200),
    )
    path = tmp_path_factory.mktemp("look") / "trace.html"
    agent.run_sync("\n".join(HOSTILE)).to_html(path, open="all")
    return path


@pytest.mark.parametrize("javascript", [True, False])
def test_a_hostile_page_does_nothing_and_shows_its_texts(browser, path, javascript):
    with Opened(browser, path, java_script_enabled=javascript) as opened:
        task = opened.page.locator("pre").first.text_content()
        for text in HOSTILE:
            assert named(text) in task
        assert opened.page.locator("h1").count() == 1
        assert opened.page.locator("footer").is_visible()
        assert opened.page.locator("script, iframe, form, base, link, a").count() == 0
        assert opened.happened == [path.as_uri()]


@pytest.mark.parametrize("added", ADDED)
def test_markup_that_is_added_by_hand_does_nothing(browser, path, tmp_path, added):
    changed = tmp_path / "changed.html"
    html = path.read_text("utf-8")
    changed.write_text(html.replace("<main>", f"<main>{added}", 1), encoding="utf-8")
    with Opened(browser, changed) as opened:
        assert opened.page.title() == "hostile"
        assert opened.page.locator("h1").last.is_visible()
        assert opened.asked == [changed.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_and_is_legible(browser, path, scheme, width):
    size = {"width": width, "height": 800}
    with Opened(browser, path, viewport=size, color_scheme=scheme) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        assert opened.page.evaluate(LEGIBLE) >= 4.5
        heights = opened.page.locator("summary").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().height)"
        )
        # A block of rows that is far below is not laid out.
        seen = [height for height in heights if height]
        assert len(seen) >= 10
        assert min(seen) >= 40


def test_rows_open_by_the_keyboard(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        row = page.locator("details").first
        assert row.get_attribute("open") is not None
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
        page.keyboard.press("Enter")
        assert row.get_attribute("open") is None
        page.keyboard.press("Enter")
        assert row.get_attribute("open") is not None
        snapshot = page.locator("main").aria_snapshot()
        assert 'heading "hostile: finished" [level=1]' in snapshot
        assert "▾" not in snapshot
