"""Replies with faults: how a run reads them, and that nothing of a refused one is executed."""

import asyncio
import pickle
from contextlib import closing

import pytest

from callslip import (
    Agent,
    LimitExceeded,
    Limits,
    ModelChunk,
    ModelError,
    ModelReply,
    ScriptedModel,
    UsageError,
    tool,
)
from callslip.models import NativeCall, Retrying
from callslip.models._envelope import envelope_of
from callslip.protocols import NativeProtocol, find_protocol
from callslip.testing import PROTOCOLS, Faults, Say, codes
from callslip.testing.faults import (
    RateLimited,
    cut,
    duplicate_key,
    empty,
    hang,
    invented_observation,
    missing_argument,
    never_stops,
    prose_around,
    two_moves,
    unknown_tool,
    wrong_type,
)
from scripted import patient

CODES = {
    cut: ("truncated",) * 4,
    # Calls side by side are one move of a native reply.
    two_moves: ("multiple_actions", "duplicate_call_id", "multiple_actions", None),
    unknown_tool: ("unknown_tool",) * 4,
    # Arguments that are text have one code, with the reason behind it.
    duplicate_key: ("duplicate_key",) * 3 + ("args_invalid",),
    missing_argument: ("missing_argument",) * 4,
    wrong_type: ("invalid_argument",) * 4,
    empty: ("empty",) * 4,
    never_stops: ("too_large",) * 4,
}
TABLE = [
    (fault, name, code)
    for fault, expected in CODES.items()
    for name, code in zip(PROTOCOLS, expected, strict=True)
    if code is not None
]


class Weather:
    """A tool that counts its calls, and an agent with it."""

    def __init__(self):
        self.cities = []

    @tool
    def weather(self, city: str) -> str:
        """Tell the weather."""
        self.cities.append(city)
        return "4 degrees"

    def agent(self, model, name, **options):
        return Agent(model, protocol=patient(name), tools=[self.weather], **options)


def script(say, calls=1, **options):
    replies = [say.call("weather", city="Oslo") for _ in range(calls)]
    return ScriptedModel([*replies, say.finish("4 degrees")], **options)


@pytest.mark.parametrize(("fault", "name", "code"), TABLE)
def test_a_refused_reply_is_not_executed(fault, name, code):
    say, app = Say(name), Weather()
    with Faults(script(say, 2), say, {1: fault}) as model:
        agent = app.agent(model, name, limits=Limits(reply_bytes=20_000))
        result = agent.run_sync("How is Oslo?")

    assert codes(result) == [code]
    assert [ticket.turn for ticket in result.tickets] == [2]
    assert app.cities == ["Oslo"]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("fault", [prose_around, invented_observation])
def test_text_around_a_call_is_dropped(fault, name):
    say, app = Say(name), Weather()
    with Faults(script(say), say, {1: fault}) as model:
        result = app.agent(model, name).run_sync("How is Oslo?")

    assert codes(result) == []
    first = result.trace().turns[0]
    if find_protocol(name).native.takes_calls:
        # Text beside calls is no departure: it is shown.
        assert first.narration
    else:
        assert sum(first.repairs.values()) >= 1
    assert [ticket.result for ticket in result.tickets] == ["4 degrees"]


def test_a_second_call_is_a_second_move_where_a_reply_has_one():
    protocol = NativeProtocol(parallel=False)
    say, app = Say(protocol), Weather()
    with Faults(script(say, 2), say, {1: two_moves}) as model:
        result = Agent(model, protocol=protocol, tools=[app.weather]).run_sync("How is Oslo?")

    assert codes(result) == ["multiple_actions"]
    assert app.cities == ["Oslo"]


def test_a_second_move_does_not_fit_where_calls_stand_side_by_side():
    say = Say("native")

    with pytest.raises(UsageError, match="may have several calls; use another fault"):
        two_moves(say.call("weather", city="Oslo"), say)


