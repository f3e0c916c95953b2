"""Calls of model families: read by `lenient=True` as their own parsers read them, to the byte."""

import json

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    tool,
)
from callslip.events import Violated

PROTOCOLS = [ReactProtocol, ChattyProtocol, TicketProtocol]
BAR = "\uff5c"
D = f"{BAR}DSML{BAR}"
CALL, SEPARATOR, END = (
    f"<{BAR}{name}{BAR}>" for name in ("tool▁call▁begin", "tool▁sep", "tool▁call▁end")
)
CALLS, END_CALLS = f"<{BAR}tool▁calls▁begin{BAR}>", f"<{BAR}tool▁calls▁end{BAR}>"
ARGUMENTS = '{"place": "Bergen", "days": 3}'
OBJECT = f'{{"name": "find", "arguments": {ARGUMENTS}}}'
PYTHON = 'find(place="Bergen", days=3)'
FAMILIES = {
    "minimax_m1": f"<tool_calls>\n{OBJECT}\n</tool_calls>",
    "apriel": f"<tool_calls>[{OBJECT}]</tool_calls>",
    "longcat": f"<longcat_tool_call>{OBJECT}</longcat_tool_call>",
    "seed": "<seed:tool_call>\n<function=find>\n<parameter=place>Bergen</parameter>\n"
    "<parameter=days>3</parameter>\n</function>\n</seed:tool_call>",
    "nemotron": f"<TOOLCALL>[{OBJECT}]</TOOLCALL>",
    "granite": f"<|tool_call|>[{OBJECT}]",
    "phi": f"functools[{OBJECT}]",
    "phi_tags": f"<|tool_call|>[{OBJECT}]<|/tool_call|>",
    "lfm": f"<|tool_call_start|>[{PYTHON}]<|tool_call_end|>",
    "llama4_tags": f"<|python_start|>[{PYTHON}]<|python_end|>",
    "llama4": f"[{PYTHON}]",
    "olmo": f"<function_calls>\n{PYTHON}\n</function_calls>",
    "gemma3": f"```tool_code\nprint({PYTHON})\n```",
    "command": '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "find", "parameters": '
    f"{ARGUMENTS}}}\n]<|END_ACTION|>",
    "lm_studio": f"[TOOL_REQUEST]{OBJECT}[END_TOOL_REQUEST]",
    "qwen_without_opening": "<function=find>\n<parameter=place>\nBergen\n</parameter>\n"
    "<parameter=days>"
    "\n3\n</parameter>\n</function>\n</tool_call>",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="find">\n<parameter name="place">'
    'Bergen</parameter>\n<parameter name="days">3</parameter>\n</invoke>\n</minimax:tool_call>',
    "deepseek_v3": f"{CALLS}{CALL}function{SEPARATOR}find\n```json\n{ARGUMENTS}\n```{END}"
    f"{END_CALLS}",
    "deepseek_v31": f"{CALLS}{CALL}find{SEPARATOR}{ARGUMENTS}{END}{END_CALLS}",
    "deepseek_v32": f'<{D}function_calls>\n<{D}invoke name="find">\n'
    f'<{D}parameter name="place" string="true">Bergen</{D}parameter>\n'
    f'<{D}parameter name="days" string="false">3</{D}parameter>\n'
    f"</{D}invoke>\n</{D}function_calls>",
    "gemma4": '<|tool_call>call:find{place:<|"|>Bergen<|"|>,days:3}<tool_call|>',
    "gpt_oss_stripped": f"analysisI look.assistantcommentary to=functions.find json{ARGUMENTS}",
    "gpt_oss_short": f"commentary to=functions.find json{ARGUMENTS}",
    "openai": '{"tool_calls": [{"id": "c1", "type": "function", '
    '"function": {"name": "find", "arguments": ' + json.dumps(ARGUMENTS) + "}}]}",
    "object": OBJECT,
    "cline": "<find_it>\n<place>Bergen</place>\n<days>3</days>\n</find_it>",
}


def streamed(protocol, text):
    reader = protocol.reader()
    for character in text:
        reader.push(character)
    return reader.finish()


