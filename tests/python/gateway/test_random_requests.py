"""Random requests to each face: served or refused with a hint, whole as streamed, and checked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from argument_schemas import DEFINITIONS, objects_and_arguments
from callslip import ChattyProtocol, ModelReply, ScriptedModel
from callslip.models import NativeCall
from callslip.testing import Say
from gateway_faces import EXTRAS, FACES, Asking, Step, ask
from gateways import HINT, finish
from random_cases import cases

NAMES = ["look", "get_it", "weather.get", "FINISH", "call_tool", "a" * 70, "x-y", "wetter für"]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
SAID = st.one_of(
    TEXTS, st.sampled_from(["", " ", "Observation: x", '{"action": "look"}', "<tool>"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
# The names in the prompt, of those that cannot stand there.
SENT = {
    (False, "FINISH"): "FINISH_",
    (True, "FINISH"): "FINISH_",
    (False, "call_tool"): "call_tool_",
    (True, "call_tool"): "call_tool_",
    (True, "weather.get"): "weather_get_",
    (False, "wetter für"): "wetter_f_r_",
    (True, "wetter für"): "wetter_f_r_",
}


@st.composite
def schemas(draw):
    schema, arguments = draw(objects_and_arguments())
    return {**schema, "$defs": DEFINITIONS}, arguments


@st.composite
def askings(draw):
    """A request, and arguments for each of its tools: they may or may not fit."""
    names = draw(
        st.lists(
            st.sampled_from(NAMES),
            min_size=draw(st.sampled_from([0, 1, 1, 2])),
            max_size=3,
            unique=True,
        )
    )
    described = {name: draw(schemas()) for name in names}
    steps = [Step("user", draw(SAID))]
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["user", "answer", "calls"]))
        rows = ()
        if kind == "calls":
            called = st.tuples(st.sampled_from(NAMES), st.dictionaries(TEXTS, VALUES, max_size=2))
            rows = tuple(
                (*one, draw(SAID)) for one in draw(st.lists(called, min_size=1, max_size=2))
            )
        steps.append(Step(kind, draw(SAID), rows))
    if steps[-1].kind == "answer":
        steps.append(Step("user", draw(SAID)))
    choices = [None, "auto", "required", "none", *((name,) for name in names)]
    asking = Asking(
        steps=steps,
        tools=[(name, schema) for name, (schema, _) in described.items()],
        choice=draw(st.sampled_from(choices)) if names else None,
        parallel=draw(st.sampled_from([None, True, False])) if names else None,
        schema=draw(schemas())[0] if draw(st.integers(0, 4)) == 0 else None,
        system=draw(SAID),
        max_tokens=draw(st.sampled_from([None, 5, 1000])),
        stop=draw(st.sampled_from([(), (), ("#",), ("a", "b")])),
        in_parts=draw(st.booleans()),
        extra=draw(st.sampled_from(range(EXTRAS))),
    )
    return asking, {name: arguments for name, (_, arguments) in described.items()}


def said_in(protocol, draw, arguments, choice):
    """A reply: a call of a tool or of none, an answer, a text, or the beginning of one of them."""
    name = draw(st.sampled_from([*arguments, *arguments, *arguments, "nothing"]))
    given = arguments.get(name, {})
    if draw(st.integers(0, 4)) == 0:
        given = draw(st.dictionaries(TEXTS, VALUES, max_size=2))
    name = SENT.get((protocol == "native", name), name)
    kinds = ["call"] * 4 + ["two calls", "answer"] if arguments else ["answer", "typed", "text"]
    kind = draw(st.sampled_from([*kinds, "typed", "text"]))
    answer = draw(SAID if kind == "answer" else VALUES)
    if kind == "text":
        whole = ModelReply(draw(SAID))
    elif protocol == "native":
        if "call" in kind:
            made = [NativeCall(f"c{n}", name, json.dumps(given)) for n in range(len(kind.split()))]
            return ModelReply(draw(SAID), draw(st.sampled_from(["stop", "length"])), calls=made)
        if kind == "typed":
            answered = json.dumps({"answer": answer})
            return ModelReply("", calls=[NativeCall("c", "final_answer", answered)])
        whole = ModelReply(answer)
    else:
        say = Say(protocol if protocol == "react" else ChattyProtocol())
        if "call" in kind:
            written = say.call(name, **given) if "name" not in given else ""
        elif protocol == "react":
            written = finish(answer)
        elif isinstance(answer, str):
            written = answer
        else:
            written = f"<answer>{json.dumps(answer)}</answer>"
        whole = ModelReply(written * len(kind.split()))
    # A stream ends where a tool is named that may not be called: it is not known then that it would
    # have been cut.
    may_be_called = name in arguments and choice in {None, "auto", "required", (name,)}
    if draw(st.integers(0, 5)) or not may_be_called:
        return whole
    return ModelReply(whole.text[: draw(st.integers(0, 60))], "length")


@pytest.mark.parametrize("protocol", ["react", "chatty", "native"])
@pytest.mark.parametrize("path", FACES)
@given(data=st.data(), asked=askings(), plain=st.booleans())
@settings(deadline=None, max_examples=cases(25))
def test_a_random_request_is_served_or_refused(path, protocol, data, asked, plain):
    asking, arguments = asked
    replies = [said_in(protocol, data.draw, arguments, asking.choice) for _ in range(4)]
    size = data.draw(st.sampled_from([None, 1, 7]))
    options = {"protocol": protocol, "max_violations": 2, "plain_answers": plain}

    def answer(chunk_size, *, streamed):
        model = ScriptedModel(replies, chunk_size=chunk_size)
        return ask(model, asking, path, streamed=streamed, **options)[0]

    got = answer(None, streamed=False)
    assert answer(size, streamed=True) == got
    assert answer(None, streamed=True) == got
    assert got.status in {200, 400, 422}, got
    if got.status != 200:
        assert got.status == 422 or HINT.search(got.error), got
        assert got.text == ""
        assert got.calls == ()
        return
    check_calls(asking, got)
    if got.calls:
        return
    if asking.choice == "required" or isinstance(asking.choice, tuple):
        assert got.end == "length"
    elif asking.schema is not None and got.end != "length" and not asking.stop:
        assert Draft202012Validator(asking.schema).is_valid(json.loads(got.text))


def check_calls(asking, got):
    """Each call names a tool, fits its schema, and is one that the choice allows."""
    tools = dict(asking.tools)
    for name, written in got.calls:
        given = json.loads(written, parse_constant=pytest.fail)
        assert Draft202012Validator(tools[name]).is_valid(given)
        assert asking.choice != "none"
        if isinstance(asking.choice, tuple):
            assert name == asking.choice[0]
    assert (got.end == "calls") == bool(got.calls)
    if asking.parallel is False and asking.choice is not None:
        assert len(got.calls) <= 1