@pytest.mark.parametrize("options", [{}, {"chunk_size": 7}, {"is_async": True}])
def test_a_fault_of_ones_own_changes_the_lines_of_a_native_reply(options):
    say, app = Say("native"), Weather()

    def elsewhere(reply, _say):
        return reply.replace("Oslo", "Rome")

    with Faults(script(say, **options), say, {1: elsewhere}) as model:
        result = app.agent(model, "native").run_sync("How is Oslo?")

    assert app.cities == ["Rome"]
    assert result.value == "4 degrees"


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        (ModelReply("4 degrees\u2028here"), '{"text":"4 degrees'),
        (
            ModelReply("Look.", calls=[NativeCall("a", "weather", '{"city": "é\\"x"}')]),
            '{"text":"Look."}\n{"call":"a","tool":"weather","arguments":"{\\"city\\": \\"',
        ),
    ],
)
def test_a_native_reply_is_cut_in_its_last_item(reply, left):
    say = Say("native")
    with Faults(ScriptedModel([reply]), say, {1: cut}) as model:
        made = model([{"role": "user", "content": "How is Oslo?"}])

    assert made.finish_reason == "length"
    assert envelope_of(made).startswith(left)
    assert not envelope_of(made).endswith("}\n")


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_hangs_meets_the_time_limit(name, is_async):
    say, app = Say(name), Weather()
    with closing(Faults(script(say, is_async=is_async), say, {1: hang(60)})) as model:
        agent = app.agent(model, name, limits=Limits(seconds=0.05), on_limit="raise")
        with pytest.raises(LimitExceeded) as caught:
            agent.run_sync("How is Oslo?")

    assert caught.value.run.stop_reason == "limit"
    assert app.cities == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_short_wait_changes_nothing(name):
    say, app = Say(name), Weather()
    with Faults(script(say), say, {1: hang(0.001)}) as model:
        assert app.agent(model, name).run_sync("How is Oslo?").value == "4 degrees"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_rate_limit_ends_a_run_without_retries(name):
    say, app = Say(name), Weather()
    model = Faults(script(say), say, {2: RateLimited(retry_after=2)})
    with pytest.raises(ModelError) as caught:
        app.agent(model, name).run_sync("How is Oslo?")

    assert caught.value.__cause__.status_code == 429
    assert app.cities == ["Oslo"]


def test_a_rate_limit_is_followed_by_another_attempt():
    say, app = Say("react"), Weather()
    with Faults(script(say), say, {1: RateLimited(retry_after=0), 2: ConnectionError}) as model:
        agent = app.agent(Retrying(model, backoff=0), "react")
        result = agent.run_sync("How is Oslo?")

    first = result.trace().turns[0]
    assert [attempt.wait for attempt in first.attempts] == [0, 0]
    assert app.cities == ["Oslo"]


def test_a_rate_limit_can_be_pickled():
    error = pickle.loads(pickle.dumps(RateLimited(retry_after=3)))

    assert (error.headers, RateLimited().headers) == ({"retry-after": "3"}, {})


