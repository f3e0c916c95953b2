"""What a local model is sure of in a block of calls: one more call, and the first tool's name."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import Agent, ChattyProtocol, ReactProtocol, replay, tool
from callslip.events import ModelReplied, Violated
from callslip.models import Bounds, ModelChunk, ModelReply
from callslip.models._local_blocks import reply_pieces
from gbnf import Grammar as Gbnf
from random_cases import cases


@tool(readonly=True)
def weight(parts: list[str], note: str = "") -> str:
    """Weigh some parts."""
    return f"{len(parts)} parts {note}"


@tool
def ship(to: str) -> str:
    """Ship a parcel."""
    return f"shipped to {to}"


def grammar_of(*tools: Any) -> Any:
    """The grammar that a chatty model is given for its first reply."""
    given_: list[Any] = []

    def model(messages: object, *, grammar: Any = None) -> str:
        given_.append(grammar)
        return "done"

    Agent(model, protocol=ChattyProtocol(), tools=list(tools)).run_sync("go")
    return given_[0]


GRAMMAR = grammar_of(weight, ship)
HOSTILE = st.sampled_from(['"}}]', "]\n</tool>", "<tool>\n[", "}", "]", ",", "\\", "ä", ""])
TEXTS = st.one_of(st.text(max_size=8), HOSTILE)
CALLS = st.one_of(
    st.builds(lambda parts: ("weight", {"parts": parts}), st.lists(TEXTS, max_size=3)),
    st.builds(lambda to: ("ship", {"to": to}), TEXTS),
)


def written(call: tuple[str, Mapping[str, object]], number: int) -> str:
    """A call as the grammar has it."""
    name, arguments = call
    row = {"call_id": f"call_{number}", "tool_name": name, "arguments": arguments}
    return json.dumps(row, ensure_ascii=False)


@given(st.lists(CALLS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=cases(20))
def test_behind_each_whole_call_one_more_may_follow_and_nowhere_else(
    calls: list[tuple[str, Mapping[str, object]]],
) -> None:
    rows = [written(call, number) for number, call in enumerate(calls, 1)]
    reply = f"<tool>\n[{', '.join(rows)}]\n</tool>"
    ends = {len(f"<tool>\n[{', '.join(rows[:count])}") for count in range(1, len(rows) + 1)}
    for at in range(len(reply) + 1):
        further = GRAMMAR.further(reply[:at])
        assert (further is not None) == (at in ends), reply[:at]
        if further is None:
            continue
        follows = Gbnf(further)
        assert follows.admits(reply[at:]) == (at != max(ends)), reply[at:]
        more = ", " + written(("ship", {"to": "Oslo"}), reply[:at].count('"call_id"') + 1)
        if '"call_id"' not in "".join(str(call[1]) for call in calls):
            assert follows.admits(f"{more}]\n</tool>")


def test_the_bounds_of_a_model_hold_for_further_calls_too() -> None:
    seen: list[Any] = []

    class Model:
        bounds = Bounds(answer=50, string=20, items=2, thoughts=20)

        def __call__(self, messages: object, *, grammar: Any = None) -> str:
            seen.append(grammar)
            return "done"

    Agent(Model(), protocol=ChattyProtocol(), tools=[ship]).run_sync("go")
    one = "<tool>\n[" + written(("ship", {"to": "Oslo"}), 1)
    two = one + ", " + written(("ship", {"to": "Oslo"}), 2)
    assert seen[0].further(one) is None
    assert seen[0].further(two) is None


@given(st.lists(CALLS, min_size=1, max_size=3))
@settings(deadline=None, max_examples=cases(40))
def test_the_first_name_is_found_once_it_has_an_end(
    calls: list[tuple[str, Mapping[str, object]]],
) -> None:
    rows = [written(call, number) for number, call in enumerate(calls, 1)]
    reply = f"<tool>\n[{', '.join(rows)}]\n</tool>"
    start = reply.index('"tool_name": "') + len('"tool_name": "')
    end = start + len(calls[0][0])
    for at in range(len(reply) + 1):
        assert GRAMMAR.first_name(reply[:at]) == ((start, end) if at > end else None)


def test_other_protocols_have_no_blocks() -> None:
    seen: list[Any] = []

    def model(messages: object, *, grammar: Any = None) -> str:
        seen.append(grammar)
        return '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'

    Agent(model, protocol=ReactProtocol(), tools=[ship]).run_sync("go")
    assert not seen[0].has_blocks
    assert seen[0].further("<tool>\n[{}") is None
    assert seen[0].first_name('<tool>\n[{"tool_name": "ship"') is None
    assert GRAMMAR.has_blocks


class Writer:
    """A server that writes the replies in tokens, with what else it would have written."""

    def __init__(self, *replies: str, near: float, seed: int = 1) -> None:
        self.replies = list(replies)
        self.near = near
        self.bodies: list[Mapping[str, Any]] = []
        self.closed = 0
        self.random = random.Random(seed)

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        assert path == "/tokenize"
        assert body is not None
        return {"tokens": [ord(character) for character in body["content"]]}

    def stream(self, body: Mapping[str, Any]) -> Generator[dict[str, Any], None, None]:
        self.bodies.append(body)
        text = self.replies.pop(0)
        try:
            yield {"stop": False, "content": "", "prompt_progress": {"cache": 7}}
            count = 0
            while text:
                size = self.random.randint(1, 6)
                token, text = text[:size], text[size:]
                count += 1
                yield {
                    "stop": False,
                    "content": token,
                    "completion_probabilities": [self.of(token)],
                }
            yield {
                "stop": True,
                "content": "",
                "stop_type": "eos",
                "tokens_evaluated": 100 + (len(body["prompt"]) - 1 if len(self.bodies) > 1 else 0),
                "tokens_predicted": count,
                "timings": {"cache_n": 99},
            }
        finally:
            self.closed += 1

    def of(self, token: str) -> dict[str, Any]:
        likely = [{"token": token, "logprob": -0.25}]
        likely += [
            {"token": f"{token[: bracket.start()]},", "logprob": self.near - 0.25}
            for bracket in re.finditer("]", token)
        ]
        return {"token": token, "logprob": -0.25, "top_logprobs": likely}


BODY = {"prompt": "…", "n_predict": 500, "grammar": "root ::= "}
ONE = "<tool>\n[" + written(("weight", {"parts": ["a", "b]"]}), 1)
TWO = ", " + written(("ship", {"to": "Oslo"}), 2)
END = "]\n</tool>"


def text_of(pieces: Iterator[object]) -> tuple[str, list[float], Mapping[str, Any]]:
    text, sure, last = "", [], None
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        elif isinstance(piece, ModelChunk):
            assert piece.certainty is not None
            sure.append(piece.certainty)
        else:
            assert isinstance(piece, Mapping)
            last = piece
    assert last is not None
    return text, sure, last


@pytest.mark.parametrize("seed", range(12))
def test_a_block_goes_on_where_the_model_was_near_to_it(seed: int) -> None:
    server = Writer(ONE + END, TWO + END, near=-4.0, seed=seed)
    server.near = -4.0

    def near_once(token: str) -> dict[str, Any]:
        server.near = -4.0 if len(server.bodies) == 1 else -9.0
        return Writer.of(server, token)

    server.of = near_once  # type: ignore[method-assign]
    text, _, last = text_of(reply_pieces(server, BODY, GRAMMAR))
    assert text == ONE + TWO + END
    assert server.closed == len(server.bodies) == 2
    again = server.bodies[1]
    assert again["prompt"] == ["…", *map(ord, ONE)]
    assert again["grammar"] == GRAMMAR.further(ONE)
    assert again["n_predict"] == 500 - len(ONE)
    assert last["tokens_evaluated"] == 100
    assert last["timings"]["cache_n"] == 7
    assert last["tokens_predicted"] > len(ONE)


@pytest.mark.parametrize("seed", range(6))
def test_a_block_ends_where_the_model_was_sure_of_its_end(seed: int) -> None:
    server = Writer(ONE + END, near=-8.0, seed=seed)
    text, sure, last = text_of(reply_pieces(server, BODY, GRAMMAR))
    assert text == ONE + END
    assert len(server.bodies) == 1
    assert len(sure) == 1
    assert last["timings"]["cache_n"] == 7


def test_a_block_is_led_to_eight_calls_at_most() -> None:
    rows = [", " + written(("ship", {"to": "Oslo"}), number) for number in range(2, 30)]
    server = Writer(ONE + END, *[row + END for row in rows], near=-1.0)
    text, _, _ = text_of(reply_pieces(server, BODY, GRAMMAR))
    assert text == ONE + "".join(rows[:8]) + END


def test_plain_text_and_other_grammars_are_streamed_as_they_come() -> None:
    for grammar in (GRAMMAR, None):
        server = Writer("The [list] ends}] here.", near=0.0)
        text, sure, _ = text_of(reply_pieces(server, BODY, grammar))
        assert text == "The [list] ends}] here."
        assert sure == []
        assert ("n_probs" in server.bodies[0]) == (grammar is not None)


@given(st.integers(0, 10_000), st.floats(0.01, 2.0))
@settings(deadline=None, max_examples=cases(80))
def test_the_certainty_is_that_of_the_tokens_of_the_name(seed: int, log: float) -> None:
    server = Writer(ONE + END, near=-9.0, seed=seed)
    server.of = lambda token: {"token": token, "logprob": -log}  # type: ignore[method-assign]
    _, sure, _ = text_of(reply_pieces(server, BODY, GRAMMAR))
    start = ONE.index("weight")
    cuts, at, dice = [0], 0, random.Random(seed)
    while at < len(ONE + END):
        at += dice.randint(1, 6)
        cuts.append(at)
    tokens = sum(
        first < start + len("weight") and last > start for first, last in itertools.pairwise(cuts)
    )
    assert sure == [pytest.approx(math.exp(-log * tokens))]


class Unsure:
    """A model that is so sure of the first tool that it names, and answers after a refusal."""

    least_certainty = (0.5, 0.8)

    def __init__(self, certainty: float | None, *calls: str, streams: bool = True) -> None:
        self.certainty = certainty
        self.calls = list(calls)
        self.streams = streams

    def __call__(self, messages: object) -> object:
        text = self.calls.pop(0) if self.calls else "I did nothing."
        sure = self.certainty if text.startswith("<tool>") else None
        if not self.streams:
            return ModelReply(text, certainty=sure)
        half = len(text) // 2
        chunks = [ModelChunk(text[:half]), ModelChunk(certainty=sure), ModelChunk(text[half:])]
        return iter(chunks)


def block(*calls: tuple[str, Mapping[str, object]]) -> str:
    rows = [written(call, number) for number, call in enumerate(calls, 1)]
    return f"<tool>\n[{', '.join(rows)}]\n</tool>"


SHIP = ("ship", {"to": "Oslo"})
WEIGH = ("weight", {"parts": ["a"]})


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("calls", "certainty", "is_made"),
    [
        ([SHIP], 0.79, False),
        ([SHIP], 0.8, True),
        ([WEIGH], 0.49, False),
        ([WEIGH], 0.5, True),
        ([WEIGH, SHIP], 0.6, True),
        ([SHIP, WEIGH], 0.6, False),
        ([SHIP], None, True),
    ],
)
def test_a_tool_that_the_model_would_hardly_have_named_is_not_called(
    calls: list[Any], certainty: float | None, is_made: bool, streams: bool
) -> None:
    model = Unsure(certainty, block(*calls), streams=streams)
    result = Agent(model, protocol=ChattyProtocol(), tools=[weight, ship]).run_sync("go to Oslo a")
    assert bool(result.run.tickets) == is_made
    first = next(event for event in result.run.log if isinstance(event, ModelReplied))
    assert first.certainty == certainty
    refused = [event for event in result.run.log if isinstance(event, Violated)]
    assert [event.violation["code"] for event in refused] == ([] if is_made else ["unlikely_tool"])


def test_after_two_refusals_only_an_answer_may_come() -> None:
    model = Unsure(0.1, *[block(SHIP)] * 3)
    result = Agent(model, protocol=ChattyProtocol(), tools=[ship]).run_sync("go to Oslo")
    codes = [event.violation["code"] for event in result.run.log if isinstance(event, Violated)]
    assert codes == ["unlikely_tool", "unlikely_tool", "unstated_value"]
    assert result.value == "I did nothing."


def test_a_model_that_states_no_least_certainty_calls_what_it_likes() -> None:
    model = Unsure(0.01, block(SHIP))
    model.least_certainty = None  # type: ignore[assignment]
    result = Agent(model, protocol=ChattyProtocol(), tools=[ship]).run_sync("go to Oslo")
    assert [ticket.tool for ticket in result.run.tickets] == ["ship"]


def test_a_replay_has_the_same_certainty_and_the_same_refusal() -> None:
    run = (
        Agent(Unsure(0.1, block(SHIP)), protocol=ChattyProtocol(), tools=[ship]).run_sync("go").run
    )
    again = replay(run.export())
    assert [str(event) for event in again.log] == [str(event) for event in run.log]


@pytest.mark.parametrize("options", [{"examples": False}, {"first_move": "call"}])
def test_certainty_says_nothing_without_an_example_or_where_a_call_is_required(
    options: dict[str, Any],
) -> None:
    model = Unsure(0.01, block(SHIP))
    agent = Agent(model, protocol=ChattyProtocol(**options), tools=[ship])
    assert [ticket.tool for ticket in agent.run_sync("go to Oslo").tickets] == ["ship"]
