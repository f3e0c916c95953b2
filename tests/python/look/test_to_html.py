"""The page of a run: what it shows, in which order, and how large it gets."""

import dataclasses
import json
import re
import time

import pytest

from callslip import (
    Agent,
    File,
    Image,
    Limits,
    RunFailed,
    ScriptedModel,
    TicketStore,
    UsageError,
    tool,
)
from callslip.look import to_html
from hostile import Page
from pictures import PDF, png
from scripted import PATIENT, act, call, delegate, finish, give, wait


@tool
def rate(code: str) -> float:
    """Look up a rate."""
    return 7.5


@tool
def draw(what: str) -> list:
    """Draw."""
    return [Image(png(8, 8)), File(PDF, name="plan <1>.pdf")]


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def agent_of(*script, tools=(rate,), protocol="react", **options):
    return Agent(ScriptedModel(list(script)), tools=tools, protocol=protocol, **options)


def rows_of(html):
    """The rows, each with whether it is open."""
    found = re.findall(r"<details( open)?><summary><span>(.*?)</span><", html, re.DOTALL)
    return [(" ".join(Page(text).texts).split()[:2], bool(is_open)) for is_open, text in found]


def test_a_page_has_the_rows_of_a_run_and_opens_failures():
    run = agent_of(act("ratee"), act("rate", code="a"), finish("7.5 it is")).run_sync("convert")
    html = run.to_html()
    rows = [(["Turn", "1"], True), (["Turn", "2"], False), (["T1", "rate"], False)]
    assert rows_of(html) == [*rows, (["Turn", "3"], False)]
    assert {is_open for _, is_open in rows_of(run.to_html(open="all"))} == {True}
    assert {is_open for _, is_open in rows_of(run.to_html(open="none"))} == {False}
    assert re.search(r'<mark class="violation" title="unknown_tool">&quot;ratee&quot;</mark>', html)
    text = Page(html).text
    for shown in ("convert", "7.5 it is", "did you mean 'rate'?", "not executed"):
        assert shown in text


def test_the_end_of_a_reply_is_marked_where_the_rest_is_missing():
    trace = agent_of(act("ratee"), finish()).run_sync("x").trace()
    turn = trace.turns[0]
    end = len(turn.reply)
    mark = dataclasses.replace(turn.marks[0], start=end, end=end)
    turn = dataclasses.replace(turn, marks=(mark,))
    html = to_html(dataclasses.replace(trace, turns=(turn,)))
    assert '<mark class="violation" title="unknown_tool">}</mark></pre>' in html


def test_a_page_is_written_to_a_file(tmp_path):
    result = agent_of(finish("é€😀")).run_sync("say")
    html = result.to_html(tmp_path / "trace.html")
    assert (tmp_path / "trace.html").read_bytes() == html.encode()
    assert result.run.to_html(str(tmp_path / "other.html")) == html


def test_images_and_files_are_shown_by_what_they_are():
    agent = agent_of(act("draw", what="x"), finish(), tools=[draw])
    large = png(4, 4, noise=1024 * 1024)
    run = agent.run_sync(["Look", Image(png(9, 9)), Image(large), File(PDF, name="a.pdf")])
    html = run.to_html()
    assert html.count('src="data:image/png;base64,') == 2
    assert html.count("<figure>") == 5
    assert "plan <1>.pdf, application/pdf" in Page(html).text
    assert f"U2: image/png, {len(large):,} bytes" in Page(html).text
    assert "<img" not in run.to_html(images=False)
    assert run.to_html(images=False).count("<figcaption>") == 5


def test_messages_of_the_user_stand_between_the_turns():
    agent = agent_of(finish("first answer"), finish("second answer"))
    first = agent.run_sync("first task")
    run = first.run.send_sync(["second task", Image(png(9, 9))])
    html = run.to_html()
    places = [html.index(text) for text in ("Turn 1", "<h3>User</h3>", "U1: image/png", "Turn 2")]
    assert places == sorted(places)
    assert html.count("<figure>") == 1


def test_a_run_that_failed_says_why():
    with pytest.raises(RunFailed) as failed:
        agent_of(act("rate", code="a"), act("rate", code="b"), limits=Limits(turns=1)).run_sync("x")
    text = Page(failed.value.run.to_html()).text
    assert "No answer" in text
    assert "limit: the limit is reached" in text


def test_a_run_that_waits_is_shown_where_it_waits():
    agent = agent_of(act("pay", amount=5), finish(), tools=[pay])
    with agent.stream_sync("buy") as stream:
        for event in stream:
            if event.kind == "ticket_opened":
                html = stream.run.to_html()
                stream.run.approve(event.ticket_id)
    assert (["T1", "pay"], True) in rows_of(html)
    assert "<h1>agent: awaiting approval</h1>" in html
    assert "approved after" in Page(stream.run.to_html()).text


