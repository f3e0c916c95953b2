"""Every code in docs/reference/codes.md is the outcome of some reply, through the public face."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Limits,
    NativeProtocol,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    tool,
)
from scripted import act, block, call, finish, give, load, output, spawn, turn_of, wait, wait_for

ROOT = Path(__file__).parents[3]
PROTOCOLS = {"chatty": ChattyProtocol, "react": ReactProtocol, "ticket": TicketProtocol}
CALL = {"thought": "t", "action": "add", "args": '{"a": 1, "b": 2}'}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


@tool
def big() -> str:
    """Return much."""
    return "x" * 5_000


# Replies that are read with other options than those in the corpus.
READ = {
    "too_large": (ReactProtocol(), {"limits": Limits(reply_bytes=40)}, json.dumps(CALL)),
    "limit_exceeded": (ReactProtocol(), {"limits": Limits(json_values=1)}, json.dumps(CALL)),
    "repair_refused": (ReactProtocol(strict=True), {}, json.dumps(CALL)[:-1] + ",}"),
    "service_refused_call": (
        NativeProtocol(),
        {},
        '{"fault":"tool_use_failed","raw":"<function=pay>"}\n',
    ),
    "key_alias": (
        ChattyProtocol(lenient=True),
        {},
        '<tool>[{"id": "1", "name": "add", "parameters": {"a": 1, "b": 2}}]</tool>',
    ),
    "published_form": (
        ChattyProtocol(lenient=True),
        {},
        '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>',
    ),
}
# Replies that are refused for what else is true of their run.
REFUSED = {
    "unknown_tool": ("react", [act("subtract", a=1, b=2), finish()]),
    "missing_argument": ("react", [act("add", a=1), finish()]),
    "unknown_argument": ("react", [act("add", a=1, b=2, c=3), finish()]),
    "invalid_argument": ("react", [act("add", a=1, b="two"), finish()]),
    "bad_reference": ("chatty", [block(wait_for("$nobody")), "done"]),
    "wait_not_last": ("chatty", [block(wait_for("$a"), spawn("a", "x")), "done"]),
    "unknown_ticket": ("ticket", [load("T7"), give("done")]),
    "own_ticket": ("ticket", [wait("T0"), give("done")]),
    "self_delegation": ("ticket", [output(type="DELEGATE", task="go"), give("done")]),
    "repeated_after_failure": (
        TicketProtocol(inline_results=False, grace=60),
        [call("/fail"), call("/fail"), give("done")],
    ),
    "repeated": ("ticket", [call("/big"), call("/big"), give("done")]),
    "call_required": (ReactProtocol(first_move="call"), [finish(), act("big"), finish()]),
    "not_offered": ("ticket", [output(type="DELEGATE", task="x"), give("done")]),
}
# Tests of their own, below.
IN_PROGRESS = "ticket_in_progress"
INVALID_ANSWER = "invalid_answer"
# test_values.py and test_local_blocks.py have replies with these.
OF_VALUES = {"unstated_value", "example_value", "feedback_quoted", "unlikely_tool"}


def in_corpus():
    """The codes of the replies in the corpus."""
    text = (ROOT / "tests" / "data" / "replies.jsonl").read_text(encoding="utf-8")
    for case in map(json.loads, text.splitlines()):
        config = case.get("config", {})
        options = {"think_prefilled": config.get("think_prefilled", False)}
        if case["protocol"] == "chatty":
            tags = config.get("tool_tag_start", "<tool>"), config.get("tool_tag_end", "</tool>")
            options["tool_tag"] = tags
        yield from codes(PROTOCOLS[case["protocol"]](**options).parse(case["text"]))


def codes(reply):
    """The codes of a reply; a reason inside the arguments has its own after a colon."""
    violated = [] if reply.violation is None else reply.violation.code.split(":")
    return [*violated, *(repair.code for repair in reply.repairs)]


def refusals(result):
    return [event.violation["code"] for event in result.run.log if event.kind == "violated"]


def test_every_code_has_a_reply():
    catalogue = (ROOT / "docs" / "reference" / "codes.md").read_text(encoding="utf-8")
    written = set(re.findall(r"^\| `(\w+)` \|", catalogue, re.MULTILINE))
    assert {*in_corpus(), *READ, *REFUSED, *OF_VALUES, IN_PROGRESS, INVALID_ANSWER} == written


@pytest.mark.parametrize("code", READ)
def test_a_code_of_a_protocol_with_options(code):
    protocol, options, text = READ[code]
    assert code in codes(protocol.parse(text, **options))


@pytest.mark.parametrize("code", REFUSED)
def test_a_code_of_a_run(code):
    protocol, replies = REFUSED[code]
    delegate = code != "not_offered"
    agent = Agent(
        ScriptedModel(replies), protocol=protocol, tools=[add, fail, big], delegate=delegate
    )
    result = agent.run_sync("go")
    assert refusals(result) == [code]
    assert result.value == "done"


def test_the_code_of_an_answer_of_another_type():
    agent = Agent(ScriptedModel([finish("many"), finish(3)]), returns=int)
    result = agent.run_sync("go")
    assert (refusals(result), result.value) == ([INVALID_ANSWER], 3)


def test_the_code_of_a_ticket_in_progress():
    may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        await may_end.wait()
        return "ok"

    def model(messages):
        turn = turn_of(messages)
        if turn == 2:
            may_end.set()
        return [call("slow"), load("T1"), wait("T1"), give("done")][turn]

    agent = Agent(model, protocol=TicketProtocol(grace=0), tools=[slow])
    assert refusals(asyncio.run(agent.run("go"))) == [IN_PROGRESS]
