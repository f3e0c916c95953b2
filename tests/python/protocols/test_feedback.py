"""What the model is told of a broken reply: the move that it meant, in its own words."""

import json

import pytest
from pydantic import BaseModel

from callslip import Agent, ScriptedModel, tool
from scripted import finish, give


@tool
def run_code(code: str) -> str:
    """Run code."""
    return "ran"


@tool
def now() -> str:
    """Tell the time."""
    return "noon"


def feedback(protocol, text, tools=(run_code, now)):
    """What the runtime says to a first reply."""
    over = {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}[protocol]
    model = ScriptedModel([text, over])
    result = Agent(model, tools=list(tools), protocol=protocol).run_sync("go")
    messages = result.messages
    place = next(at for at, message in enumerate(messages) if message["content"] == text)
    return messages[place + 1]["content"]


def told(protocol, text):
    return feedback(protocol, text).partition("Write it so: ")[2].partition("\n")[0]


def output(**move):
    return f"<thoughts>t</thoughts><output>{json.dumps(move)}</output>"


def test_a_broken_call_of_a_ticket_is_shown_a_call():
    said = told("ticket", output(type="CALL", route="now", query={"code": "x"}, description="why"))
    move = json.loads(said.removeprefix("<output>").removesuffix("</output>"))
    assert move == {"type": "CALL", "route": "now", "payload": {"code": "x"}, "description": "why"}


def test_a_call_that_is_cut_is_shown_the_form_of_a_call():
    text = (
        '<thoughts>t</thoughts><output>{"type": "CALL", "route": "run_code", "payload": {"code": "a'
    )
    said = feedback("ticket", text)
    assert '"type": "CALL"' in said
    assert "RETURN" not in said


def call(call_id, **arguments):
    return {"call_id": call_id, "tool_name": "run_code", "arguments": arguments}


@pytest.mark.parametrize(
    "text",
    [
        f"<tool>{json.dumps([call('call_1', code='a'), call('call_1', code='b')])}</tool>",
        f"<tool>\n[{json.dumps(call('call_1', code='a'))}]\n<tool>\n"
        f"[{json.dumps(call('call_1', code='b'))}]\n</tool>",
    ],
)
def test_calls_with_one_id_are_shown_with_an_id_each(text):
    said = told("chatty", text)
    calls = json.loads(said.removeprefix("<tool>").removesuffix("</tool>"))
    assert calls == [call("call_1", code="a"), call("call_2", code="b")]


def test_a_reference_to_one_id_of_two_calls_is_not_guessed():
    calls = [call("x", code="a"), call("x", code="b"), call("y", code="$x")]
    assert told("chatty", f"<tool>{json.dumps(calls)}</tool>") == ""


def test_a_broken_answer_of_react_is_shown_an_answer():
    said = told("react", '{"thought": "t", "action": "FINISH", "final_answer": "it is 4"}')
    assert json.loads(said) == {
        "thought": "t",
        "action": "FINISH",
        "final_answer": "it is 4",
        "task_successful": True,
    }


@pytest.mark.parametrize("action", ["final_answer", "None", "", "Final Answer", "answer"])
def test_finish_is_named_where_something_else_stood_for_it(action):
    text = json.dumps(
        {"thought": "t", "action": action, "final_answer": "four", "task_successful": True}
    )
    said = json.loads(told("react", text))
    assert (said["action"], said["final_answer"]) == ("FINISH", "four")


def test_of_two_moves_none_is_shown():
    first = '{"thought": "t", "action": "now", "args": "{}"}'
    second = '{"thought": "t", "action": "run_code", "args": "{\\"code\\": \\"x\\"}"}'
    said = feedback("react", f"{first}\n{second}")
    assert "Write it so" not in said
    assert "send only the one move that you mean now" in said


def test_a_call_with_an_answer_is_shown_the_call_alone():
    text = '{"thought": "t", "action": "now", "args": "{}", "final_answer": "noon"}'
    assert json.loads(told("react", text)) == {"thought": "t", "action": "now", "args": {}}


def test_quotes_in_code_are_explained_as_an_object():
    text = '{"thought": "t", "action": "run_code", "args": "{\\"code\\": \\"print(\\"a\\")\\"}"}'
    said = feedback("react", text)
    assert "write args as an object" in said
    assert '"action": "run_code"' in said


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_all_foreign_keys_are_named_at_once(protocol):
    more = {"headers": {"a": 1}, "body": {"b": 2}, "query": "c"}
    call = {"call_id": "a", "tool_name": "now", "arguments": {}, **more}
    text = {
        "react": json.dumps({"thought": "t", "action": "now", "args": "{}", **more}),
        "chatty": f"<tool>{json.dumps([call])}</tool>",
        "ticket": output(type="CALL", route="now", payload={}, description="d", **more),
    }[protocol]
    said = feedback(protocol, text)
    assert all(f'"{key}"' in said.partition("\n")[0] for key in more)


def test_a_call_without_tags_is_shown_in_them():
    call = '{"call_id": "a", "tool_name": "now", "arguments": {}}'
    assert told("chatty", f"[{call}]") == f"<tool>[{call}]</tool>"
    said = told("chatty", '<tool_call>{"name": "now", "arguments": {}}</tool_call>')
    call = {"call_id": "call_1", "tool_name": "now", "arguments": {}}
    assert json.loads(said.removeprefix("<tool>").removesuffix("</tool>")) == [call]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{'thought': 'it's', 'action': 'now', 'args': {}}", "single quote"),
        ('{“thought”: “a”b”, "action": "now", "args": {}}', "typographic quote"),
        ('{"thought": "a" b, "action": "now", "args": {}}', "'b'"),
    ],
)
def test_the_culprit_is_named(text, word):
    assert word in feedback("react", text)


def test_what_is_shown_is_read():
    for text in (
        '{"thought": "t", "action": "run_code", "code": "print(\\"a\\")"}',
        '{"thought": "t", "action": "final answer", "args": "four"}',
        '{"thought": "t", "tool": "now", "args": {}}',
    ):
        said = told("react", text)
        model = ScriptedModel([said, finish("ok")])
        result = Agent(model, tools=[run_code, now], protocol="react").run_sync("go")
        assert not any("not executed" in message["content"] for message in result.messages), said


class City(BaseModel):
    name: str


def test_a_typed_answer_with_a_line_behind_it_is_shown_the_form_of_an_answer():
    answer = '<answer>{"name": "Oslo"}</answer>'
    model = ScriptedModel([f"{answer}\nI hope this helps!", answer])
    result = Agent(model, tools=[now], protocol="chatty", returns=City).run_sync("go")
    said = [message["content"] for message in result.messages if message["role"] == "user"][-1]
    assert "<tool>" not in said
    assert "<answer>" in said
    assert result.value == City(name="Oslo")


@pytest.mark.parametrize("word", ["final_answer", "None", "done", "Finish", "respond"])
def test_finish_is_named_for_every_unknown_action(word):
    said = feedback("react", json.dumps({"thought": "t", "action": word, "args": {"text": "x"}}))
    assert '"action": "FINISH"' in said
