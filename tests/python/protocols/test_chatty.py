"""The chatty protocol through the public face: each rule obeyed and broken."""

import json
import re
import threading
import time

import pytest

from callslip import Agent, ChattyProtocol, Delta, Move, ScriptedModel, tool


def block(*calls):
    rows = [
        {"call_id": call_id, "tool_name": name, "arguments": arguments}
        for call_id, name, arguments in calls
    ]
    return f"<tool>\n{json.dumps(rows)}\n</tool>"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@tool
def fail(why: str) -> str:
    """Fail."""
    raise RuntimeError(why)


@tool
def anything(value: object) -> object:
    """Give a value back."""
    return value


TOOLS = [add, echo, fail, anything]


PLAIN = ChattyProtocol(examples=False)


def run(*replies, protocol=PLAIN, tools=TOOLS, **options):
    model = ScriptedModel(list(replies))
    result = Agent(model, protocol=protocol, tools=tools, **options).run_sync("the task")
    model.assert_done()
    return result


def results(message):
    head, _, rest = message["content"].partition("\n")
    assert head == "TOOL_EXECUTION_RESULT"
    rows = []
    for line in rest.split("\n\n")[0].split("\n"):
        name, call_id, error, text = re.fullmatch(r"(\S+) \((.*?)\): (error: )?(.*)", line).groups()
        row = {"call_id": call_id, "tool_name": name, "status": "error" if error else "ok"}
        try:
            row["error" if error else "result"] = json.loads(text)
        except ValueError:
            row["error" if error else "result"] = text
        rows.append(row)
    return rows


def violation(first, **options):
    result = run(first, "done", **options)
    assert result.tickets == []
    event = next(event for event in result.run.log if event.kind == "violated")
    assert "Nothing of it was executed" in result.messages[3]["content"]
    return event.violation


def test_a_direct_answer():
    result = run("Paris.")
    assert (result.value, result.success, result.tickets) == ("Paris.", True, [])


def test_calls_of_a_block_and_their_results_in_call_order():
    result = run(
        block(("c1", "add", {"a": 1, "b": 2}), ("c2", "fail", {"why": "no"})),
        "3, and one failed.",
    )
    assert results(result.messages[3]) == [
        {"call_id": "c1", "tool_name": "add", "status": "ok", "result": 3},
        {
            "call_id": "c2",
            "tool_name": "fail",
            "status": "error",
            "error": "Error calling tool 'fail': RuntimeError: no.",
        },
    ]
    assert [ticket.call_id for ticket in result.tickets] == ["c1", "c2"]


def test_calls_run_side_by_side():
    barrier = threading.Barrier(3, timeout=200)

    @tool
    def meet(name: str) -> str:
        """Wait for the others."""
        barrier.wait()
        return name

    calls = [(f"c{number}", "meet", {"name": str(number)}) for number in range(3)]
    result = run(block(*calls), "met", tools=[meet])
    assert [row["result"] for row in results(result.messages[3])] == [0, 1, 2]


def test_results_stay_in_call_order_whatever_ends_first():
    @tool
    def wait(seconds: float) -> float:
        """Sleep."""
        time.sleep(seconds)
        return seconds

    result = run(
        block(("slow", "wait", {"seconds": 0.1}), ("fast", "wait", {"seconds": 0.0})),
        "done",
        tools=[wait],
    )
    assert [row["call_id"] for row in results(result.messages[3])] == ["slow", "fast"]


def test_a_reference_is_replaced_by_the_result_with_its_type():
    result = run(
        block(
            ("first", "add", {"a": 1, "b": 2}),
            ("second", "add", {"a": "$first", "b": 10}),
            (
                "third",
                "anything",
                {"value": {"deep": ["$second", "$$first", "$nobody", "x $nobody"]}},
            ),
        ),
        "13",
    )
    rows = results(result.messages[3])
    assert [row["result"] for row in rows] == [
        3,
        13,
        {"deep": [13, "$first", "$nobody", "x $nobody"]},
    ]


def test_a_reference_to_an_earlier_turn():
    result = run(
        block(("first", "add", {"a": 1, "b": 2})),
        block(("second", "add", {"a": "$first", "b": 1})),
        "4",
    )
    assert results(result.messages[5])[0]["result"] == 4


def test_a_reference_to_a_failed_call_fails_the_call_that_needs_it():
    result = run(
        block(("bad", "fail", {"why": "x"}), ("next", "echo", {"text": "$bad"})),
        "no",
    )
    rows = results(result.messages[3])
    assert rows[1]["status"] == "error"
    assert "'bad'" in rows[1]["error"]


