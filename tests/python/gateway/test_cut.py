"""Replies that are cut at `max_tokens`, and plain text as an answer."""

from __future__ import annotations

import json

import pytest

from callslip import ModelChunk, ModelReply, ScriptedModel
from callslip.models import NativeCall
from gateway_faces import FACES, Asking, Got, Step, ask
from gateways import CITY, act, finish
from scripted import block

WEATHER = ("get_weather", CITY)
CALL = act("get_weather", city="Oslo")
END = finish("It is cold.")
RIGHT = Got(200, "", (("get_weather", '{"city":"Oslo"}'),), "calls")
CUT = Got(200, "", (), "length")
SCHEMA = {"type": "object", "properties": {"t": {"type": "integer"}}, "required": ["t"]}

both = pytest.mark.parametrize("streamed", [False, True])
faces = pytest.mark.parametrize("path", FACES)


def asked(replies, path, streamed, **more):
    options = more.pop("options", {})
    asking = Asking(**{"tools": [WEATHER], "max_tokens": 20, **more})
    return ask(replies, asking, path, streamed=streamed, **options)


def cut(text):
    return ModelReply(text, "length")


PARTS = {
    "an answer": ("react", cut(END[: END.index(" cold")]), "It is"),
    "before a move": ("react", cut('{"thought": "I have to'), ""),
    "a call": ("react", cut(CALL[:-6]), ""),
    "plain text": ("react", cut("It is cold in"), ""),
    "an answer in chatty": ("chatty", cut("It is cold in"), "It is cold in"),
    "a block": ("chatty", cut("Let me look.\n" + block(("a", "get_weather", {}))[:-12]), ""),
    "the tag of a block": ("chatty", cut("Let me look.\n<to"), "Let me look."),
    "a call of another family": ("chatty", cut('{"name": "get_weather", "argum'), ""),
    "its tag": ("chatty", cut('<tool_call>{"name": "get_wea'), ""),
    "a function": ("chatty", cut("get_weather(city="), ""),
    "its name": ("chatty", cut("get_wea"), ""),
    "native text": ("native", cut("It is cold in"), "It is cold in"),
    "a native call": (
        "native",
        ModelReply("", "length", calls=[NativeCall("a", "get_weather", '{"city": "Os')]),
        "",
    ),
    "a native call that looks whole": (
        "native",
        ModelReply("", "length", calls=[NativeCall("a", "get_weather", '{"city": "Oslo"}')]),
        "",
    ),
}


@both
@faces
@pytest.mark.parametrize("chunk_size", [None, 4])
@pytest.mark.parametrize("name", PARTS)
def test_a_reply_that_is_cut_ends_with_the_text_so_far(path, streamed, name, chunk_size):
    protocol, reply, due = PARTS[name]
    model = ScriptedModel([reply, reply], chunk_size=chunk_size)
    got, _ = asked(model, path, streamed, options={"protocol": protocol})
    assert got == CUT._replace(text=due)
    # The client has paid for its limit once.
    assert len(model.requests) == 1


WHOLE = {
    "answer": ("react", cut(END), Got(200, "It is cold.", (), "stop")),
    "call": ("react", cut(CALL), RIGHT),
    "block": ("chatty", cut(block(("a", "get_weather", {"city": "Oslo"}))), RIGHT),
}


@both
@faces
@pytest.mark.parametrize("name", WHOLE)
def test_a_move_that_is_complete_at_the_limit_counts(path, streamed, name):
    protocol, reply, due = WHOLE[name]
    got, _ = asked([reply], path, streamed, options={"protocol": protocol})
    assert got == due


@both
@faces
def test_a_typed_answer_that_is_cut_has_no_text(path, streamed):
    whole = finish({"t": 4})
    got, _ = asked([cut(whole[:-20])], path, streamed, tools=[], schema=SCHEMA)
    assert got == CUT


@both
@pytest.mark.parametrize("path", [FACES[0], FACES[2]])
def test_without_a_limit_of_the_client_the_model_is_asked_again(path, streamed):
    model = ScriptedModel([cut(CALL[:-6]), CALL])
    got, _ = asked(model, path, streamed, max_tokens=None)
    assert got == RIGHT
    again = [cut(END[: END.index(" cold")])] * 2
    got, _ = asked(again, path, streamed, max_tokens=None, options={"max_violations": 1})
    assert got == CUT._replace(text="It is")


