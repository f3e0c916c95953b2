"""Runs in notebooks: their outputs, in a real kernel, as a page in a real browser."""

import asyncio
import io
import os
import re
from pathlib import Path

import pytest
import rich.console

import callslip
from browsing import CHROMIUM, LEGIBLE, Opened
from callslip import Agent, Limits, ScriptedModel, TicketStore, UsageError, show, tool
from hostile import HOSTILE
from notebooks import Kernel, running_kernel
from optional import optional_module
from scripted import act, finish

# Jupyter's own warnings are none of ours.
pytestmark = pytest.mark.filterwarnings("default")


ELEMENTS = {
    "div",
    "style",
    "h1",
    "h2",
    "h3",
    "h4",
    "dl",
    "dt",
    "dd",
    "pre",
    "p",
    "details",
    "summary",
}
ELEMENTS |= {"span", "strong", "svg", "rect", "section", "mark", "code"}


@tool
def look(what: str) -> str:
    """Look."""
    return what


def run_of(*replies, task="Look.", **more):
    agent = Agent(ScriptedModel([*replies]), tools=[look], protocol="react", **more)
    return agent.run_sync(task)


def html_of(value):
    return value._repr_mimebundle_()["text/html"]


def test_a_run_is_printed_in_six_lines():
    run = run_of(act("loook", what="x"), act("look", what="a\nb"), finish("seen\n" * 100)).run
    lines = str(run).split("\n")
    assert len(lines) == 6
    assert lines[0] == f"run {run.id}: finished"
    assert lines[3].startswith("3 turns, 1 ticket, 1 violation, ")
    assert lines[4] == "task: Look."
    assert lines[5].startswith("answer: seen seen")
    assert max(map(len, lines)) <= 120
    assert repr(run).count("\n") == 0


def test_an_output_stands_alone_and_says_what_the_page_says():
    result = run_of(act("loook", what="x"), act("look", what="<b>here</b>"), finish("seen"))
    html = html_of(result)
    assert html == html_of(result.run)
    for text in ("unknown_tool", "&lt;b&gt;here&lt;/b&gt;", "<pre>\nseen</pre>", "<style>"):
        assert text in html
    assert "<script" not in html
    assert html.startswith('<div class="callslip">')


def test_a_violation_shows_its_place_and_what_was_expected():
    violation = callslip.ReactProtocol().parse("no action, but <b>").violation
    bundle = violation._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"].startswith(f"{violation.code}: ")
    html = bundle["text/html"]
    assert f"<h1>violation: {violation.code}</h1>" in html
    assert "<dt>expected</dt>" in html
    assert "<b>" not in html


def test_one_run_of_a_list_is_shown_as_a_list_of_one():
    with TicketStore() as store:
        run_of(finish("x"), store=store)
        (stored,) = store.runs()
        assert stored._repr_mimebundle_() == store.runs()._repr_mimebundle_()


def test_rich_prints_all_turns_and_takes_no_markup_from_texts():
    printed = io.StringIO()
    console = rich.console.Console(file=printed, width=80, force_terminal=False)
    result = run_of(act("look", what="[bold red]x[/]\x1b[2J"), finish("[link=x]done[/link]"))
    console.print(result)
    text = printed.getvalue()
    assert text.startswith(f"run {result.run.id}: finished\n")
    for part in ("turn 1", "turn 2", "[bold red]x[/]\\u001b[2J", "[link=x]done[/link]"):
        assert part in text
    for value in (result.run, result):
        assert len([*value.__rich_console__(console, console.options)]) >= 10


def test_a_ticket_shows_its_call_and_its_result():
    (ticket,) = run_of(act("look", what=["<i>", "\u202e"][0]), finish("x")).tickets
    bundle = ticket._repr_mimebundle_()
    assert bundle["text/plain"] == 'T1 ok: look {"what": "<i>"}'
    assert "<h1>T1 look: ok</h1>" in bundle["text/html"]
    assert bundle["text/html"].count("&lt;i&gt;") == 3