def test_a_reference_whose_result_has_the_wrong_type():
    result = run(
        block(("word", "echo", {"text": "three"}), ("sum", "add", {"a": "$word", "b": 1})),
        "no",
    )
    row = results(result.messages[3])[1]
    assert row["status"] == "error"
    assert "integer" in row["error"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_reference_to_itself_or_to_a_later_call(name):
    found = violation(block(("a", "echo", {"text": f"${name}"}), ("b", "echo", {"text": "x"})))
    assert found["code"] == "bad_reference"


def test_call_ids_are_unique_in_a_block():
    found = violation(block(("a", "echo", {"text": "1"}), ("a", "echo", {"text": "2"})))
    assert found["code"] == "duplicate_call_id"


def test_a_missing_call_id_is_filled_in():
    result = run('<tool>[{"tool_name": "echo", "arguments": {"text": "x"}}]</tool>', "x")
    assert results(result.messages[3])[0]["call_id"]
    assert len(result.tickets) == 1


def test_an_empty_array():
    violation("<tool>[]</tool>")


def test_a_block_that_is_no_array_of_objects():
    violation('<tool>["add"]</tool>')


def test_a_single_object_is_a_repair():
    result = run(
        '<tool>{"call_id": "a", "tool_name": "echo", "arguments": {"text": "x"}}</tool>', "x"
    )
    assert len(result.tickets) == 1


def test_nothing_of_a_block_with_one_bad_call_is_started():
    found = violation(block(("a", "echo", {"text": "x"}), ("b", "nobody", {})))
    assert found["code"] == "unknown_tool"
    assert "nobody" in found["message"]


def test_every_problem_of_the_arguments_is_named():
    found = violation(block(("a", "add", {"a": "x", "c": 1})))
    assert "'b'" in found["message"]
    assert "'c'" in found["message"]


def test_thoughts_are_neither_answer_nor_call():
    result = run(
        "<think>call <tool>[]</tool>?</think>\n" + block(("a", "echo", {"text": "x"})),
        "<think>ready</think>x",
    )
    assert len(result.tickets) == 1
    assert result.value == "x"


def test_an_unclosed_think():
    found = violation("<think>hm " + block(("a", "echo", {"text": "x"})))
    assert found["code"] == "unclosed_think"


def test_a_call_that_stands_only_in_thoughts():
    violation("<think>" + block(("a", "echo", {"text": "x"})) + "</think>")


def test_tags_in_a_fence_and_in_strings_are_text():
    answer = "Write it so:\n```\n<tool>\n[]\n</tool>\n```\nin a block."
    assert run(answer).value == answer
    result = run(block(("a", "echo", {"text": "</tool>"})), "ok")
    assert results(result.messages[3])[0]["result"] == "</tool>"


def test_text_before_the_block_is_narration():
    reply = ChattyProtocol().parse("I will look.\n" + block(("a", "echo", {"text": "x"})))
    assert reply.narration.strip() == "I will look."
    assert isinstance(reply.move, Move.Call)
    assert reply.repairs == []


def test_own_tags():
    protocol = ChattyProtocol(tool_tag=("<|call|>", "<|/call|>"))
    prompt = protocol.system_prompt(TOOLS)
    assert "<|call|>" in prompt
    assert "<|/call|>" in prompt
    result = run(
        '<|call|>[{"call_id": "a", "tool_name": "echo", "arguments": {"text": "x"}}]<|/call|>',
        "<tool> is only text here",
        protocol=protocol,
    )
    assert result.value == "<tool> is only text here"


def test_the_same_call_after_it_failed_is_refused():
    result = run(
        block(("a", "fail", {"why": "x"})), block(("b", "fail", {"why": "x"})), "I give up"
    )
    assert len(result.tickets) == 1
    assert "has failed before" in result.messages[5]["content"]


def test_readonly_calls_start_while_the_block_is_arriving():
    started = threading.Event()

    @tool(readonly=True)
    def peek(name: str) -> str:
        """Look."""
        started.set()
        return name

    @tool
    def act(name: str) -> str:
        """Do."""
        return name

    def stream(_messages):
        text = block(("a", "peek", {"name": "x"}), ("b", "act", {"name": "y"}))
        cut = text.index("}}") + 2
        yield text[:cut]
        assert started.wait(60), "the call did not start early"
        yield text[cut:]

    result = run(stream, "done", tools=[peek, act])
    assert [row["result"] for row in results(result.messages[3])] == ["x", "y"]
    assert len(result.tickets) == 2


def test_other_calls_do_not_start_early():
    ran = []

    @tool
    def act(name: str) -> str:
        """Do."""
        ran.append(name)
        return name

    def stream(_messages):
        yield '<tool>[{"call_id": "a", "tool_name": "act", "arguments": {"name": "x"}},'
        time.sleep(0.05)
        yield ' {"call_id": "b", "tool_name": "nobody", "arguments": {}}]</tool>'

    run(stream, "done", tools=[act])
    assert ran == []


def test_a_stream_is_stopped_at_the_end_of_the_block():
    model = ScriptedModel(
        [block(("a", "echo", {"text": "x"})) + "\nTOOL_EXECUTION_RESULT [invented]", "x"],
        chunk_size=4,
    )
    result = Agent(model, protocol=PLAIN, tools=TOOLS).run_sync("x")
    assert result.messages[2]["content"].endswith("</tool>")
    assert "invented" not in model.requests[0].sent


def test_early_stop_can_be_turned_off():
    model = ScriptedModel(
        [block(("a", "echo", {"text": "x"})) + "\nObservation: invented", "x"], chunk_size=4
    )
    protocol = ChattyProtocol(early_stop=False, examples=False)
    result = Agent(model, protocol=protocol, tools=TOOLS).run_sync("x")
    assert result.messages[2]["content"].endswith("invented")
    assert len(result.tickets) == 1


def test_an_unknown_tool_stops_the_stream():
    model = ScriptedModel(
        ['<tool>[{"call_id": "a", "tool_name": "nobody", "arguments": {' + '"x": 1, ' * 500, "no"],
        chunk_size=8,
    )
    result = Agent(model, protocol=PLAIN, tools=TOOLS).run_sync("x")
    assert result.run.violations == 1
    assert len(model.requests[0].sent) < 80


def test_deltas_of_a_reader_join_to_the_whole():
    reader = ChattyProtocol().reader()
    text = "Look:\n" + block(("a", "echo", {"text": "äöü"}))
    deltas = []
    for byte in text.encode():
        deltas += reader.push(bytes([byte]))[0]
    reply = reader.finish()
    assert isinstance(reply.move, Move.Call)
    arguments = "".join(delta.text for delta in deltas if isinstance(delta, Delta.Arguments))
    assert json.loads(arguments) == {"text": "äöü"}
