"""Results that are too long for a message: read in parts, in every protocol."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import (
    Agent,
    FunctionModel,
    Limits,
    ScriptedModel,
    TicketStore,
    ToolError,
    replay,
    tool,
)
from callslip.protocols import TicketProtocol
from scripted import act, block, call, finish, give, load, native, output, results_of, turn_of

PROTOCOLS = ["ticket", "react", "chatty", "native"]
MARK = re.compile(
    r"\n\[(?:cut: (\d+) of (\d+) bytes are shown; |"
    r"(?:cut: )?bytes (\d+) to (\d+) of (\d+) are shown)[^\]]*\]"
)
LONG = "".join(f"{number:05d} é🎉日 " for number in range(6_000))
assert len(LONG.encode()) > 90_000


@tool
def dump() -> str:
    """Give everything."""
    return LONG


@tool
def short() -> str:
    """Give a little."""
    return "little"


def first(protocol, name="dump"):
    """The reply that calls a tool."""
    return {
        "ticket": call(f"/{name}"),
        "react": act(name),
        "chatty": block(("c0", name, {})),
        "native": native(("c0", name, {})),
    }[protocol]


def part(protocol, offset, ticket="T1", *, number=1):
    """The reply that reads a part of a result."""
    arguments = {"ticket": ticket, "offset": offset}
    if protocol == "ticket":
        return output(type="LOAD_TICKET", ticket_id=ticket, offset=offset)
    if protocol == "react":
        return json.dumps({"thought": "t", "action": "read_result", "args": arguments})
    one = (f"r{number}", "read_result", arguments)
    return block(one) if protocol == "chatty" else native(one)


def answer(protocol, text):
    return {"ticket": give(text), "react": finish(text)}.get(protocol, text)


def shown(protocol, message):
    """What a message shows of a result, with its mark."""
    text = message["content"]
    if protocol == "ticket":
        found = re.search(r"Result of ticket T1:\n(.*)", text)
        return json.loads(found[1]) if found is not None and found[1][0] == '"' else ""
    if protocol == "react":
        return text.removeprefix("Observation: ")
    if protocol == "chatty":
        return next(iter(results_of(message).values()), "")
    return next((one["content"] for one in message["items"] if "result" in one), "")


class Reader:
    """A model that calls `dump`, reads its result to the end, and then answers.

    Args:
        protocol: How it writes.
        stops: The turn in which it fails; `None` for none.
    """

    def __init__(self, protocol, *, stops=None):
        self.protocol = protocol
        self.stops = stops
        self.parts = {}
        self.sizes = []
        self.turns = 0

    def __call__(self, messages):
        self.turns += 1
        if self.turns == self.stops:
            self.stops = None
            raise ConnectionError("gone")
        last = messages[-1]
        if turn_of(messages) == 0 and not self.parts:
            return first(self.protocol)
        text = shown(self.protocol, last)
        found = MARK.search(text)
        if found is None:
            return load("T1") if self.protocol == "ticket" else answer(self.protocol, "nothing")
        upto, whole, start, end, _ = found.groups()
        start, end = int(start or 0), int(end or upto)
        before = text[: found.start()]
        assert len(before.encode()) == end - start
        self.parts[start] = before
        self.sizes.append(end - start)
        if end == int(whole or found[5]):
            return answer(self.protocol, "read")
        assert str(end) in found[0].partition(";")[2]
        return part(self.protocol, end, number=len(self.parts))

    def whole(self):
        text = "".join(text for _, text in sorted(self.parts.items()))
        return json.loads(text) if self.protocol == "ticket" else text


def named(protocol):
    return TicketProtocol(grace=60, examples=False) if protocol == "ticket" else protocol


def agent_of(model, protocol, *, tools=(dump,), turns=600, **options):
    limits = options.pop("limits", Limits(turns=turns, max_repeats=9))
    return Agent(model, protocol=named(protocol), tools=list(tools), limits=limits, **options)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_result_is_read_to_its_end(protocol):
    reader = Reader(protocol)
    result = agent_of(FunctionModel(reader), protocol).run_sync("go: dump")
    assert result.value == "read"
    assert reader.whole() == LONG
    assert reader.sizes[0] in range(32 * 1024 - 3, 32 * 1024 + 1)
    assert len(reader.sizes) in (3, 4)
    # The log has the result once.
    assert len(result.run.export()) < 1.2 * len(json.dumps(LONG))
    assert replay(result.run.export()).messages == result.messages
    assert [one.status for one in result.tickets] == ["COMPLETED"] * len(result.tickets)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_parts_put_together_are_the_result(protocol, data):
    letters = st.sampled_from(["a", "é", "日", "🎉", '"', "\\", "]", " "])
    text = data.draw(st.text(letters, min_size=60, max_size=200))
    size = data.draw(st.integers(3, 60))

    @tool(name="dump")
    def own() -> str:
        """Give everything."""
        return "x" + text + "x" * 60

    reader = Reader(protocol)
    limits = Limits(turns=600, result_bytes=size, max_repeats=9)
    agent_of(FunctionModel(reader), protocol, tools=[own], limits=limits).run_sync("go: dump")
    assert reader.whole() == "x" + text + "x" * 60
    assert max(reader.sizes) <= max(size, 4)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compacts", [False, True])
def test_a_resumed_run_reads_on(protocol, compacts, tmp_path):
    reader = Reader(protocol, stops=4)
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = agent_of(FunctionModel(reader), protocol, store=store)
        with pytest.raises(Exception, match="gone") as caught:
            agent.run_sync("go: dump")
        if compacts:
            store.compact(caught.value.run.id)
        result = agent.resume_sync(caught.value.run.id)
    assert result.value == "read"
    assert reader.whole() == LONG


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("known", [True, False])
def test_a_result_longer_than_the_context_is_cut_to_what_fits(protocol, known):
    reader = Reader(protocol)
    most, refused = 3_000, []

    def tokens(text):
        return len(text.encode()) // 2

    def ask(messages):
        if sum(tokens(one["content"]) + 6 for one in messages) > most:
            refused.append(len(messages))
            raise ValueError("This model's maximum context length is 3000 tokens")
        return reader(messages)

    model = FunctionModel(ask, context=most if known else None)
    if known:
        model.count_tokens = tokens
    result = agent_of(model, protocol).run_sync("go: dump")
    assert result.value == "read"
    assert reader.whole() == LONG
    assert len(refused) <= (0 if known else 5)
    assert max(reader.sizes[1:]) < 6_000
    assert replay(result.run.export()).messages == result.messages


def test_what_was_just_loaded_is_never_left_out():
    reader = Reader("ticket")

    def ask(messages):
        assert "left out here" not in messages[-1]["content"]
        return reader(messages)

    agent_of(FunctionModel(ask, context=2_400), "ticket").run_sync("go: dump")
    assert reader.whole() == LONG


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (10**6, "expected an 'offset' below"),
        (10**30, "expected an 'offset' below"),
        (-1, None),
        (1.5, None),
        (True, None),
        ([1], None),
        ("x", None),
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hostile_offset_is_refused(protocol, offset, words):
    replies = [first(protocol), *([load("T1")] if protocol == "ticket" else [])]
    model = ScriptedModel([*replies, part(protocol, offset), answer(protocol, "over")])
    result = agent_of(model, protocol).run_sync("go")
    (violation,) = [event.violation for event in result.run.log if event.kind == "violated"]
    assert "offset" in violation["message"]
    assert (words or "offset") in violation["message"]


@pytest.mark.parametrize(
    ("ticket", "words"),
    [
        ("T9", "expected the ticket of a result of this run: got 'T9'"),
        ("", "expected the ticket of a result of this run: got ''"),
        ("T2", "expected the ticket of a whole result: T2 shows a part of T1"),
    ],
)
@pytest.mark.parametrize("protocol", ["react", "chatty", "native"])
def test_only_results_are_read(protocol, ticket, words):
    replies = [first(protocol), part(protocol, 5), part(protocol, 5, ticket, number=2)]
    result = agent_of(ScriptedModel([*replies, answer(protocol, "over")]), protocol).run_sync("go")
    (violation,) = [event.violation for event in result.run.log if event.kind == "violated"]
    assert violation["message"] == words


@pytest.mark.parametrize("protocol", ["react", "chatty", "native"])
def test_read_result_is_there_once_a_result_was_cut(protocol):
    replies = [first(protocol, "short"), part(protocol, 0), answer(protocol, "over")]
    model = ScriptedModel(replies)
    result = agent_of(model, protocol, tools=[dump, short]).run_sync("go")
    (violation,) = [event.violation for event in result.run.log if event.kind == "violated"]
    assert violation["code"] == "unknown_tool"
    assert "read_result" not in str(model.requests[-2].messages)


def offered(model):
    return [[form.name for form in request.options["tools"]] for request in model.requests]


def test_native_requests_offer_it_from_then_on():
    replies = [first("native", "short"), first("native"), part("native", 9), "over"]
    model = ScriptedModel(replies)
    agent_of(model, "native", tools=[dump, short]).run_sync("go")
    own, more = ["dump", "short"], ["dump", "short", "read_result"]
    assert offered(model) == [own, own, more, more]


def test_no_tool_of_the_program_has_its_name():
    @tool
    def read_result(ticket: str) -> str:
        """Read mine."""
        return ticket

    with pytest.raises(ToolError, match="'read_result' is one of the runtime's own"):
        Agent(ScriptedModel([]), tools=[read_result])


@pytest.mark.parametrize("protocol", ["react", "chatty", "native"])
def test_a_part_is_no_origin_and_stays_untrusted(protocol):
    @tool(untrusted=True, name="dump")
    def page() -> str:
        """Read a page."""
        return LONG

    model = ScriptedModel([first(protocol), part(protocol, 9), answer(protocol, "over")])
    result = agent_of(model, protocol, tools=[page]).run_sync("go")
    assert [one.untrusted for one in result.tickets] == [True, True]
    assert result.tickets[1].result == {"ticket": "T1", "offset": 9}


def test_a_reference_to_a_part_is_its_text():
    seen = []

    @tool
    def keep(text: str) -> str:
        """Keep a text."""
        seen.append(text)
        return "kept"

    replies = [
        first("chatty"),
        block(
            ("r1", "read_result", {"ticket": "T1", "offset": 10}), ("k", "keep", {"text": "$r1"})
        ),
        "over",
    ]
    limits = Limits(result_bytes=300)
    agent_of(ScriptedModel(replies), "chatty", tools=[dump, keep], limits=limits).run_sync("go")
    (text,) = seen
    assert text in LONG
    assert 290 < len(text.encode()) <= 300


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_in_the_last_turn_nothing_more_is_offered(protocol):
    replies = [first(protocol), answer(protocol, "over")]
    model = ScriptedModel(replies)
    result = agent_of(model, protocol, turns=1).run_sync("go")
    text = result.messages[-2]["content"]
    assert "ticket T1 keeps the whole result" in text
    assert "read_result" not in text
    assert "with the offset" not in text


@pytest.mark.parametrize("protocol", ["ticket", "react", "chatty"])
def test_the_grammar_admits_parts_once_a_result_was_cut(protocol):
    grammars = []

    def ask(messages, *, grammar):
        grammars.append(grammar.lark)
        return next(replies)

    word = '\\"offset\\"'
    loads = [load("T2")] if protocol == "ticket" else []
    replies = iter([first(protocol, "short"), first(protocol), *loads, answer(protocol, "over")])
    model = FunctionModel(ask)
    agent_of(model, protocol, tools=[dump, short]).run_sync("go")
    assert [word in one for one in grammars][:-1] == [False] * (len(grammars) - 1)
    assert word in grammars[-1]
    assert "T2" in grammars[-1]
