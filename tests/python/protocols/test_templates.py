"""Prompts: the built-in ones, the user's own, and the three the protocols come from."""

import json

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    LimitExceeded,
    Limits,
    LocalModel,
    OpenAPI,
    PythonRunner,
    ReactProtocol,
    ScriptedModel,
    TemplateError,
    TicketProtocol,
    tool,
)
from optional import optional_module
from shared import SEEDS


@tool
def weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: For example "Oslo".
    """
    return f"sunny in {city}"


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
def test_built_in_prompts_show_the_tools_and_are_short(kind):
    prompt = kind().system_prompt([weather])
    assert "weather" in prompt
    assert "city" in prompt
    assert "Tell the weather in a city." in prompt
    assert len(prompt) < 2600


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
@pytest.mark.parametrize("word", ["DELEGATE", "spawn_agent", "execute_python_code"])
def test_built_in_prompts_offer_nothing_that_is_not_there(kind, word):
    assert word not in kind().system_prompt([weather])
    agent = Agent(ScriptedModel([]), protocol=kind(), tools=[weather], delegate=False, python=False)
    assert word not in agent.system_prompt


@pytest.mark.parametrize("kind", [ReactProtocol, ChattyProtocol, TicketProtocol])
def test_built_in_prompts_offer_what_is_there(kind):
    runner = PythonRunner(profile="unconfined")
    agent = Agent(ScriptedModel([]), protocol=kind(), delegate=False, python=runner)
    assert "execute_python_code" in agent.system_prompt


def test_the_three_placeholder_styles():
    react = ReactProtocol(template="I am {persona}. {{literal}}\n{tools}")
    prompt = react.system_prompt([weather], instructions="Ann")
    assert prompt.startswith("I am Ann. {literal}\n")
    chatty = ChattyProtocol(
        template='{TOOL_TAG_START}[{"a": {}}]{TOOL_TAG_END}\n{AVAILABLE_TOOLS_INTERFACE}'
    )
    assert chatty.system_prompt([weather]).startswith('<tool>[{"a": {}}]</tool>\n')
    ticket = TicketProtocol(template="{ } {x}\n{{tool_spec}}")
    assert ticket.system_prompt([weather]).startswith("{ } {x}\n")


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (ReactProtocol(template="no tools"), r"has no \{tools\}"),
        (ReactProtocol(template="{tools} {goal}"), r"unknown placeholder \{goal\}"),
        (ReactProtocol(template="{tools}\n{"), "line 2 of the template has a single '{'"),
        (ChattyProtocol(template="no tools <tool></tool>"), r"AVAILABLE_TOOLS_INTERFACE"),
        (ChattyProtocol(template="{AVAILABLE_TOOLS_INTERFACE}"), r"TOOL_TAG_START"),
        (
            ChattyProtocol(template="{AVAILABLE_TOOLS_INTERFACE}<tool></tool>{INSTRUCTIONS}"),
            r"unknown placeholder \{INSTRUCTIONS\}.*\$\{instructions\}",
        ),
        (TicketProtocol(template="no tools"), r"has no \{\{tool_spec\}\}"),
        (TicketProtocol(template="{{tool_spec}} {{other}}"), r"\{\{other\}\}"),
    ],
)
def test_a_wrong_template_is_an_error_at_construction(protocol, words):
    with pytest.raises(TemplateError, match=words):
        Agent(ScriptedModel([]), protocol=protocol, tools=[weather])


CHATTY = "{TOOL_TAG_START}[]{TOOL_TAG_END} {AVAILABLE_TOOLS_INTERFACE} "
CALLS = '[{"call_id": "a", "tool_name": "weather", "arguments": {"city": "Oslo"}}]'


@pytest.mark.parametrize(
    ("text", "tag", "found"),
    [
        ("Write one `<tool>` block.", ("[[T]]", "[[/T]]"), "line 1 of the template has <tool>,"),
        ("x\nEnd it with </tool>.", "calls", "line 2 of the template has </tool>,"),
        (f"\n<call>\n{CALLS}\n</call>", "tool", "line 2 of the template has <call>,"),
        (f"<call>\n```json\n{CALLS}\n```\n</call>", "tool", "line 1 of the template has <call>,"),
    ],
)
def test_a_template_must_not_show_other_tags(text, tag, found):
    protocol = ChattyProtocol(template=CHATTY + text, tool_tag=tag)
    with pytest.raises(TemplateError) as caught:
        Agent(ScriptedModel([]), protocol=protocol, tools=[weather])
    start, end = (f"<{tag}>", f"</{tag}>") if isinstance(tag, str) else tag
    assert str(caught.value) == (
        f"{found} which is not the tag of this protocol: write {{TOOL_TAG_START}} and "
        f"{{TOOL_TAG_END}}, which stand for {start} and {end}, or pass tool_tag"
    )


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Write one `<tool>` block.", "tool"),
        ("Never write <tool_call>.", "tool"),
        (f"{{TOOL_TAG_START}}{CALLS}{{TOOL_TAG_END}}", ("[[T]]", "[[/T]]")),
        (f"<b>So:</b>\n[[T]]{CALLS}[[/T]]", ("[[T]]", "[[/T]]")),
    ],
)
def test_a_template_may_show_its_own_tags_and_speak_of_others(text, tag):
    protocol = ChattyProtocol(template=CHATTY + text, tool_tag=tag)
    Agent(ScriptedModel([]), protocol=protocol, tools=[weather])


NO_DELEGATE = "the template teaches '{}', which this agent does not offer: pass "
TEACHES = [
    (ChattyProtocol(template=CHATTY + "wait_for_agents"), "wait_for_agents"),
    (ReactProtocol(template="{tools} delegate_task"), "delegate_task"),
    (TicketProtocol(template='{{tool_spec}} {"type": "DELEGATE"}'), "DELEGATE"),
]


@pytest.mark.parametrize(("protocol", "name"), TEACHES)
@pytest.mark.parametrize(
    ("delegate", "depth", "missing"),
    [
        (False, 4, "delegate=True"),
        (True, 0, "Limits(depth=1) or more"),
        (False, 0, "delegate=True and Limits(depth=1) or more"),
    ],
)
def test_a_template_must_not_teach_to_delegate_where_nothing_is_delegated(
    protocol, name, delegate, depth, missing
):
    with pytest.raises(TemplateError) as caught:
        Agent(ScriptedModel([]), protocol=protocol, delegate=delegate, limits=Limits(depth=depth))
    rest = ", or write {{delegate}} in its place" if name == "DELEGATE" else ""
    assert str(caught.value) == NO_DELEGATE.format(name) + missing + rest


@pytest.mark.parametrize(("protocol", "name"), TEACHES)
def test_a_template_may_teach_to_delegate_where_tasks_are_delegated(protocol, name):
    agent = Agent(ScriptedModel([]), protocol=protocol, delegate=True)
    assert name in agent.system_prompt


def test_a_template_must_not_teach_what_another_protocol_has():
    protocol = TicketProtocol(template="{{tool_spec}} Call spawn_agent.")
    with pytest.raises(
        TemplateError, match=r"'spawn_agent'.*: only the chatty and the native protocol"
    ):
        Agent(ScriptedModel([]), protocol=protocol)


def test_a_tool_that_speaks_of_a_move_teaches_nothing():
    @tool
    def help_me(topic: str) -> str:
        """Explain spawn_agent, execute_python_code and <tool>."""
        return topic

    protocol = ChattyProtocol(template=CHATTY, tool_tag="calls")
    agent = Agent(ScriptedModel([]), protocol=protocol, tools=[help_me])
    assert "spawn_agent" in agent.system_prompt


def test_a_tool_that_looks_like_a_placeholder_is_text():
    @tool
    def brace(text: str) -> str:
        """Write {persona}, {{tool_spec}} and {TOOL_TAG_START}."""
        return text

    for protocol in (ReactProtocol(), ChattyProtocol(), TicketProtocol()):
        assert "{persona}, {{tool_spec}} and {TOOL_TAG_START}" in protocol.system_prompt([brace])


CALL = {
    "react": json.dumps(
        {"thought": "t", "action": "weather", "args": json.dumps({"city": "Oslo"})}
    ),
    "chatty": "<tool>\n"
    + json.dumps([{"call_id": "c", "tool_name": "weather", "arguments": {"city": "Oslo"}}])
    + "\n</tool>",
    "ticket": "<thoughts>t</thoughts>\n<output>"
    + json.dumps(
        {
            "type": "CALL",
            "route": "GET /weather",
            "payload": {"city": "Oslo"},
            "description": "weather",
        }
    )
    + "</output>",
}
ANSWER = {
    "react": json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": "sunny", "task_successful": True}
    ),
    "chatty": "sunny",
    "ticket": '<thoughts>t</thoughts>\n<output>{"type": "RETURN", "value": "sunny"}</output>',
}

PROTOCOLS = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}


def document():
    parameter = {"name": "city", "in": "query", "required": True, "schema": {"type": "string"}}
    return OpenAPI.from_dict(
        {
            "openapi": "3.1.0",
            "info": {"title": "Weather", "version": "1"},
            "paths": {"/weather": {"get": {"operationId": "weather", "parameters": [parameter]}}},
        },
        handlers={"weather": weather},
    )


def seed_agent(name, model, *, limits=None, **options):
    protocol = PROTOCOLS[name](template=SEEDS / f"{name}.txt", **options)
    tools = document() if name == "ticket" else [weather]
    # What the seed teaches.
    runner = PythonRunner(profile="unconfined") if name == "chatty" else False
    delegate = name != "react"
    return Agent(
        model, protocol=protocol, tools=tools, limits=limits, delegate=delegate, python=runner
    )


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(CALL))
def test_the_seeds_render_with_real_tools_and_run(name):
    model = ScriptedModel([CALL[name], ANSWER[name]], chunk_size=7)
    agent = seed_agent(name, model)
    text = (SEEDS / f"{name}.txt").read_text()
    assert "weather" in agent.system_prompt
    for placeholder in ("{persona}", "{tools}", "{TOOL_TAG", "{AVAILABLE", "{{tool_spec}}"):
        assert placeholder not in agent.system_prompt
    assert len(agent.system_prompt) > 0.9 * len(text)
    if name == "react":
        assert '"args": "{\\"param1\\": \\"value1\\"' in agent.system_prompt
    result = agent.run_sync("What is the weather in Oslo?")
    assert result.value == "sunny"
    assert result.tickets[0].result == "sunny in Oslo"
    assert result.run.violations == 0


@pytest.mark.shared
@pytest.mark.local_model
@pytest.mark.parametrize("name", sorted(CALL))
def test_the_seeds_run_on_the_local_model(name):
    optional_module("xllamacpp")
    with LocalModel() as model:
        options = {"first_move": "call", "limits": Limits(turns=1)}
        agent = seed_agent(name, model, **options)
        try:
            run = agent.run_sync("What is the weather in Oslo?").run
        except LimitExceeded as error:  # its last turn need not be an answer
            run = error.run
    codes = {event.violation["code"] for event in run.log if event.kind == "violated"}
    if name == "chatty":
        # Its seed teaches how to give tasks away: the small model gives away more than its
        # bounds let it write, and that is refused.
        assert codes <= {"truncated"}, run.log
    else:
        assert not codes, run.log
        assert run.tickets[0].tool in {"weather", "GET /weather"}
