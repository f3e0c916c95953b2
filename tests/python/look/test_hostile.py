"""Texts of models, tools and users are shown as text, wherever they stand on a page."""

import dataclasses
import itertools

import pytest

from callslip import Agent, ScriptedModel, tool
from callslip.look import to_html
from callslip.trace import TraceEnding, TraceNote
from hostile import HOSTILE, Page, named
from scripted import act, call, finish, give, wait

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "footer", "section", "div"),
    *("h1", "h2", "h3", "h4", "p", "dl", "dt", "dd", "pre", "mark", "span", "strong"),
    *("details", "summary", "svg", "rect", "figure", "figcaption", "img", "small", "ul", "li"),
}
ATTRIBUTES = {
    *(("html", "lang"), ("meta", "charset"), ("meta", "http-equiv"), ("meta", "content")),
    *(("meta", "name"), ("details", "open"), ("mark", "class"), ("mark", "title")),
    *(("svg", "aria-hidden"), ("svg", "viewbox"), ("svg", "preserveaspectratio")),
    *(("svg", "class"), ("p", "class"), ("p", "aria-hidden"), ("pre", "class")),
    *(("rect", name) for name in ("class", "x", "width", "height")),
    *((name, "class") for name in ("dl", "div", "span", "section", "small", "ul", "details")),
    *(("img", "alt"), ("img", "src")),
}


def check(html):
    """The page has nothing but what pages have, and ends where it should."""
    page = Page(html)
    assert page.elements <= ELEMENTS
    assert page.attributes <= ATTRIBUTES
    assert page.markup == []
    assert page.open == []
    assert html.count("<h1>") == html.count("</html>") == 1
    html.encode()
    return page


def filled(value, texts):
    """The value with each text in it replaced by the next of these."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, tuple):
        return tuple(filled(one, texts) for one in value)
    if isinstance(value, dict):
        return {next(texts): filled(one, texts) for one in value.values()}
    if type(value).__module__.startswith(("callslip.trace", "callslip.origins")):
        keep = {"kind", "usage", "total_usage", "parts", "decision", "start", "end"}
        changes = {
            one.name: filled(getattr(value, one.name), texts)
            for one in dataclasses.fields(value)
            if one.name not in keep
        }
        return dataclasses.replace(value, **changes)
    return value


@tool(needs_approval=True)
def pay(amount: str) -> str:
    """Pay."""
    return amount


@pytest.fixture(scope="module")
def trace():
    agent = Agent(
        ScriptedModel([act("payy"), act("pay", amount="1"), act("pay", amount="2"), finish("ok")]),
        tools=[pay],
        protocol="react",
        values="trusted",
    )
    with agent.stream_sync("buy") as stream:
        for event in stream:
            if event.kind == "ticket_opened":
                stream.run.approve(event.ticket_id)
    made = stream.run.trace()
    note = TraceNote(kind="user_said", at=made.started_at, turn=1, text="and?")
    below = dataclasses.replace(
        made, ending=TraceEnding(at=None, reason="model_error", error="broken")
    )
    return dataclasses.replace(made, notes=(note,), other_runs=(below,))


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 5))
def test_every_text_of_a_trace_may_be_hostile(trace, start):
    texts = itertools.cycle([*HOSTILE[start:], "half \ud800 of a pair", *HOSTILE[:start]])
    check(to_html(filled(trace, texts), open="all"))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["task", "thought", "argument", "result", "error", "answer"])
def test_a_hostile_text_is_found_again(text, place):
    @tool
    def look(what: str) -> str:
        """Look."""
        if place == "error":
            raise ValueError(text)
        return text if place == "result" else "found"

    def at(name):
        return text if place == name else name

    script = [call("look", {"what": at("argument")}), wait("T1"), give(at("answer"))]
    agent = Agent(ScriptedModel(script), tools=[look], protocol="ticket")
    run = agent.run_sync(at("task")).run
    trace = run.trace()
    if place == "thought":
        turns = (dataclasses.replace(trace.turns[0], reply=text), *trace.turns[1:])
        trace = dataclasses.replace(trace, turns=turns)
    page = check(to_html(trace))
    if place != "error":  # an error is cleaned where it is made
        assert named(text) in page.text


def test_an_object_of_many_keys_is_shown():
    value = {f"<b>{number}": number for number in range(10_000)}
    agent = Agent(ScriptedModel([give(value)]), protocol="ticket")
    html = agent.run_sync("count").to_html()
    assert '"<b>17": 17' in check(html).text
    assert len(html) < 100_000
