"""The lint: every example in a prompt is read as the runtime reads replies."""

import json

import pytest

from callslip import ChattyProtocol, ReactProtocol, TicketProtocol, tool
from shared import SEEDS


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
@pytest.mark.parametrize("strict", [False, True])
def test_built_in_prompts_teach_what_is_read_without_repair(kind, strict):
    protocol = kind(strict=strict)
    messages = protocol.example_messages([weather])
    replies = [one["content"] for one in messages if one["role"] == "assistant"]
    assert replies or protocol.native.examples(protocol.system_prompt([weather]))
    for reply in map(protocol.parse, replies):
        assert reply.violation is None
        codes = [repair.code for repair in reply.repairs]
        assert codes == [] or (kind is ReactProtocol and codes == ["args_object"])
    assert protocol.lint([weather]) == []


def test_a_broken_example_is_told_with_its_line():
    template = """Answer in JSON. {tools}

Good:
{{"thought": "t", "action": "weather", "args": "{{\\"city\\": \\"Oslo\\"}}"}}

Bad:
{{"thought": "t", "action": "weather", "args": {{"city": Oslo}}}}

Repaired:
{{"thought": "t", "action": "weather", "args": {{"city": "Oslo"}},}}
"""
    broken, repaired = ReactProtocol(template=template).lint()
    assert broken.reply.violation.code == "unquoted_value"
    assert str(broken).endswith("unquoted_value: " + broken.reply.violation.message)
    assert broken.text == '{"thought": "t", "action": "weather", "args": {"city": Oslo}}'
    assert str(repaired) == f"line {repaired.line}: args_object, trailing_comma"
    prompt = ReactProtocol(template=template).system_prompt().splitlines()
    assert prompt[broken.line - 1] == broken.text
    assert prompt[repaired.line - 1] == repaired.text


def test_strict_protocols_refuse_what_others_repair():
    template = '{tools} {{"thought": "t", "action": "weather", "args": {{"city": "Oslo"}}}}'
    (example,) = ReactProtocol(template=template, strict=True).lint()
    assert example.reply.violation.code == "repair_refused"


def test_chatty_examples_stand_between_the_tags_of_the_template():
    template = """{AVAILABLE_TOOLS_INTERFACE}
Write {TOOL_TAG_START} and {TOOL_TAG_END} around the calls:
{TOOL_TAG_START}
[{"call_id": "1", "tool_name": "weather", "arguments": {"city": "Rome"}}]
{TOOL_TAG_END}
Never like this:
{TOOL_TAG_START}[{"call_id": "1", "tool_name": "weather", "args": {"city": "Oslo"}}]{TOOL_TAG_END}
"""
    (example,) = ChattyProtocol(template=template, tool_tag=("[[GO", "END]]")).lint()
    assert example.text.startswith("[[GO[")
    assert example.text.endswith("]END]]")
    assert example.reply.violation.code == "unknown_key"


def test_ticket_examples_have_their_thoughts():
    template = """{{tool_spec}}
<thoughts>I wait.</thoughts>
<output>{"type": "AWAIT", "ticket_id": "T1"}</output>
<output>{"type": "AWAIT", "ticket": "T1"}</output>
"""
    (example,) = TicketProtocol(template=template).lint()
    assert (example.line, example.reply.violation.code) == (4, "unknown_key")


def test_an_example_that_a_chat_template_begins_is_read_whole():
    assert ReactProtocol(think_prefilled=True).lint([weather]) == []


@pytest.mark.shared
def test_the_prompts_that_the_protocols_come_from():
    react = ReactProtocol(template=SEEDS / "react.txt")
    # It shows what not to write, too.
    codes = [example.reply.violation and example.reply.violation.code for example in react.lint()]
    assert codes == ["both_action_and_final", None]
    assert len(react.native.examples(react.system_prompt())) == 20
    assert ChattyProtocol(template=SEEDS / "chatty.txt").lint() == []
    assert TicketProtocol(template=SEEDS / "ticket.txt").lint() == []


ARGUMENTS = {"city": "Oslo"}
BLOCK = [{"call_id": "a", "tool_name": "weather", "arguments": ARGUMENTS}]
CALL = {"type": "CALL", "route": "POST /weather", "payload": ARGUMENTS, "description": "d"}
GOOD = {
    "react": json.dumps({"thought": "t", "action": "weather", "args": ARGUMENTS}),
    "chatty": f"<tool>{json.dumps(BLOCK)}</tool>",
    "ticket": f"<thoughts>t</thoughts><output>{json.dumps(CALL)}</output>",
}


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
def test_replies_of_messages_are_checked_with_their_calls(kind):
    good = GOOD[kind().name]

    def said(text):
        return [{"role": "user", "content": "{no reply"}, {"role": "assistant", "content": text}]

    def told(text):
        return [str(one) for one in kind().lint([weather], messages=said(text))]

    assert told(good) == []
    (unknown,) = told(good.replace("weather", "whether"))
    assert unknown.startswith("message 1: ")
    assert "whether" in unknown
    (argument,) = told(good.replace('"city"', '"town"'))
    assert "'town'" in argument
    (cut,) = told(good[:-10])
    assert cut.startswith("message 1: ")


def test_own_example_messages_are_checked():
    def protocol(tool):
        call = {"call_id": "a", "tool_name": tool, "arguments": {"city": "$b"}}
        block = f"<tool>{json.dumps([call])}</tool>"
        return ChattyProtocol(
            examples=[
                {"role": "user", "content": "How is it in Oslo?"},
                {"role": "assistant", "content": block},
                {"role": "user", "content": "weather (a): sunny"},
                {"role": "assistant", "content": "It is sunny."},
            ]
        )

    assert protocol("weather").lint([weather]) == []
    (example,) = protocol("forecast").lint([weather])
    assert (example.message, example.reply.violation) == (1, None)
    assert "forecast" in example.problem
