"""Calls in the published forms of model families: read by `lenient=True`, named by the others."""

import pytest

from callslip import Agent, ChattyProtocol, ReactProtocol, ScriptedModel, TicketProtocol, tool
from scripted import finish, give

PROTOCOLS = [ReactProtocol, ChattyProtocol, TicketProtocol]
PREFIX = "ant" + "ml:"
FORMS = {
    "<tool_call>": [
        '<tool_call>\n{"name": "find", "arguments": {"place": "Bergen", "days": 3}}\n</tool_call>',
        '<tool_call>{"arguments": "{\\"place\\": \\"Bergen\\", \\"days\\": 3}", "name": "find"}'
        "</tool_call><|im_end|>",
        '<tool_call>{"name": "find", "arguments": {"place": "Bergen", "days": 3}}',
        "<tool_call>\n<function=find>\n<parameter=place>\nBergen\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>find\n<arg_key>place</arg_key>\n<arg_value>Bergen</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        '<tool_call>{"type": "function", "function": {"name": "find", "arguments": '
        '"{\\"place\\": \\"Bergen\\", \\"days\\": 3}"}}</tool_call>',
    ],
    "[TOOL_CALLS]": [
        '[TOOL_CALLS] [{"name": "find", "arguments": {"place": "Bergen", "days": 3}}]</s>',
        '[TOOL_CALLS]find[ARGS]{"place": "Bergen", "days": 3}',
        '[TOOL_CALLS]find[CALL_ID]x9[ARGS]{"place": "Bergen", "days": 3}</s>',
    ],
    "<|python_tag|>": [
        '<|python_tag|>{"name": "find", "parameters": {"place": "Bergen", "days": "3"}}<|eom_id|>',
        '<|python_tag|>{"type": "function", "name": "find", '
        '"parameters": {"place": "Bergen", "days": 3}}',
    ],
    "<function=...>": [
        '<function=find>{"place": "Bergen", "days": 3}</function>',
        "<function=find><parameter=place>Bergen</parameter><parameter=days>3</parameter></function>",
    ],
    "<invoke ...>": [
        '<invoke name="find"><parameter name="place">Bergen</parameter>'
        '<parameter name="days">3</parameter></invoke>',
        '<function_calls>\n<invoke name="find">\n<parameter name="place">Bergen</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n</function_calls>',
        f'<{PREFIX}function_calls>\n<{PREFIX}invoke name="find">\n'
        f'<{PREFIX}parameter name="place">Bergen</{PREFIX}parameter>\n'
        f'<{PREFIX}parameter name="days">3</{PREFIX}parameter>\n'
        f"</{PREFIX}invoke>\n</{PREFIX}function_calls>",
    ],
    "Action: and Action Input:": [
        'Thought: I look.\nAction: find\nAction Input: {"place": "Bergen", "days": 3}',
        '**Action:** `find`\n**Action Input:**\n```json\n{"place": "Bergen", "days": 3}\n```',
        'Action: find\nAction Input: {"place": "Bergen", "days": 3}\nObservation: sunny\n'
        "Thought: I am done.",
    ],
    "<|tool_call_begin|>": [
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>"
        '{"place": "Bergen", "days": 3}<|tool_call_end|><|tool_calls_section_end|>',
    ],
    "<|channel|>commentary to=...": [
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.find <|constrain|>json<|message|>{"place": "Bergen", "days": 3}<|call|>',
        '<|channel|>commentary to=find<|message|>{"place": "Bergen", "days": 3}',
    ],
    "functions.name(...)": [
        'functions.find({"place": "Bergen", "days": 3})',
        'functions.find:0 {"place": "Bergen", "days": 3}',
    ],
}
CASES = [(name, text) for name, texts in FORMS.items() for text in texts]
BEFORE = ["", "I look that up.\n", "<think>[TOOL_CALLS]other[ARGS]{}</think>\n"]


def over(protocol):
    return {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}[protocol.name]


def run(protocol, replies):
    made = []

    @tool
    def find(place: str, days: int = 1) -> str:
        """Find a place."""
        made.append((place, days))
        return "found"

    model = ScriptedModel([*replies, over(protocol)])
    result = Agent(model, tools=[find], protocol=protocol).run_sync("go")
    return made, model, result


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_lenient_reads_the_call(kind, name, text, before):
    protocol = kind(lenient=True)
    reply = protocol.parse(before + text)
    if (
        before.startswith("I look")
        and text.startswith("<tool_call>{")
        and "</tool_call>" not in text
    ):
        # With other text in the reply, the missing end tag needs a guess.
        assert reply.violation.code == "extra_data"
        return
    made, _, _ = run(protocol, [before + text])
    assert made == [("Bergen", 3)]
    assert [call.tool for call in reply.move.calls] == ["find"]
    assert "published_form" in [repair.code for repair in reply.repairs]


