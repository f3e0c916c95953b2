"""The react protocol through the public face: each rule obeyed and broken."""

import json

import pytest

from callslip import (
    Agent,
    LimitExceeded,
    Limits,
    ProtocolError,
    ReactProtocol,
    ScriptedModel,
    ToolError,
    tool,
)
from scripted import asked


def call(action, args, thought="t", **more):
    return json.dumps({"thought": thought, "action": action, "args": json.dumps(args), **more})


def finish(answer, *, success=True, thought="t"):
    return json.dumps(
        {
            "thought": thought,
            "action": "FINISH",
            "final_answer": answer,
            "task_successful": success,
        }
    )


@tool
def calculator(expression: str) -> float:
    """Evaluate an arithmetic expression."""
    return eval(expression, {"__builtins__": {}})


@tool
def search(query: str, limit: int = 3) -> list[str]:
    """Search the web."""
    return [f"{query} {number}" for number in range(limit)]


@tool
def broken(path: str) -> str:
    """Always fails."""
    raise FileNotFoundError(path)


TOOLS = [calculator, search, broken]


def run(*replies, **options):
    model = ScriptedModel(list(replies))
    result = Agent(model, protocol="react", tools=TOOLS, **options).run_sync("the task")
    model.assert_done()
    return result


def feedback(first, **options):
    """What the model is told after a first reply that breaks the protocol."""
    result = run(first, finish("done"), **options)
    assert result.tickets == []
    assert result.run.violations == 1
    event = next(event for event in result.run.log if event.kind == "violated")
    return event.violation["code"], asked(result.messages)[2]["content"]


def test_a_call_then_the_answer():
    result = run(call("calculator", {"expression": "25 * 4"}), finish("100"))
    assert (result.value, result.success, result.stop_reason) == ("100", True, "finished")
    assert [message["role"] for message in asked(result.messages)] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert asked(result.messages)[0]["content"] == "the task"
    assert asked(result.messages)[2]["content"] == "Observation: 100"
    (ticket,) = result.tickets
    assert (ticket.id, ticket.tool, ticket.status, ticket.result) == (
        "T1",
        "calculator",
        "COMPLETED",
        100,
    )


def test_anything_but_a_string_is_told_as_compact_json():
    result = run(call("search", {"query": "x", "limit": 2}), finish("ok"))
    assert asked(result.messages)[2]["content"] == 'Observation: ["x 0","x 1"]'


def test_a_task_that_failed_is_an_answer():
    result = run(finish("it cannot be done", success=False))
    assert (result.value, result.success, result.stop_reason) == (
        "it cannot be done",
        False,
        "finished",
    )


def test_a_failed_call_is_told_and_says_what_to_check():
    result = run(call("broken", {"path": "a.txt"}), finish("no"))
    text = asked(result.messages)[2]["content"]
    assert text.startswith(
        "Observation: Error calling tool 'broken': FileNotFoundError: a.txt. Check"
    )
    assert result.tickets[0].outcome == "error"


def test_args_beside_a_final_answer():
    code, text = feedback(call("calculator", {"expression": "1"}, final_answer="1"))
    assert code == "both_action_and_final"
    assert "not executed" in text


def test_success_beside_a_call():
    code, _ = feedback(call("calculator", {"expression": "1"}, task_successful=True))
    assert code == "both_action_and_final"


def test_null_counts_as_absent():
    result = run(
        call("calculator", {"expression": "1"}, final_answer=None, task_successful=None),
        finish("1"),
    )
    assert len(result.tickets) == 1


def test_a_missing_argument_is_named():
    code, text = feedback(call("search", {"limit": 1}))
    assert code == "missing_argument"
    assert "query" in text


def test_empty_args_where_one_is_required():
    code, text = feedback(call("search", {}))
    assert code == "missing_argument"
    assert "query" in text


def test_an_unknown_argument_is_named_with_the_nearest():
    code, text = feedback(call("search", {"querry": "x"}))
    assert code in {"unknown_argument", "missing_argument"}
    assert "'querry'" in text
    assert "'query'" in text


def test_a_wrong_type_says_expected_and_found():
    code, text = feedback(call("search", {"query": "x", "limit": "five"}))
    assert code == "invalid_argument"
    assert "integer" in text
    assert "five" in text


def test_args_that_are_no_json():
    code, _ = feedback('{"thought": "t", "action": "search", "args": "query=x"}')
    assert code.startswith("args_invalid")


def test_args_as_an_object_is_a_repair():
    result = run(
        '{"thought": "t", "action": "calculator", "args": {"expression": "1"}}', finish("1")
    )
    replied = next(event for event in result.run.log if event.kind == "model_replied")
    assert [repair["code"] for repair in replied.repairs] == ["args_object"]


def test_strict_refuses_what_would_be_repaired():
    reply = '{"thought": "t", "action": "calculator", "args": {"expression": "1"}}'
    model = ScriptedModel([reply, finish("1")])
    result = Agent(model, protocol=ReactProtocol(strict=True), tools=TOOLS).run_sync("x")
    assert (result.tickets, result.run.violations) == ([], 1)


