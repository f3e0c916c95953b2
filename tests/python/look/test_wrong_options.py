"""Arguments of views that have a wrong type."""

import re

import pytest

from callslip import Agent, ScriptedModel, TicketStore, UsageError
from callslip.look import runs_to_html, show, to_html


def two(first, second):
    return first


@pytest.fixture(scope="module")
def result():
    return Agent(ScriptedModel(["x" * 500]), protocol="chatty").run_sync("go")


OPTIONS = [
    ({"path": 3}, "expected path=a path: got 3"),
    ({"path": b"x"}, "expected path=a path: got b'x'"),
    ({"path": ""}, "expected path=a path: got ''"),
    ({"path": True}, "expected path=a path: got True"),
    ({"path": "."}, "expected path to be a file: got the folder '.'; pass the path of a file in"),
    ({"path": "no/such/x.html"}, "expected path in a folder that exists: got 'no/such/x.html'; cr"),
    ({"images": "no"}, "expected images=True or False: got 'no'"),
    ({"texts": True}, "expected texts to be a whole number from 1: got True"),
    ({"texts": float("nan")}, "expected texts to be a whole number from 1: got nan"),
    ({"open": ["failed"]}, "expected open='failed' or 'all' or 'none': got ['failed']"),
    ({"redact": two}, "expected redact to take a text: got a function that can't: missing a"),
]


@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_of_a_page(options, words, result):
    trace = result.run.trace()
    for view in (
        lambda: to_html(trace, **options),
        lambda: runs_to_html([trace], **options),
        lambda: result.run.to_html(**options),
    ):
        with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
            view()


def test_of_the_page_of_a_store():
    with TicketStore() as store:
        for options, words in OPTIONS:
            with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
                store.to_html(**options)


def test_what_is_no_trace(result):
    for value, words in (
        (3, "got 3; pass a Trace"),
        (None, "got None; pass a Trace"),
        (result.run, r"got .*; pass run\.trace\(\)"),
        (result, r"got .*; pass run\.trace\(\)"),
    ):
        with pytest.raises(UsageError, match=f"^expected a trace: {words}$"):
            to_html(value)
        with pytest.raises(UsageError, match=f"^expected a trace: {words}$"):
            runs_to_html([value])
    with pytest.raises(UsageError, match=r"^expected a list of traces: got Trace.*…; pass \[run"):
        runs_to_html(result.run.trace())
    for more in (-1, "x", None, 1.5, True):
        with pytest.raises(UsageError, match=r"^expected more to be a whole number from 0: got "):
            runs_to_html([], more=more)


def test_what_is_not_shown(result):
    async def items():
        yield 3

    agent = Agent(ScriptedModel(["ok"]), protocol="chatty")
    with TicketStore() as store:
        for value in (
            3,
            None,
            result.run.id,
            result,
            result.run.trace(),
            agent,
            agent.stream_sync("go"),
            store,
            items(),
        ):
            with pytest.raises(
                UsageError, match=r"^expected a stream or a run: got .{0,220}; pass"
            ):
                show(value)