@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_stream_is_read_as_the_whole_for_every_split(kind, name, text):
    text = f"So: {text}" if not text.startswith(("Action", "**", "functions")) else text
    whole = kind(lenient=True).parse(text)
    splits = [[text[:at], text[at:]] for at in range(1, len(text))]
    for pieces in [list(text), *splits]:
        reader = kind(lenient=True).reader()
        for piece in pieces:
            _, status = reader.push(piece)
            assert status == "open"
        reply = reader.finish()
        assert str(reply.move) == str(whole.move)
        assert reply.repairs == whole.repairs
        assert reply.narration == whole.narration


@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_by_default_the_form_is_named_and_the_move_written_out(kind, name, text):
    violation = kind().parse(text).violation
    assert violation.code == "wrong_tag"
    assert name in violation.message
    assert kind(strict=True).parse(text).violation is not None
    made, model, _ = run(kind(), [text])
    assert made == []
    told = model.requests[1].messages[-1]["content"]
    assert name in told
    corrected = told.split("Write it so: ")[1].split("\nHint")[0]
    made, _, _ = run(kind(), [corrected])
    assert made == [("Bergen", 3)]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "find", "arguments": {"place": "Bergen",}}</tool_call>',
        "<|x|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>"
        '{"place": "Bergen"}<|tool_call_end|><|y|>',
        '[TOOL_CALLS]find[ARGS]{place: "Bergen"}',
    ],
)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_call_that_would_need_repairs_is_no_answer_where_they_are_refused(kind, text):
    for protocol in (kind(), kind(strict=True)):
        assert protocol.parse(text).violation is not None


REFUSED = [
    # What stands around it says that it is only shown, or goes on.
    '[TOOL_CALLS]find[ARGS]{"place": "Bergen"} is how it would be written.',
    '"[TOOL_CALLS]find[ARGS]{}"',
    '<function=find>{"place": "Bergen"}</function>\nand then I tell you.',
    # Another call, after an invented result and without one.
    'Action: find\nAction Input: {"place": "Bergen"}\nObservation: mild\n'
    'Action: find\nAction Input: {"place": "Oslo"}',
    '<function=find>{"place": "Bergen"}</function>\n[TOOL_CALLS]find[ARGS]{"place": "Oslo"}',
    # Cut, or broken.
    "<function=find>\n<parameter=place>\nBer",
    "<function=find>\n<parameter=place>\nBergen\n</parameter>\n",
    '[TOOL_CALLS]find[ARGS]{"place": "Ber',
    '<tool_call>\n{"name": "find", "arguments": {"place": "Ber',
    "<function=find><parameter=place>Bergen<parameter=days>3</parameter></function>",
    "<function=find><parameter=place>a</parameter><parameter=place>b</parameter></function>",
    # Arguments that would have to be guessed.
    "Action: find\nAction Input: Bergen",
    'Action: find\nAction Input: {"place": "Bergen"} (in the west)',
    "Action: find",
    '<tool_call>{"name": "find", "arguments": {"place": "Bergen"}, "url": "x"}</tool_call>',
    '<tool_call>{"name": "find", "tool": "drop", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "find", "arguments": {}, "parameters": {"place": "Oslo"}}</tool_call>',
    '<tool_call>{"name": "find", "arguments": ["Bergen"]}</tool_call>',
    '<tool_call>{"name": "find", "arguments": {"place": "Bergen", /* rest */}}</tool_call>',
    '<invoke name="find"><parameter name="place" type="x">Bergen</parameter></invoke>',
    "<|channel|>commentary to=functions.find <|constrain|>python<|message|>{}<|call|>",
    "functions.find('Bergen')",
    # A move of the conversation's own beside it.
    '<tool_call>{"name": "find", "arguments": {"place": "Bergen"}}</tool_call>\n'
    '{"thought": "t", "action": "find", "args": "{}"}\n<tool>[{"tool_name": "find", '
    '"arguments": {}}]</tool>\n<output>{"type": "CALL", "route": "find", "payload": {}}</output>',
    # In reasoning and in code nothing counts.
    "<think>[TOOL_CALLS]find[ARGS]{}</think>",
    '```\n<tool_call>{"name": "find", "arguments": {"place": "Bergen"}}</tool_call>\n```',
]


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_what_needs_a_guess_is_refused(kind, text):
    protocol = kind(lenient=True)
    reply = protocol.parse(text)
    assert reply.violation is not None or type(reply.move).__name__ == "Finish"
    if reply.violation is None:
        # Plain text is an answer in the chatty protocol alone.
        assert kind is ChattyProtocol
    made, _, _ = run(protocol, [text] if reply.violation is not None else [])
    assert made == []