@pytest.mark.parametrize(
    "options", [{"chunk_size": 7}, {"is_async": True}, {"chunk_size": 7, "is_async": True}]
)
def test_streams_and_async_models_have_the_same_faults(options):
    say, app = Say("react"), Weather()
    with Faults(script(say, 2, **options), say, {1: two_moves}) as model:
        result = asyncio.run(app.agent(model, "react").run("How is Oslo?"))

    assert codes(result) == ["multiple_actions"]
    assert app.cities == ["Oslo"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_with_a_fault_keeps_the_usage_that_came_in_parts(is_async):
    say = Say("react")
    parts = [
        ModelChunk(say.finish("4 degrees"), usage={"input_tokens": 5}),
        ModelChunk(finish_reason="stop", usage={"output_tokens": 3}),
    ]

    def stream(messages):
        yield from parts

    async def stream_async(messages):
        for part in parts:
            yield part

    model = stream_async if is_async else stream
    with Faults(model, say, {1: prose_around}) as faults:
        usage = asyncio.run(Agent(faults, protocol="react").run("How is Oslo?")).usage

    assert (usage.input_tokens, usage.output_tokens) == (5, 3)


def test_faults_are_drawn_by_the_seed():
    def drawn(seed):
        say = Say("react")
        model = ScriptedModel([say.call("weather", city="Oslo")] * 40)
        faults = Faults(model, say, [cut, unknown_tool, hang(0.001)], rate=0.3, seed=seed)
        for _ in range(40):
            faults([{"role": "user", "content": "How is Oslo?"}])
        return faults.made

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert 4 <= len(drawn(1)) <= 20


def test_a_drawn_fault_is_one_that_the_reply_has_a_place_for():
    say = Say("chatty")
    model = ScriptedModel([say.finish("4 degrees")] * 8)
    with Faults(model, say, [unknown_tool, cut], rate=1) as faults:
        for _ in range(8):
            faults([{"role": "user", "content": "How is Oslo?"}])

    assert set(faults.made.values()) == {cut}


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize(
    "fault", [unknown_tool, duplicate_key, missing_argument, wrong_type, invented_observation]
)
def test_a_fault_without_a_place_in_the_reply_is_an_error(fault, name):
    say = Say(name)

    with pytest.raises(UsageError, match=f"for {fault.__name__}"):
        fault(say.finish("4 degrees"), say)


@pytest.mark.parametrize("fault", [duplicate_key, missing_argument, wrong_type])
def test_a_fault_of_arguments_needs_an_argument(fault):
    say = Say("react")

    with pytest.raises(UsageError, match="expected a call with arguments"):
        fault(say.call("now"), say)


@pytest.mark.parametrize("fault", [lambda reply, _say: reply, lambda reply, _: ModelReply(reply)])
def test_a_fault_that_changes_nothing_is_an_error(fault):
    say, app = Say("react"), Weather()
    faults = Faults(script(say), say, {1: fault})
    with pytest.raises(UsageError, match="to change the reply"):
        faults([{"role": "user", "content": "How is Oslo?"}])

    # A test may catch the errors of runs.
    with (
        pytest.raises(AssertionError, match="to change the reply"),
        Faults(script(say), say, {1: fault}) as model,
        pytest.raises(ModelError),
    ):
        app.agent(model, "react").run_sync("How is Oslo?")


def test_a_fault_that_was_not_reached_is_an_error():
    say, app = Say("react"), Weather()
    with (
        pytest.raises(AssertionError, match=r"in the calls \[3\]: got 2 calls"),
        Faults(script(say), say, {3: cut}) as model,
    ):
        app.agent(model, "react").run_sync("How is Oslo?")


def test_no_drawn_fault_at_all_is_an_error():
    say, app = Say("react"), Weather()
    with (
        pytest.raises(AssertionError, match="pass another seed"),
        Faults(script(say), say, [cut], rate=1e-9) as model,
    ):
        app.agent(model, "react").run_sync("How is Oslo?")


@pytest.mark.parametrize(
    ("faults", "options", "message"),
    [
        ({}, {}, "expected faults: got none"),
        ({0: cut}, {}, "expected the number of a call"),
        ({1: cut}, {"rate": 0.5}, "expected no rate"),
        ([cut], {}, "pass rate="),
        ([cut], {"rate": 2}, "above 0 and up to 1"),
        ({1: 60}, {}, "expected a function, a wait or an exception"),
        ({1: str}, {}, "expected a function, a wait or an exception"),
    ],
)
def test_wrong_options_are_refused(faults, options, message):
    with pytest.raises(UsageError, match=message):
        Faults(ScriptedModel([]), Say("react"), faults, **options)


@pytest.mark.parametrize("seconds", [0, -1, True, "1", float("inf")])
def test_a_wait_is_a_number_of_seconds(seconds):
    with pytest.raises(UsageError, match="^expected seconds to be a number of seconds above 0"):
        hang(seconds)
