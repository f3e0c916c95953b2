"""Everyday forms with one reading are read; cut, shown and left-out content is refused."""

import pytest

from callslip import Agent, ChattyProtocol, ReactProtocol, ScriptedModel, TicketProtocol, tool
from scripted import act, finish, give

WIDE = str.maketrans(":,", "\uff1a\uff0c")
CALL = '[{"call_id": "a", "tool_name": "now", "arguments": {}}]'


@pytest.mark.parametrize(
    ("protocol", "call"),
    [
        ("react", '{"thought": "t", "action": "now"}'),
        ("chatty", '<tool>[{"call_id": "a", "tool_name": "now"}]</tool>'),
        (
            "ticket",
            '<thoughts>t</thoughts><output>{"type": "CALL", "route": "now", '
            '"description": "d"}</output>',
        ),
    ],
)
def test_missing_arguments_are_none_where_the_tool_needs_none(protocol, call):
    made = []

    @tool
    def now() -> str:
        """Tell the time."""
        made.append("now")
        return "noon"

    @tool
    def at(place: str) -> str:
        """Tell the time somewhere."""
        made.append(place)
        return "noon"

    over = {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}[protocol]
    for text, expected in ((call, ["now"]), (call.replace('"now"', '"at"'), [])):
        made.clear()
        model = ScriptedModel([text, over])
        Agent(model, tools=[now, at], protocol=protocol).run_sync("go")
        assert made == expected


@pytest.mark.parametrize("arguments", [{"city": "Oslo", "unit": None}, {"city": "Oslo"}])
def test_null_for_an_optional_argument_is_its_default(arguments):
    made = []

    @tool
    def weather(city: str, unit: str = "celsius") -> str:
        """Tell the weather."""
        made.append((city, unit))
        return "mild"

    model = ScriptedModel([act("weather", **arguments), finish("ok")])
    Agent(model, tools=[weather], protocol="react").run_sync("go")
    assert made == [("Oslo", "celsius")]


def test_null_for_a_required_argument_is_refused():
    made = []

    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        made.append(city)
        return "mild"

    model = ScriptedModel([act("weather", city=None), finish("ok")])
    Agent(model, tools=[weather], protocol="react").run_sync("go")
    assert made == []


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        (ChattyProtocol, "The answer is that the bridge was built in"),
        (ChattyProtocol, "Let me look that up."),
        (ChattyProtocol, f"```\n<tool>{CALL}</tool>\n```"),
        (ChattyProtocol, f"<tool>{CALL[:30]}"),
        (ChattyProtocol, "<think>so"),
        (ReactProtocol, '{"thought": "t", "action": "no'),
        (ReactProtocol, "I think that"),
        (TicketProtocol, "<thoughts>so"),
        (TicketProtocol, '<thoughts>so</thoughts><output>{"type": "RETURN", "value": "a'),
        (TicketProtocol, "<thoughts>so</thoughts>"),
    ],
)
def test_a_reply_that_was_cut_is_truncated(protocol, text):
    violation = protocol().parse(text, finish_reason="length").violation
    assert violation.code == "truncated"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"Let me see.\n```\n<tool>{CALL}</tool>\n```", "fenced_tool_call"),
        (f"Let me see.\n~~~xml\n<tool>\n{CALL}\n</tool>\n~~~\n", "fenced_tool_call"),
        (f"Let me see.\n```json\n{CALL}\n```", "untagged_tool_call"),
        (f"A sample:\n```\nx = 1\n```\nNow:\n```json\n{CALL}\n```", "untagged_tool_call"),
        (f"```json\n{CALL}\n```", "untagged_tool_call"),
    ],
)
def test_a_call_in_the_last_fence_is_no_answer(text, code):
    violation = ChattyProtocol().parse(text).violation
    assert violation.code == code
    assert violation.hint


@pytest.mark.parametrize(
    "text",
    [
        f"Write it so:\n```\n<tool>{CALL}</tool>\n```\nThen wait.",
        'Here it is:\n```json\n{"name": "x", "version": 2}\n```',
        "Run this:\n```python\nprint([1, 2])\n```",
        'The list:\n```json\n[{"city": "Oslo"}, {"city": "Bergen"}]\n```',
    ],
)
def test_other_fences_are_part_of_an_answer(text):
    assert ChattyProtocol().parse(text).move.value == text


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'caf\xe9'", "café"),
        (r"'\x1b[31m'", "\x1b[31m"),
        (r"'\U0001F600 \u00e9'", "😀 é"),
        (r"'a\x'", None),
        (r"'\N{BULLET}'", None),
        (r"'\033[0m'", None),
        (r"'\xe9\d'", None),
        (r'"caf\xe9"', None),
        (r'"\U0001F600"', None),
    ],
)
def test_escapes_of_python_are_read_as_python_or_refused(written, value):
    reply = ReactProtocol().parse(
        f"{{'thought': 't', 'action': 'say', 'args': {{'text': {written}}}}}"
    )
    if value is None:
        assert reply.violation is not None or reply.move.calls[0].arguments == {"text": "a\\x"}
    else:
        assert reply.move.calls[0].arguments == {"text": value}
        assert "python_escape" in {repair.code for repair in reply.repairs}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"names": ["a", "b", /* rest omitted */]}',
        '{"names": ["a", // and 12 others\n]}',
        '{"names": ["a" # and so on\n]}',
        '{"a": 1, // the other fields\n}',
        '{"names": [/* all of them */]}',
        "{/* as before */}",
        '{"a": 1, // 3 more\n "b": 2}',
    ],
)
def test_a_comment_in_the_place_of_content_is_refused(arguments):
    text = f'{{"thought": "t", "action": "send", "args": {arguments}}}'
    assert ReactProtocol().parse(text).violation.code == "elided_content"


