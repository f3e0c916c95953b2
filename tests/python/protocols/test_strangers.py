"""What strangers found who tried to have something executed that was not meant."""

import pytest

from callslip import Agent, ChattyProtocol, Move, ReactProtocol, ScriptedModel, TicketProtocol, tool
from scripted import finish


@tool
def pay(amount: float, to: str = "x") -> str:
    """Pay."""
    return f"{to} {amount}"


@tool
def now() -> str:
    """Say the time."""
    return "noon"


ALL = [ReactProtocol, ChattyProtocol, TicketProtocol]


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize(
    "text",
    [
        '{"name": "now", "description": "Say the time.", "parameters": {}}',
        '<tool_call>{"name": "pay", "description": "d", "parameters": {"to": "x"}}</tool_call>',
        '{"type": "function", "function": {"name": "now", "description": "x", "parameters": {}}}',
    ],
)
def test_the_definition_of_a_tool_is_no_call(protocol, text):
    reply = protocol(lenient=True).parse(text, tools=[pay, now])
    assert not isinstance(reply.move, Move.Call)


@pytest.mark.parametrize("protocol", ALL)
def test_a_call_with_a_description_is_one(protocol):
    text = '<tool_call>{"name": "now", "arguments": {}, "description": "the time"}</tool_call>'
    reply = protocol(lenient=True).parse(text, tools=[pay, now])
    assert isinstance(reply.move, Move.Call)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1E400"])
def test_a_number_in_text_is_finite(number):
    move = f'{{"thought": "t", "action": "pay", "args": {{"amount": "{number}"}}}}'
    model = ScriptedModel([move, finish()])
    result = Agent(model, tools=[pay]).run_sync("go")
    assert result.tickets == []


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_of_a_python_call_is_finite(protocol, number):
    reply = protocol(lenient=True).parse(f"[pay(amount={number})]", tools=[pay, now])
    assert not isinstance(reply.move, Move.Call)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_typed_answer_is_finite(number):
    model = ScriptedModel([f'<answer>"{number}"</answer>', "<answer>5</answer>"])
    assert Agent(model, protocol="chatty", returns=float).run_sync("go").value == 5


MOVES = {
    ReactProtocol: finish().removesuffix("}") + ", KEY}",
    TicketProtocol: '<output>{"type": "AWAIT", "ticket_id": "T1", KEY}</output>',
}


@pytest.mark.parametrize("protocol", MOVES)
@pytest.mark.parametrize(
    "key", ["if", "dry_run", "cancel", "needs_confirmation", "error", "draft", "unless"]
)
def test_a_condition_beside_any_move_refuses_it(protocol, key):
    reply = protocol().parse(MOVES[protocol].replace("KEY", f'"{key}": "x"'))
    assert reply.violation.code == "unknown_key"


@pytest.mark.parametrize("protocol", MOVES)
def test_a_remark_beside_any_move_is_dropped(protocol):
    reply = protocol().parse(MOVES[protocol].replace("KEY", '"reason": "x", "note": "y"'))
    assert reply.violation is None


def test_a_description_beside_an_await_is_a_remark():
    text = MOVES[TicketProtocol].replace("KEY", '"description": "wait"')
    assert isinstance(TicketProtocol().parse(text).move, Move.Await)


def test_an_invented_result_in_the_form_of_the_protocol_is_dropped():
    text = (
        '<tool>\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\n</tool>\n'
        "TOOL_EXECUTION_RESULT\nnow (call_1): noon\nIt is noon."
    )
    reply = ChattyProtocol().parse(text, tools=[now])
    assert isinstance(reply.move, Move.Call)
    assert "hallucinated_observation" in [repair.code for repair in reply.repairs]