@both
@faces
def test_a_stop_sequence_before_the_cut_is_the_end(path, streamed):
    if path == FACES[2]:
        return
    got, _ = asked([cut(END[: END.index(" cold")])], path, streamed, stop=(" is",))
    assert got == Got(200, "It", (), "stop")


@both
@faces
@pytest.mark.parametrize("chunk_size", [None, 4])
def test_a_text_that_is_cut_without_tools(path, streamed, chunk_size):
    model = ScriptedModel([cut("It is cold in ")], chunk_size=chunk_size)
    got, _ = asked(model, path, streamed, tools=[])
    assert got == CUT._replace(text="It is cold in ")


PLAIN = {
    "text": ("It is cold in Oslo.\n\nTake a coat!", "It is cold in Oslo.\n\nTake a coat!"),
    "with a list": ("1. Go out\n2. Come back [soon]", "1. Go out\n2. Come back [soon]"),
    "with reasoning": ("<think>Hm.</think>It is cold.", "It is cold."),
    "with the word of a tool": ("I can get weather and more.", "I can get weather and more."),
}


@both
@faces
@pytest.mark.parametrize("name", PLAIN)
def test_plain_text_is_an_answer_if_the_gateway_accepts_it(path, streamed, name):
    text, due = PLAIN[name]
    model = ScriptedModel([text, END])
    got, _ = asked(model, path, streamed, options={"plain_answers": True})
    assert got == Got(200, due, (), "stop")
    assert len(model.requests) == 1
    got, _ = asked([text, END], path, streamed)
    assert got.text == "It is cold."


SIGNS = [
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>',
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    '<|python_tag|>get_weather(city="Oslo")',
    "<function=get_weather><parameter=city>Oslo</parameter></function>",
    'Action: get_weather\nAction Input: {"city": "Oslo"}',
    "I call get_weather(city='Oslo') now.",
    "Let me use `get_weather` for Oslo.",
    "get_weather",
    '```json\n{"city": "Oslo"}\n```',
    '{"thought": "", "action": "get_weather", "args": {"city": "Oslo"}',
    "Final Answer: cold",
    'final_answer = "cold"',
    "",
]


@faces
@pytest.mark.parametrize("text", SIGNS)
def test_text_with_any_sign_of_a_call_is_no_answer(path, text):
    model = ScriptedModel([text, END])
    got, _ = asked(model, path, streamed=False, options={"plain_answers": True})
    assert got.text in ("It is cold.", "")
    assert len(model.requests) == 2 or got.calls


@faces
@pytest.mark.parametrize("more", [{"choice": "required"}, {"schema": SCHEMA}])
def test_plain_text_is_no_answer_where_something_else_is_due(path, more):
    right = CALL if "choice" in more else finish({"t": 4})
    got, _ = asked(
        ["It is cold.", right], path, streamed=False, **more, options={"plain_answers": True}
    )
    assert got.text in ("", json.dumps({"t": 4}, separators=(",", ":")))


def test_with_a_grammar_plain_text_is_no_answer():
    replies = ["It is cold.", END]

    class Model:
        accepts = frozenset({"grammar"})
        grammar_form = "gbnf"

        def __call__(self, messages, *, grammar=None):
            return replies.pop(0)

    got, _ = asked(Model(), FACES[0], streamed=False, options={"plain_answers": True})
    assert got.text == "It is cold."
    assert replies == []


@faces
def test_a_call_after_plain_text_in_the_history(path):
    steps = [Step("user", "Hi"), Step("answer", "Hello."), Step("user", "Weather?")]
    got, _ = asked([CALL], path, streamed=False, steps=steps, options={"plain_answers": True})
    assert got == RIGHT


@faces
def test_a_live_answer_that_is_cut_is_sent_once(path):
    words = "It is cold in Oslo, and it will be colder tomorrow. " * 4
    whole = finish(words)

    class Model:
        accepts = frozenset({"grammar", "max_tokens"})
        grammar_form = "gbnf"

        def __call__(self, messages, *, grammar=None, max_tokens=None):
            end = whole.index("tomorrow", 200)
            for at in range(0, end, 5):
                yield whole[at : min(at + 5, end)]
            yield ModelChunk("", "length")

    got, sent = asked(Model(), path, streamed=True)
    assert got.end == "length"
    assert words.startswith(got.text)
    assert got.text.endswith("colder ")
    assert got == asked(Model(), path, streamed=False)[0]
    assert len([one for one in sent.events if "cold" in str(one)]) > 2