def test_a_comment_beside_content_is_read():
    text = '{"thought": "t", "action": "send", "args": {"a": 1, // how many\n "b": [2 /* days */]}}'
    assert ReactProtocol().parse(text).move.calls[0].arguments == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"Thought": "t", "Action": "say", "Args": {"a": 1}}', {"key_case", "args_object"}),
        (
            '{"thought": "t", "action": "say", "args": {"a": 1}}'.translate(WIDE),
            {"wide_punctuation", "args_object"},
        ),
        ('{"thought": ["t"], "action": "say", "args": {"a": 1}}', {"thought_list", "args_object"}),
        (
            '{"thought": "t", "action": "say", "args": {"a": 1}, "final_answer": ""}',
            {"empty_field", "args_object"},
        ),
    ],
)
def test_forms_with_one_reading(text, codes):
    reply = ReactProtocol().parse(text)
    assert (reply.move.calls[0].tool, reply.move.calls[0].arguments) == ("say", {"a": 1})
    assert {repair.code for repair in reply.repairs} == codes
    assert reply.thoughts == "t"
    assert ReactProtocol(strict=True).parse(text).violation is not None
    reader = ReactProtocol().reader()
    for char in text:
        reader.push(char)
    assert reader.finish().repairs == reply.repairs


MOVE = '{"thought": "t", "action": "say", "args": {"a": 1}}'


@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("after", ["", "}", " and so on", "\n"])
def test_a_copy_of_the_move_is_no_second_one_while_it_arrives(between, after):
    reader = ReactProtocol().reader()
    states = [reader.push(char)[1] for char in MOVE + between + MOVE + after]
    reply = reader.finish()
    assert reply.violation is None
    assert "duplicate_object_dropped" in [repair.code for repair in reply.repairs]
    assert "doomed" not in states


@pytest.mark.parametrize("after", ['{"b": 2}', ', "b": 2', '"b": 2', MOVE.replace("1", "2")])
def test_what_is_stuck_to_a_copy_is_not_dropped(after):
    assert ReactProtocol().parse(MOVE + MOVE + after).violation is not None


def test_a_cut_answer_is_asked_for_again():
    def model(messages):
        from callslip import ModelReply

        if any(message["role"] == "assistant" for message in messages):
            return ModelReply("A whole answer.", "stop")
        return ModelReply("Half an", "length")

    assert Agent(model, protocol="chatty").run_sync("go").value == "A whole answer."


SHOWN = f"<tool>{CALL}</tool>"


@pytest.mark.parametrize(
    "text",
    [
        f"They wrote:\n> {SHOWN}\n\nand it ran.",
        f"> {SHOWN}",
        f"The form is <pre>{SHOWN}</pre> as you see.",
        f'<pre lang="x">\n{SHOWN}\n</pre>',
        f"<code>{SHOWN}</code> is the form.",
        f"<!-- {SHOWN} -->\nDone.",
        f"For example:\n\n    {SHOWN}\n\nThat is all.",
        f"For example:\n\n\t{SHOWN}",
    ],
)
def test_a_block_that_is_shown_is_not_made(text):
    reply = ChattyProtocol().parse(text)
    assert reply.violation.code == "quoted_move"
    reader = ChattyProtocol().reader()
    ready = [delta for char in text for delta in reader.push(char)[0]]
    assert not any(type(delta).__name__ == "CallReady" for delta in ready)
    assert reader.finish().violation.code == "quoted_move"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "I look.\n\n",
        "    ",
        "1. I look.\n\n    ",
        "It is > 3. ",
        "<pre>x</pre>\n",
        "<!-- x -->",
    ],
)
def test_a_block_beside_such_text_is_made(before):
    reply = ChattyProtocol().parse(before + SHOWN)
    assert [call.tool for call in reply.move.calls] == ["now"]


def test_the_way_to_speak_of_a_tag_is_named():
    text = "In such prompts <function=name> begins a call."
    reply = ChattyProtocol().parse(text)
    assert "backticks" in reply.violation.hint
    quoted = text.replace("<function=name>", "`<function=name>`")
    assert ChattyProtocol().parse(quoted).move.value == quoted


@pytest.mark.parametrize(
    "text",
    [
        "Write <think> and </think> around the reasoning.",
        "The pair <think>...</think> is set aside, and so are [THINK] and [/THINK].",
        "It begins with <think> and ends with </think>.",
    ],
)
def test_an_answer_that_names_both_marks_of_reasoning_keeps_its_words(text):
    reply = ChattyProtocol().parse(text)
    told = ChattyProtocol().reader()
    for char in text:
        told.push(char)
    for read in (reply, told.finish()):
        assert read.move.value == text
        assert (read.thoughts, read.repairs) == (None, [])


def test_reasoning_in_an_answer_is_still_set_aside():
    for text in (
        "<think>so</think>Yes.",
        "Well.\n<think>so</think>\nYes.",
        "Well\n<think>so</think>\nYes.",
        "Well. <think>The user asks for it, so I say yes.</think> Yes.",
    ):
        reply = ChattyProtocol().parse(text)
        assert "think" not in reply.move.value
        assert reply.thoughts is not None


def test_a_token_before_reasoning_is_named_where_it_stands():
    text = "[1<|im_end|><think>ø</think>"
    reply = ChattyProtocol().parse(text)
    assert reply.move.value == "[1"
    start, end = next(one.span for one in reply.repairs if one.code == "special_token_stripped")
    assert text.encode()[start:end].decode() == text[2:]