def test_runs_below_stand_under_their_tickets():
    script = [delegate("inner task"), give("inner answer"), wait("T1"), give("outer answer")]
    run = agent_of(*script, protocol=PATIENT, delegate=True).run_sync("outer task")
    html = run.to_html()
    above, below = html.split('<section class="run">')
    assert "<strong>T1 DELEGATE</strong>" in above
    assert "inner task" in below.partition("</section>")[0]
    assert rows_of(below)[0] == (["Turn", "1"], False)
    assert "<strong>Turn 2</strong>" in below.partition("</section>")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"open": "some"},
            "expected open='failed' or 'all' or 'none': got 'some'; pass one of them",
        ),
        ({"texts": 0}, "expected texts to be a whole number from 1: got 0"),
        (
            {"redact": "key"},
            "expected redact to be a function: got 'key'; pass one that takes a text",
        ),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(UsageError) as wrong:
        agent_of(finish()).run_sync("x").to_html(**options)
    assert str(wrong.value) == message


def test_a_long_text_is_cut_and_the_page_says_so():
    result = agent_of(
        call("rate", {"code": "z" * 1_000_000}), wait("T1"), give(1), protocol="ticket"
    )
    html = result.run_sync("x").to_html()
    assert len(html) < 60_000
    assert "more characters are in the log" in html


def long_trace(turns):
    run = agent_of(act("rate", code="a"), act("ratee"), finish()).run_sync("x").run
    made = run.trace()
    good, bad, _ = made.turns
    ticket = good.tickets[0]
    rows = [
        dataclasses.replace(good, number=number, tickets=(dataclasses.replace(ticket),))
        for number in range(1, turns + 1)
    ]
    rows[turns // 2] = dataclasses.replace(bad, number=turns // 2 + 1)
    return dataclasses.replace(made, turns=tuple(rows), events=turns * 6)


def test_many_turns_stand_in_blocks():
    html = to_html(long_trace(120))
    assert html.count('<div class="block">') == 3
    assert '<div class="block">' not in to_html(long_trace(50))


def test_a_page_of_ten_thousand_events_is_small():
    html = to_html(long_trace(1_700))
    assert len(html) < 6_000_000
    assert html.count("<strong>Turn ") == 1_700


def test_a_very_long_trace_shows_its_ends_and_all_failures():
    trace = long_trace(8_000)
    html = to_html(trace)
    numbers = [int(number) for number in re.findall(r"<strong>Turn ([0-9]+)</strong>", html)]
    # A turn and its ticket are two rows.
    assert numbers == [*range(1, 2_501), 4_001, *range(5_501, 8_001)]
    rows = sum(1 + len(turn.tickets) for turn in trace.turns)
    shown = html.count("<details")
    assert f"The log contains {rows - shown:,} more rows." in html
    assert html.count("1,500 turns left out") == 1
    assert html.count("1,499 turns left out") == 1


def test_a_page_of_an_imported_log_without_bytes_names_its_images():
    run = agent_of(finish()).run_sync(["Look", Image(png(9, 9))]).run
    lines = [line for line in run.export().splitlines() if "event" in json.loads(line)]
    store = TicketStore()
    html = store.run(store.import_run(lines)).to_html()
    assert "<img" not in html
    assert "U1: image/png" in html


def test_the_runs_of_a_store_are_one_page(tmp_path):
    path = tmp_path / "runs.html"
    with TicketStore(tmp_path / "runs.sqlite") as store:
        for task in ("<b>one</b>", "two", "three"):
            script = [act("ask", task="A part."), finish(f"answer to {task}")]
            model = ScriptedModel([*script])
            part = Agent(ScriptedModel([finish("half")]), name="part").as_tool(name="ask")
            Agent(model, tools=[part], store=store, name="whole").run_sync(task)
        html = store.to_html(path, limit=2)
        assert store.to_html(since=time.time() + 60).count("<details") == 0
    assert path.read_text("utf-8") == html
    assert html.index("answer to three") < html.index("answer to two")
    assert "one</b>" not in html
    assert "<h1>2 runs</h1>" in html
    assert "<p>1 run more in the store</p>" in html
    assert html.count("<h1>whole: finished</h1>") == 2
    assert html.count("of part: finished") == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [({"limit": -1}, "limit"), ({"texts": 0}, "texts"), ({"open": "some"}, "open")],
)
def test_wrong_options_of_a_page_of_runs(options, words):
    with pytest.raises(UsageError, match=words):
        TicketStore().to_html(**options)
