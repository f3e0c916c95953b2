"""The lint: every example in a prompt is read as the runtime reads replies."""

from pathlib import Path

import pytest

from callslip import ChattyProtocol, ReactProtocol, TicketProtocol, tool

SEEDS = Path(__file__).parents[2] / "shared" / "seeds"
seeds = pytest.mark.skipif(
    not SEEDS.is_dir(), reason="the prompts that the protocols come from are not beside the project"
)


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


@seeds
def test_the_prompts_that_the_protocols_come_from():
    react = ReactProtocol(template=SEEDS / "react.txt", persona="a helper")
    # It shows what not to write, too.
    codes = [example.reply.violation and example.reply.violation.code for example in react.lint()]
    assert codes == ["both_action_and_final", None]
    assert len(react.native.examples(react.system_prompt())) == 20
    assert ChattyProtocol(template=SEEDS / "chatty.txt").lint() == []
    assert TicketProtocol(template=SEEDS / "ticket.txt").lint() == []