OWN = '<tool>[{"call_id": "a", "tool_name": "find", "arguments": {"place": "Oslo"}}]</tool>'


@pytest.mark.parametrize(("name", "text"), CASES)
@pytest.mark.parametrize("options", [{}, {"strict": True}, {"lenient": True}])
def test_a_call_before_a_tool_block_is_not_left_as_narration(name, text, options):
    protocol = ChattyProtocol(**options)
    for between in ("\n", "\nAnd then:\n"):
        reply = protocol.parse(f"I look.\n{text}{between}{OWN}")
        # Strictly, reasoning before it is named first.
        assert reply.violation.code in ("multiple_actions", "wrong_tag", "repair_refused")
    made, _, _ = run(protocol, [f"{text}\n{OWN}"])
    assert made == []


@pytest.mark.parametrize(("name", "text"), CASES)
def test_a_stream_says_early_that_such_a_reply_is_refused(name, text):
    text = f"{text}\n{OWN}"
    for size in (1, 7, len(text)):
        reader = ChattyProtocol().reader()
        seen = {reader.push(text[at : at + size])[1] for at in range(0, len(text), size)}
        assert "complete" not in seen
        assert str(reader.finish().violation) == str(ChattyProtocol().parse(text).violation)


@pytest.mark.parametrize(
    "text",
    [
        "`[TOOL_CALLS]find[ARGS]{}` is another form.",
        "<think>[TOOL_CALLS]find[ARGS]{}</think>",
        "I could write <tool_call> here.",
        "Action: look it up.",
    ],
)
@pytest.mark.parametrize("options", [{}, {"strict": True}])
def test_a_form_that_is_only_spoken_of_is_narration(text, options):
    reply = ChattyProtocol(**options).parse(f"{text}\n{OWN}")
    if options and "<think>" in text:
        assert reply.violation is not None
    else:
        assert [call.tool for call in reply.move.calls] == ["find"]


def test_several_calls_are_a_block_or_refused():
    one = '<tool_call>{"name": "find", "arguments": {"place": "Bergen"}}</tool_call>'
    text = f"{one}\n{one.replace('Bergen', 'Oslo')}"
    made, _, _ = run(ChattyProtocol(lenient=True), [text])
    assert sorted(made) == [("Bergen", 1), ("Oslo", 1)]
    for kind in (ReactProtocol, TicketProtocol):
        assert kind(lenient=True).parse(text).violation.code == "multiple_actions"
        assert run(kind(lenient=True), [text])[0] == []
        assert len(kind(lenient=True).parse(f"{one}\n{one}").move.calls) == 1


def test_an_answer_that_speaks_of_a_form_stays_an_answer():
    for text in (
        "Write `<tool_call>{}</tool_call>` around it.",
        "Next: call the shop.\nAction: none needed.",
        "Use functions.find in your program.",
    ):
        for protocol in (ChattyProtocol(), ChattyProtocol(lenient=True)):
            assert protocol.parse(text).move.value == text


def test_tags_of_the_conversation_are_its_own():
    text = '<tool_call>[{"call_id": "a", "tool_name": "find", "arguments": {}}]</tool_call>'
    tags = ("<tool_call>", "</tool_call>")
    for lenient in (False, True):
        reply = ChattyProtocol(tool_tag=tags, lenient=lenient).parse(text)
        assert [call.tool for call in reply.move.calls] == ["find"]
        assert reply.repairs == []


def test_a_reply_that_the_token_limit_cut_is_refused():
    for text in ('<tool_call>{"name": "find", "arguments": {}}', "Action: find\nAction Input:"):
        assert ReactProtocol(lenient=True).parse(text).violation is None
        assert ReactProtocol(lenient=True).parse(text, finish_reason="length").violation is not None