def test_an_unknown_tool_offers_the_nearest_and_is_case_sensitive():
    code, text = feedback(call("Calculator", {"expression": "1"}))
    assert code == "unknown_tool"
    assert "calculator" in text


def test_two_different_actions():
    code, _ = feedback(
        call("calculator", {"expression": "1"}) + "\n" + call("search", {"query": "x"})
    )
    assert code == "multiple_actions"


def test_a_truncated_reply():
    code, text = feedback('{"thought": "t", "action": "search", "args": "{\\"query\\": \\"x')
    assert code == "truncated"
    assert "Nothing of it was executed" in text


def test_prose_only():
    code, _ = feedback("I will use the calculator.")
    assert code == "no_action"


def test_finish_without_an_answer_or_success():
    code, _ = feedback('{"thought": "t", "action": "FINISH", "task_successful": true}')
    assert code in {"missing_field", "no_action"}
    code, _ = feedback('{"thought": "t", "action": "FINISH", "final_answer": "x"}')
    assert code in {"missing_field", "no_action"}


def test_a_missing_thought_is_a_repair():
    result = run('{"action": "calculator", "args": "{\\"expression\\": \\"1\\"}"}', finish("1"))
    assert len(result.tickets) == 1


def test_a_thought_in_an_object_of_its_own_before_the_move():
    move = '{"action": "calculator", "args": {"expression": "1"}}'
    result = run('{"thought": "I add."}\n' + move, finish("1"))
    assert len(result.tickets) == 1
    code, _ = feedback('{"thought": "I add.", "if": "the user agrees"}\n' + move)
    assert code == "unknown_key"


def test_the_same_call_after_it_failed_is_refused():
    again = call("broken", {"path": "a"})
    result = run(again, call("broken", {"path": "a"}, thought="once more"), finish("no"))
    assert len(result.tickets) == 1
    assert "has failed before" in asked(result.messages)[4]["content"]


def test_order_and_spelling_of_arguments_do_not_hide_a_repetition():
    @tool
    def pair(a: int, b: int) -> int:
        """Fail."""
        raise ValueError("no")

    model = ScriptedModel(
        [call("pair", {"a": 1, "b": 2}), call("pair", {"b": 2, "a": 1}), finish("no")]
    )
    result = Agent(model, protocol="react", tools=[pair]).run_sync("x")
    assert len(result.tickets) == 1


def test_a_call_that_fails_with_other_arguments_is_let_through():
    result = run(call("broken", {"path": "a"}), call("broken", {"path": "b"}), finish("no"))
    assert len(result.tickets) == 2


def test_the_same_result_twice_gets_a_note():
    same = call("calculator", {"expression": "1"})
    result = run(same, same, finish("1"))
    assert "Note" not in asked(result.messages)[2]["content"]
    assert "2 times now" in asked(result.messages)[4]["content"]


def test_past_max_repeats_a_call_is_not_made_and_two_more_end_the_run():
    same = call("calculator", {"expression": "1"})
    result = run(same, same, same, same, finish("1"))
    assert len(result.tickets) == 3
    with pytest.raises(LimitExceeded, match="same result") as caught:
        run(same, same, same, same, same, same)
    assert caught.value.limit == "max_repeats"
    assert len(caught.value.run.tickets) == 3


def test_a_cycle_of_two_calls_counts():
    a, b = call("calculator", {"expression": "1"}), call("calculator", {"expression": "2"})
    with pytest.raises(LimitExceeded):
        run(a, b, a, b, a, b, a, b, a)


def test_polling_is_exempt():
    @tool(repeatable=True)
    def poll() -> str:
        """Poll."""
        return "not yet"

    model = ScriptedModel([call("poll", {})] * 8 + [finish("ok")])
    result = Agent(model, protocol="react", tools=[poll]).run_sync("x")
    assert len(result.tickets) == 8


def test_violations_in_a_row_end_the_run():
    with pytest.raises(ProtocolError, match="4 times in a row") as caught:
        run("a", "b", "c", "d")
    assert caught.value.run.violations == 4
    assert caught.value.run.messages[-1]["content"] == "d"


def test_a_valid_reply_starts_the_count_anew():
    good = call("calculator", {"expression": "1"})
    result = run("a", "b", "c", good, "d", "e", "f", finish("1"))
    assert result.run.violations == 6


def test_a_call_is_required_first_where_it_is_asked_for():
    model = ScriptedModel(
        [finish("100"), call("calculator", {"expression": "25*4"}), finish("100")]
    )
    agent = Agent(model, protocol=ReactProtocol(first_move="call"), tools=TOOLS)
    result = agent.run_sync("x")
    assert result.run.violations == 1
    assert len(result.tickets) == 1


def test_zero_violations_allowed():
    with pytest.raises(ProtocolError, match="1 times in a row"):
        run("a", limits=Limits(max_violations=0))


def test_no_tool_may_have_the_name_of_the_end():
    @tool(name="Finish")
    def finisher() -> str:
        """End."""
        return "x"

    with pytest.raises(ToolError, match="'Finish'"):
        Agent(ScriptedModel([]), protocol="react", tools=[finisher])
    Agent(ScriptedModel([]), protocol="chatty", tools=[finisher])