@pytest.mark.parametrize("text", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_lenient_reads_the_call(kind, text):
    protocol = kind(lenient=True)
    reply = protocol.parse(text)
    if kind is ReactProtocol and text == OBJECT:
        # `arguments` is a name for `args`, and so this is a move of the protocol without `action`.
        assert reply.violation.code == "unknown_key"
        return
    assert reply.violation is None, reply.violation
    (call,) = reply.move.calls
    assert call.tool in ("find", "find_it")
    assert call.arguments["place"] == "Bergen"
    assert str(call.arguments["days"]) == "3"
    assert "published_form" in [repair.code for repair in reply.repairs]
    again = streamed(protocol, text)
    assert (str(again.move), again.repairs) == (str(reply.move), reply.repairs)


@pytest.mark.parametrize("text", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_nothing_else_reads_it(kind, text):
    for protocol in (kind(), kind(strict=True)):
        reply = protocol.parse(text)
        assert reply.violation is not None or type(reply.move).__name__ == "Finish"
    protocol = kind(lenient=True)
    refused = [
        f"{text} is how it is written.",
        f"> {text}",
        f"<pre>{text}</pre>",
        f'"{text}"',
        f"{text}\n{text.replace('Bergen', 'Oslo')}",
        text[: len(text) * 2 // 3],
    ]
    for other in refused if kind is not ChattyProtocol else refused[:4]:
        reply = protocol.parse(other)
        assert reply.violation is not None or type(reply.move).__name__ == "Finish", other


# What a value may hold without being changed.
VALUE = '\n  two\n\n\tlines "and" \\n a quote\n'
WRITTEN = {
    "claude": ('<invoke name="find"><parameter name="text">{}</parameter></invoke>', VALUE),
    "glm": (
        "<tool_call>find\n<arg_key>text</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
        VALUE,
    ),
    "deepseek": (
        f'<{D}function_calls><{D}invoke name="find">'
        f'<{D}parameter name="text" string="true">{{}}</{D}parameter>'
        f"</{D}invoke></{D}function_calls>",
        VALUE,
    ),
    "gemma": ('<|tool_call>call:find{{text:<|"|>{}<|"|>}}<tool_call|>', VALUE),
    # Their own parsers remove a line break on each side, or all blanks.
    "qwen": (
        "<tool_call>\n<function=find>\n<parameter=text>{}</parameter>\n</function>\n</tool_call>",
        VALUE[1:-1],
    ),
    "minimax": (
        '<minimax:tool_call><invoke name="find"><parameter name="text">{}</parameter>'
        "</invoke></minimax:tool_call>",
        VALUE.strip(),
    ),
}


@pytest.mark.parametrize(("form", "value"), WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_value_is_read_to_the_byte(kind, form, value):
    (call,) = kind(lenient=True).parse(form.format(VALUE)).move.calls
    assert call.arguments == {"text": value}


@pytest.mark.parametrize("kind", [ReactProtocol, TicketProtocol])
def test_the_answer_of_a_react_text(kind):
    text = "Thought: I know it.\nFinal Answer: It is 4.\nNo more."
    for reply in (kind(lenient=True).parse(text), streamed(kind(lenient=True), text)):
        assert reply.move.value == "It is 4.\nNo more."
    assert kind().parse(text).violation is not None
    for other in (
        "Final Answer: 4\nAction: find\nAction Input: {}",
        "Action: find\nAction Input: {}\nFinal Answer: 4",
    ):
        assert kind(lenient=True).parse(other).violation is not None
    assert kind(lenient=True).parse("Final Answer:").violation is not None


NO_CALLS = [
    "[find(place)]",
    '[find("Bergen")]',
    '[find(place="Bergen"), 3]',
    'find(place="Bergen")',
    '{"name": "find"}',
    '{"name": "find", "arguments": {"place": "Bergen"}, "url": "x"}',
    '{"tool_calls": [{"name": "find", "arguments": {}}], "then": "delete"}',
    "<note_one>see</note_one>",
    "<find_it><place>a</place><place>b</place></find_it>",
    '<|tool_call>call:find{place:<|"|>Bergen}<tool_call|>',
    f"{CALL}other{SEPARATOR}find\n```json\n{ARGUMENTS}\n```{END}",
    f'<{D}invoke name="find"><{D}parameter name="days" string="false">3 or 4</{D}parameter>'
    f"</{D}invoke>",
]


@pytest.mark.parametrize("text", NO_CALLS)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_what_needs_a_guess_is_not_read(kind, text):
    reply = kind(lenient=True).parse(text)
    assert reply.violation is not None or type(reply.move).__name__ == "Finish"


@pytest.mark.parametrize("before", ["", "I will look.\n"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_s_call_as_text_is_no_answer_of_a_native_run(family, before):
    called = []

    def find(place: str, days: int = 1) -> str:
        """Find a place."""
        called.append(place)
        return place

    tools = [tool(find), tool(name="find_it")(find)]
    model = ScriptedModel([before + FAMILIES[family], "done"])
    result = Agent(model, tools=tools, protocol="native").run_sync("Go")
    refused = [event for event in result.run.events() if isinstance(event, Violated)]
    assert [event.violation["code"] for event in refused] == ["untagged_tool_call"]
    assert (result.value, called) == ("done", [])
