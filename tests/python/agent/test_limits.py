"""Limits: each reached, with an answer from the last turn and with an exception."""

import asyncio
import json
import threading
import time

import pytest

from callslip import Agent, LimitExceeded, Limits, ModelReply, ScriptedModel, tool
from scripted import asked


def call(**args):
    return json.dumps({"thought": "t", "action": "work", "args": json.dumps(args)})


def finish(answer):
    return json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": answer, "task_successful": True}
    )


@tool
def work(n: int) -> int:
    """Work."""
    return n


def run(replies, limits, *, tools=(work,), protocol="react", **options):
    model = ScriptedModel(replies)
    agent = Agent(model, protocol=protocol, tools=list(tools), limits=limits, **options)
    return agent.run_sync("x")


def test_turns_give_one_last_turn():
    result = run([call(n=1), call(n=2), finish("so far")], Limits(turns=2))
    assert (result.value, result.stop_reason) == ("so far", "limit")
    assert "limit of this run is reached (turns)" in asked(result.messages)[4]["content"]
    assert "FINISH" in asked(result.messages)[4]["content"]
    assert result.run.turns == 3


def test_a_last_turn_without_an_answer_raises():
    with pytest.raises(LimitExceeded, match=r"limit is reached \(turns\)") as caught:
        run([call(n=1), call(n=2)], Limits(turns=1))
    assert len(caught.value.run.tickets) == 1
    assert caught.value.limit == "turns"


@pytest.mark.parametrize("replies", [[call(n=1), call(n=2)], [call(n=1), "hm: steps"]])
def test_log_trace_and_store_have_the_words_of_the_exception(replies, store):
    with pytest.raises(LimitExceeded) as caught:
        run(replies, Limits(turns=1), store=store)
    said = str(caught.value)

    assert "(turns)" in said
    assert caught.value.run.log[-1].error == said
    assert caught.value.run.trace().ending.error == said
    assert [one.error for one in store.runs()] == [said]


def test_a_last_turn_that_breaks_the_protocol_raises():
    with pytest.raises(LimitExceeded, match="broke the protocol"):
        run([call(n=1), "hm"], Limits(turns=1))


def test_raise_at_the_limit():
    with pytest.raises(LimitExceeded, match=r"Limits\(turns=") as caught:
        run([call(n=1)], Limits(turns=1), on_limit="raise")
    assert caught.value.limit == "turns"
    assert caught.value.run.stop_reason == "limit"


def test_zero_is_none_and_none_is_no_limit():
    with pytest.raises(LimitExceeded):
        run([], Limits(turns=0), on_limit="raise")
    result = run([call(n=n) for n in range(60)] + [finish("x")], Limits(turns=None))
    assert result.run.turns == 61


def test_tickets_are_reserved_for_the_whole_block():
    rows = [{"call_id": f"c{n}", "tool_name": "work", "arguments": {"n": n}} for n in range(3)]
    result = run(
        [f"<tool>{json.dumps(rows)}</tool>", "answer"], Limits(tickets=2), protocol="chatty"
    )
    assert result.tickets == []
    assert (result.stop_reason, result.value) == ("limit", "answer")


@pytest.mark.parametrize("many", [1, 2, 3])
def test_open_tickets(many):
    rows = [{"call_id": f"c{n}", "tool_name": "work", "arguments": {"n": n}} for n in range(many)]
    replies, options = [f"<tool>{json.dumps(rows)}</tool>", "done"], {"protocol": "chatty"}
    if many <= 2:
        result = run(replies, Limits(open_tickets=2), **options)
        assert (result.value, len(result.tickets)) == ("done", many)
        return
    with pytest.raises(LimitExceeded) as caught:
        run(replies, Limits(open_tickets=2), on_limit="raise", **options)
    assert caught.value.limit == "open_tickets"


def test_tokens_and_cost_as_the_client_reports_them():
    reply = ModelReply(call(n=1), usage={"input_tokens": 60, "output_tokens": 40, "cost": 0.5})
    result = run([reply, finish("x")], Limits(tokens=100))
    assert (result.stop_reason, result.usage.input_tokens) == ("limit", 60)
    with pytest.raises(LimitExceeded) as caught:
        run([reply], Limits(cost=0.5), on_limit="raise")
    assert caught.value.limit == "cost"
    assert run([reply, finish("x")], Limits(tokens=101)).stop_reason == "finished"


def test_reply_bytes():
    result = run(["x" * 2000, finish("x")], Limits(reply_bytes=1000))
    assert result.run.violations == 1


def test_json_depth():
    deep = "[" * 30 + "]" * 30
    reply = '{"thought": "t", "action": "work", "args": {"n": ' + deep + "}}"
    result = run([reply, finish("x")], Limits(json_depth=20))
    assert result.run.violations == 1
    assert result.tickets == []


def test_long_results_are_cut_with_a_mark_and_kept_whole():
    @tool
    def long() -> str:
        """Much text."""
        return "ä" * 5000

    result = run(
        ['{"thought": "t", "action": "long", "args": "{}"}', finish("x")],
        Limits(result_bytes=101),
        tools=[long],
    )
    text = asked(result.messages)[2]["content"]
    assert len(text) < 300
    mark = "call read_result with the ticket T1 and the offset 100 for the next part"
    assert f"[cut: 100 of 10000 bytes are shown; {mark}]" in text
    assert result.tickets[0].result == "ä" * 5000


def test_seconds_cut_a_tool_that_hangs():
    over = threading.Event()

    @tool
    def hang() -> str:
        """Sleep."""
        over.wait(60)
        return "late"

    began = time.monotonic()
    result = run(
        ['{"thought": "t", "action": "hang", "args": "{}"}', finish("gave up")],
        Limits(seconds=0.2),
        tools=[hang],
    )
    over.set()
    assert time.monotonic() - began < 30
    assert (result.stop_reason, result.value) == ("limit", "gave up")
    assert result.tickets[0].outcome == "cancelled"


def test_seconds_cut_a_model_that_hangs():
    async def model(messages):
        await asyncio.sleep(200)

    began = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        Agent(model, tools=[work], limits=Limits(seconds=0.2)).run_sync("x")
    with pytest.raises(LimitExceeded):
        asyncio.run(
            Agent(model, tools=[work], limits=Limits(seconds=0.2), on_limit="raise").run("x")
        )
    assert time.monotonic() - began < 60
    assert caught.value.limit == "seconds"


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match=r"Limits\(turns="):
        Limits(turns=-1)


def test_the_last_turn_shows_results_that_were_never_loaded():
    reply = {"type": "CALL", "route": "/work", "payload": {"n": 7}, "description": "d"}
    result = run(
        [
            f"<thoughts>t</thoughts><output>{json.dumps(reply)}</output>",
            '<thoughts>t</thoughts><output>{"type": "RETURN", "value": 7}</output>',
        ],
        Limits(turns=1),
        protocol="ticket",
    )
    assert "Result of ticket T1:\n7" in asked(result.messages)[2]["content"]
    assert result.value == 7
