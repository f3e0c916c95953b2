"""Errors that say what to pass, where what was expected does not say so by itself."""

import re

import pytest

from callslip import Agent, CallslipError, ScriptedModel, UsageError

MODEL = ScriptedModel(["done"])


def of_two(messages, other):
    return "done"


WRONG = [
    (lambda: Agent(MODEL, tools=["pay"]), "got str; pass the function itself, not its name"),
    (lambda: Agent(MODEL, tools=[{"name": "f"}]), "got dict; pass a schema to Tool.from_schema("),
    (lambda: Agent(MODEL, tools=[[print]]), "got list; pass its items"),
    (lambda: Agent(MODEL, tools=[Agent(MODEL)]), "got Agent; pass agent.as_tool()"),
    (lambda: Agent(MODEL, tools=[None]), "got NoneType; pass a function with annotated"),
    (lambda: Agent(MODEL, tools="pay"), "got str; pass a list or a tuple"),
    (lambda: Agent(of_two), "argument: 'other'; bind the others with functools.partial"),
    (lambda: Agent(lambda _: {"a": 1}).run_sync("go"), "got dict: return or yield its text"),
    (lambda: Agent(lambda _: iter([3])).run_sync("go"), "got int: return or yield its text"),
]


@pytest.mark.parametrize(("wrong", "hint"), WRONG, ids=[hint for _, hint in WRONG])
def test_what_to_pass_is_said(wrong, hint):
    with pytest.raises(CallslipError, match=re.escape(hint)):
        wrong()


def test_the_events_that_a_watch_may_begin_after():
    run = Agent(MODEL, protocol="chatty").run_sync("go").run
    with pytest.raises(UsageError, match=r"got 99; pass event\.seq of one, or leave it out$"):
        run.watch(after=99)
