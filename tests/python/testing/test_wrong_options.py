"""What tests pass to `callslip.testing` and its models, where it is of a wrong type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from callslip import Agent, FunctionModel, ModelReply, ScriptedModel, UsageError, tool
from callslip.models import ModelChunk
from callslip.testing import Called, Faults, FaultyTools, RecordedModel, Recording, Say, codes
from callslip.testing.faults import Hang, RateLimited, cut, hang
from callslip.testing.strategies import replies

NAN = float("nan")


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


SAY = Say("react")
MODEL = ScriptedModel([])
FAULTS = "expected a list of faults, or a dict by the number of the call: got"
REPLY = (
    "expected a string, a ModelReply, pieces to stream, an exception or a function as a scripted"
)
PIECE = "expected a string, a ModelChunk or an exception as a piece of a scripted reply: got"

CALLS = [
    # FaultyTools
    (lambda: FaultyTools([ValueError], [add]), "expected faults as a dict of lists by the name"),
    (
        lambda: FaultyTools(3, [add]),
        "expected faults as a dict of lists by the name of the tool: got 3",
    ),
    (
        lambda: FaultyTools({"x": []}, []),
        "expected tools for the faults: got none, and faults of 'x'",
    ),
    (lambda: FaultyTools({"x": []}, [add]), "expected the name of a tool, one of 'add': got 'x'"),
    (
        lambda: FaultyTools({"add": {ValueError}}, [add]),
        "expected a list for the tool 'add': got {",
    ),
    # Say
    (
        lambda: Say(["react"]),
        "expected protocol='ticket', 'chatty', 'react' or 'native', or a protocol object",
    ),
    (
        lambda: Say("REACT"),
        "expected protocol='ticket', 'chatty', 'react' or 'native', or a protocol object",
    ),
    (lambda: SAY.call(3), "expected the name of a tool to be text: got 3"),
    (lambda: SAY.call(add), "expected the name of a tool: got <function add at"),
    (lambda: SAY.call(tool(add)), "expected the name of a tool: got "),
    (
        lambda: SAY.call("add", a={1}),
        "expected JSON values in a reply: got another: Object of type",
    ),
    (lambda: SAY.call("add", a={(1, 2): 3}), "expected JSON values in a reply: got another: keys"),
    (
        lambda: SAY.finish(b"x"),
        "expected JSON values in a reply: got another: Object of type bytes",
    ),
    (lambda: SAY.calls_of([add], answer=add), "expected JSON values in a reply: got another"),
    # What is compared
    (lambda: codes(3), "expected a run, its result or its trace: got 3; pass result, or error.run"),
    (lambda: codes(ValueError()), "expected a run, its result or its trace: got ValueError()"),
    (lambda: Called(add), "expected the name of a tool to be text: got <function add at"),
    (
        lambda: Called("add", outcome="okay"),
        "expected outcome='ok' or 'error' or 'retry' or 'in_doubt'",
    ),
    (lambda: Called("add", outcome=True), "expected outcome='ok' or "),
    # Faults
    (
        lambda: Faults(MODEL, "react", {1: cut}),
        "expected say=Say(…) of the agent's protocol: got 'react'",
    ),
    (lambda: Faults(MODEL, SAY, cut), f"{FAULTS} <function cut at"),
    (lambda: Faults(MODEL, SAY, ValueError), f"{FAULTS} <class 'ValueError'>; pass [ValueError]"),
    (lambda: Faults(MODEL, SAY, {cut}, rate=0.5), f"{FAULTS} {{<function cut"),
    (lambda: Faults(MODEL, SAY, (one for one in [cut]), rate=0.5), f"{FAULTS} <generator"),
    (lambda: Faults(MODEL, SAY, 3), f"{FAULTS} 3"),
    (
        lambda: Faults(MODEL, SAY, {1: lambda: "x"}),
        "expected a fault to take the reply and the Say",
    ),
    (
        lambda: Faults(MODEL, SAY, {1: hang}),
        "expected a fault to take the reply and the Say: got a",
    ),
    (
        lambda: Faults(MODEL, SAY, [cut], rate="0.5"),
        "expected a rate above 0 and up to 1: got '0.5'",
    ),
    (lambda: Faults(MODEL, SAY, [cut], rate=True), "expected a rate above 0 and up to 1: got True"),
    (lambda: Faults(MODEL, SAY, [cut], rate=NAN), "expected a rate above 0 and up to 1: got nan"),
    (
        lambda: Faults(MODEL, SAY, [cut], rate=0.5, seed=None),
        "expected seed=a whole number: got None",
    ),
    (
        lambda: Faults(MODEL, SAY, [cut], rate=0.5, seed=[1]),
        "expected seed=a whole number: got [1]",
    ),
    (
        lambda: Faults(MODEL, SAY, [cut], rate=0.5, seed=True),
        "expected seed=a whole number: got True",
    ),
    (lambda: hang("x"), "expected seconds to be a number of seconds above 0: got 'x'"),
    (lambda: Hang(0), "expected seconds to be a number of seconds above 0: got 0"),
    (
        lambda: RateLimited("x"),
        "expected retry_after to be a number of seconds from 0, or None for",
    ),
    (
        lambda: RateLimited(NAN),
        "expected retry_after to be a number of seconds from 0, or None for",
    ),
    (lambda: replies("react", [add], broken="no"), "expected broken=True or False: got 'no'"),
    # Scripts
    (lambda: ScriptedModel(3), "expected a list of replies: got 3; put it into a list"),
    (lambda: ScriptedModel(b"x"), "expected a list of replies: got b'x'"),
    (lambda: ScriptedModel({"a": 1}), "expected a list of replies: got {'a': 1}"),
    (lambda: ScriptedModel(ModelReply("x")), "expected a list of replies: got ModelReply("),
    (lambda: ScriptedModel(["x", 3]), f"{REPLY} reply: got 3"),
    (lambda: ScriptedModel([None]), f"{REPLY} reply: got None"),
    (lambda: ScriptedModel([b"x"]), f"{REPLY} reply: got b'x'"),
    (lambda: ScriptedModel([int]), f"{REPLY} reply: got <class 'int'>"),
    (lambda: ScriptedModel([["x", 3]]), f"{PIECE} 3"),
    (lambda: ScriptedModel([["x", ValueError]]), f"{PIECE} <class 'ValueError'>"),
    (lambda: ScriptedModel([lambda: "x"]), "expected a function of a script to take the messages"),
    (lambda: ScriptedModel([], chunk_size=True), "expected chunk_size to be a whole number from 1"),
    (lambda: ScriptedModel([], is_async="no"), "expected is_async=True or False: got 'no'"),
    (
        lambda: ScriptedModel([], context=0),
        "expected context to be a number of tokens from 1: got 0",
    ),
    (lambda: ScriptedModel([], parts=[[]]), "expected parts= as a tuple with some of 'audio'"),
    (lambda: FunctionModel(len, chunk_size="3"), "expected chunk_size to be a whole number from 1"),
    (lambda: list(FunctionModel(lambda _: iter([3]))([])), f"{PIECE} 3"),
    (lambda: ScriptedModel(["x"])("hello"), 'expected messages as a list of dicts with "role" and'),
    (
        lambda: FunctionModel(len)(None),
        'expected messages as a list of dicts with "role" and "content"',
    ),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=range(len(CALLS)))
def test_they_are_refused_at_once(call: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        call()


RECORDINGS: list[tuple[dict[str, Any], str]] = [
    ({"path": 3}, "expected path=a path: got 3"),
    ({"node": None}, "expected node to be text: got None"),
    ({"mode": "x"}, "expected mode='replay' or 'record' or 'rewrite': got 'x'"),
    ({"match": None}, "expected match='all' or 'conversation': got None"),
    ({"scrub": "a => b"}, "expected scrub as a list of texts: got 'a => b': pass ['a => b']"),
    ({"scrub": [3]}, "expected scrub as a list of texts: got [3]"),
    (
        {"scrub": [r"a => \9"]},
        r"expected a text for 'a' in callslip_scrub: got '\\9': invalid group",
    ),
    ({"redact": "key"}, "expected redact as a list of texts: got 'key'"),
]


@pytest.mark.parametrize(("options", "words"), RECORDINGS)
def test_of_a_recording(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    right = {"path": tmp_path / "x", "node": "test", "mode": "replay"}
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        Recording(**{**right, **options})


def test_a_recording_of_a_path_that_is_text(tmp_path: Path) -> None:
    recording = Recording(str(tmp_path / "x"), node="test", mode="record")  # type: ignore[arg-type]
    assert isinstance(recording.model(ScriptedModel([])), RecordedModel)


def test_what_is_right_stays_right() -> None:
    script = [
        "text",
        ModelReply("reply"),
        ["a", ModelChunk("b"), ValueError("c")],
        ModelChunk("chunk"),
        ValueError,
        lambda messages: "x",
    ]
    assert repr(ScriptedModel(iter(script))) == "ScriptedModel(0 of 6 replies given)"
    assert repr(ScriptedModel(tuple(script))) == "ScriptedModel(0 of 6 replies given)"
    assert [one.name for one in FaultyTools({}, [add])] == ["add"]
    faults = Faults(ScriptedModel(["text"]), Say("chatty"), (cut,), rate=1, seed=-3)
    assert faults([{"role": "user", "content": "x"}]) == ModelReply("te", "length")


def test_a_trace_is_not_written_out_in_an_error() -> None:
    trace = Agent(ScriptedModel(["x" * 500]), protocol="chatty").run_sync("go").run.trace()
    with pytest.raises(
        UsageError, match="^expected the name of a tool to be text: got Trace.{195}…$"
    ):
        SAY.call(trace)