def test_runs_of_a_store_are_a_table(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        for task in ("<b>one</b>", "two"):
            run_of(finish("x"), task=task, store=store)
        runs = store.runs()
        assert [run.task for run in runs] == ["two", "<b>one</b>"]
        bundle = runs._repr_mimebundle_()
    assert bundle["text/html"].count("<tr>") == 3
    assert "&lt;b&gt;one&lt;/b&gt;" in bundle["text/html"]
    assert len(bundle["text/plain"].split("\n")) == 3


def test_a_long_run_is_cut_to_what_a_notebook_bears():
    replies = [act("look", what=f"{n} {'wide ' * 2_000}") for n in range(300)]
    result = run_of(*replies, finish("x"), limits=Limits(turns=400, tickets=400))
    html = html_of(result)
    assert len(html) <= 150_000
    assert "run.to_html(&quot;trace.html&quot;)" in html
    assert "turns left out" in html


def test_hostile_texts_stay_texts_in_outputs():
    replies = [act("look", what=text) for text in HOSTILE]
    result = run_of(*replies, finish("\n".join(HOSTILE)), limits=Limits(turns=100), task=HOSTILE[0])
    for value in (result, *result.tickets):
        html = html_of(value)
        assert "<script" not in html
        assert set(re.findall(r"<\s*/?([a-z0-9]+)", html)) <= ELEMENTS
        assert not re.findall(r"<[^>]*\son\w+=", html)
        assert not any(ord(one) < 32 and one not in "\n\t" for one in html)
        assert "\u202e" not in html


def test_show_prints_events_where_there_is_no_notebook(capsys):
    agent = Agent(ScriptedModel([act("look", what="x"), finish("seen")]), tools=[look])
    result = asyncio.run(awaited(agent))
    assert result.value == "seen"
    lines = capsys.readouterr().err.split("\n")
    assert 'T1 look {"what": "x"}' in lines
    assert lines[-2] == "run ended, finished: seen"


async def awaited(agent):
    return await show(agent.stream("Look."))


def test_show_passes_on_what_the_stream_gives():
    def agent():
        return Agent(ScriptedModel([act("look", what="x"), finish("seen")]), tools=[look])

    async def kinds(make):
        return [type(item).__name__ async for item in make()]

    async def both():
        async with agent().stream("Look.") as stream:
            bare = [type(item).__name__ async for item in stream]
        started = agent().start("Look.")
        return (
            bare,
            await kinds(lambda: show(agent().stream("Look."))),
            await kinds(lambda: show(started)),
        )

    bare, streamed, watched = asyncio.run(both())
    assert bare == streamed == watched


def test_show_raises_as_the_run_does():
    agent = Agent(ScriptedModel([]), tools=[look])
    with pytest.raises(Exception, match="script"):
        asyncio.run(awaited(agent))


def test_show_needs_a_stream_or_a_run():
    with pytest.raises(UsageError, match=r"expected a stream or a run: got 'task'; pass"):
        show("task")


SETUP = """
from callslip import Agent, ScriptedModel, TicketStore, in_notebook, show, tool
from scripted import act, finish

@tool
def look(what: str, context=None) -> str:
    "Look."
    return what

@tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    "Pay."
    return "paid"

def agent(**more):
    script = [act("loook", what="x"), act("pay", to="Ann <b>", amount=5), finish("It is paid.")]
    return Agent(ScriptedModel(script), tools=[look, pay], protocol="react", name="clerk", **more)
"""


@pytest.fixture(scope="module")
def started():
    optional_module("ipykernel")
    with running_kernel(Path(__file__).parents[2] / "support") as parts:
        Kernel(*parts).run(SETUP)
        yield parts


@pytest.fixture
def kernel(started):
    return Kernel(*started)


def test_a_run_in_a_cell_grows_and_asks_the_person(kernel):
    _, status = kernel.run('await show(agent().stream("Pay.", approve=in_notebook))', ["y"])
    assert status == "ok"
    first, *_, call, value = kernel.displayed
    assert 'pay \u2192 "Ann <b>", 5' in call["text/plain"]
    assert "Ann &lt;b&gt;" in call["text/html"]
    assert "the run begins" in first["text/plain"]
    assert "clerk: finished" in value["text/html"]
    last = kernel.updates[-1]
    assert "clerk: finished" in last["text/html"]
    assert "It is paid." in last["text/html"]


def test_outputs_of_an_exported_notebook(started, browser, tmp_path):
    nbformat = optional_module("nbformat")
    nbclient = optional_module("nbclient")
    nbconvert = optional_module("nbconvert")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    cells = [
        SETUP,
        'result = await show(agent().stream("Pay.", approve=lambda _: True))\nresult',
        "result.run",
        "result.tickets[0]",
        "store = TicketStore()\n"
        "agent(store=store).run_sync('Pay.', approve=lambda _: True)\n"
        "store.runs()",
        'agent().run_sync("Pay.", approve=lambda _: "not today")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    manager, _ = started
    nbclient.NotebookClient(notebook, km=manager, timeout=120, kernel_name="python3").execute()
    html, _ = nbconvert.HTMLExporter(template_name="lab", theme="light").from_notebook_node(
        notebook
    )
    path = tmp_path / "notebook.html"
    path.write_text(html, encoding="utf-8")
    pictures = os.environ.get("CALLSLIP_PICTURES")
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            page_path = tmp_path / f"{scheme}.html"
            light = "true" if scheme == "light" else "false"
            page_path.write_text(
                html.replace('data-jp-theme-light="true"', f'data-jp-theme-light="{light}"'),
                encoding="utf-8",
            )
            size = {"width": width, "height": 1200}
            with Opened(browser, page_path, viewport=size, color_scheme=scheme) as opened:
                outputs = opened.page.locator(".callslip")
                assert outputs.count() == 6
                for index in range(6):
                    fits = "one => one.scrollWidth <= one.clientWidth"
                    assert outputs.nth(index).evaluate(fits)
                legible = LEGIBLE.replace("body *", ".callslip *")
                if pictures:
                    name = Path(pictures) / f"notebook-{width}-{scheme}.png"
                    opened.page.screenshot(path=name, full_page=True)
                assert opened.page.evaluate(legible) >= 4.5
