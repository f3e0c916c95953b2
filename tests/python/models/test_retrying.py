"""Models that fail, over the wire: attempts are made again, or not, and each is in the log."""

import asyncio
import itertools

import pytest

from callslip import (
    Agent,
    ContextFull,
    Fallback,
    Limits,
    ModelError,
    ModelRefused,
    Retrying,
    TicketStore,
    as_model,
    replay,
    tool,
)
from failing_server import failing_server
from optional import optional_module
from scripted import act, finish

anthropic = optional_module("anthropic")
openai = optional_module("openai")

PASSING = ["429", "500", "529", "hung up", "broken", "error inside", "empty"]
FINAL = {
    "400": ModelError,
    "401": ModelError,
    "quota": ModelError,
    "full": ContextFull,
    "refused": ModelRefused,
    "filtered midway": ModelRefused,
}


@pytest.fixture(scope="module")
def servers():
    with failing_server() as first, failing_server() as second:
        yield first, second


@pytest.fixture(params=list(itertools.product(("openai", "anthropic"), (False, True))), ids=str)
def wire(request):
    """Which client, and whether it is async."""
    return request.param


def client(server, wire):
    which, is_async = wire
    if which == "openai":
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        return kind(base_url=f"{server.base}/v1", api_key="k")
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    return kind(base_url=server.base, api_key="k")


def model_of(server, wire, *, stream):
    return as_model(client(server, wire), model=wire[0], stream=stream)


def run(model, *, is_async, **options):
    """A run that makes one call, and how often the call was made."""
    made = []

    @tool
    def step(n: int) -> int:
        """Take a step."""
        made.append(n)
        return n

    agent = Agent(model, tools=[step], **options)
    try:
        result = asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    except ModelError as error:
        return error, error.run, made
    return result, result.run, made


def failures(run):
    return [event for event in run.log if event.kind == "model_attempt_failed"]


def check_kept(run):
    """A log with attempts can be replayed."""
    assert replay(run.export()).messages == run.messages


@pytest.mark.timeout(120)
@pytest.mark.parametrize("stream", [False, True])
def test_failures_that_pass_are_retried_in_all_orders(servers, wire, stream):
    server = servers[0]
    server.asked.clear()
    model = Retrying(model_of(server, wire, stream=stream), backoff=0.001, tries=3)
    # Nothing can fail inside of a reply that is no stream.
    words = [word for word in PASSING if stream or word != "error inside"]
    pairs = list(itertools.permutations(words, 2))
    script = [[*pair, act("step", n=at)] for at, pair in enumerate(pairs)]
    server.script[:] = [*itertools.chain(*script), finish("there")]
    result, work, made = run(model, is_async=wire[1], limits=Limits(turns=None))
    assert (getattr(result, "value", result), made) == ("there", list(range(len(pairs))))
    # The client's own retries are off.
    assert (server.script, len(server.asked)) == ([], 3 * len(pairs) + 1)
    told = failures(work)
    assert {one.model for one in told} == {wire[0]}
    assert [one.turn for one in told] == [at // 2 + 1 for at in range(2 * len(pairs))]
    streamed = ("broken", "error inside")
    assert [one.dropped for one in told] == [
        stream and word in streamed for word in itertools.chain(*pairs)
    ]
    assert [event.kind for event in work.log][:5] == [
        "run_started",
        "model_asked",
        "model_attempt_failed",
        "model_attempt_failed",
        "model_replied",
    ]
    check_kept(work)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("word", FINAL)
def test_failures_that_do_not_pass_end_the_run(servers, wire, stream, word):
    server = servers[0]
    model = Retrying(model_of(server, wire, stream=stream), backoff=0.001)
    for before in ([], ["broken", "500"]):
        server.script[:] = [*before, word]
        error, work, made = run(model, is_async=wire[1])
        assert type(error) is FINAL[word], error
        assert (server.script, made) == ([], [])
        told = failures(work)
        assert len(told) == len(before) + 1
        assert [one.wait is None for one in told] == [False] * len(before) + [True]
        assert "sk-abc" not in work.export()
        check_kept(work)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("stream", [False, True])
def test_another_model_takes_over_after_any_failure(servers, wire, stream):
    first, second = servers
    model = Fallback(
        Retrying(model_of(first, wire, stream=stream), backoff=0.001, tries=2),
        model_of(second, ("anthropic", wire[1]), stream=stream),
        rest=0,
    )
    first.asked.clear(), second.asked.clear()
    pairs = list(itertools.product(["429", "broken", "empty"], ["500", *FINAL]))
    # Each turn begins with the first model again.
    first.script[:] = [*itertools.chain(*pairs), finish("first again")]
    second.script[:] = [act("step", n=at) for at in range(len(pairs))]
    result, work, made = run(model, is_async=wire[1], limits=Limits(turns=None))
    assert (getattr(result, "value", result), made) == ("first again", list(range(len(pairs))))
    assert (first.script, second.script) == ([], [])
    assert [one.model for one in failures(work)] == [wire[0]] * 2 * len(pairs)
    # They are asked the same.
    assert first.asked[:-1:2] == second.asked == first.asked[1::2]
    check_kept(work)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_does_not_come_is_given_up(servers, wire, stream):
    server = servers[0]
    model = Retrying(model_of(server, wire, stream=stream), timeout=1.5, backoff=0.001)
    server.script[:] = ["slow", finish("there")]
    result, work, _ = run(model, is_async=wire[1])
    assert result.value == "there"
    (told,) = failures(work)
    assert told.error == "TimeoutError: the model did not reply within 1.5 seconds"
    check_kept(work)


def test_a_server_says_how_long_to_wait(servers):
    server = servers[0]
    model = Retrying(model_of(server, ("openai", False), stream=True), max_wait=0.02, backoff=0.01)
    try:
        server.retry_after = "3600"
        server.script[:] = ["429", "hung up", finish("there")]
        waits = [one.wait for one in failures(run(model, is_async=False)[1])]
    finally:
        server.retry_after = "0"
    assert waits[0] == 0.02
    assert 0.01 <= waits[1] <= 0.02


def test_a_run_that_failed_is_resumed(servers, wire, tmp_path):
    is_async = wire[1]
    server = servers[0]
    with TicketStore(tmp_path / "runs.sqlite") as store:
        model = Retrying(model_of(server, wire, stream=True), tries=2, backoff=0.001)
        server.script[:] = [act("step", n=1), "broken", "500"]
        error, work, made = run(model, is_async=is_async, store=store)
        assert (type(error), made) == (ModelError, [1])
        server.script[:] = ["529", finish("there")]

        @tool
        def step(n: int) -> int:
            """Take a step."""
            made.append(n)
            return n

        agent = Agent(model, tools=[step], store=store)
        result = asyncio.run(agent.resume(work.id)) if is_async else agent.resume_sync(work.id)
        assert (result.value, made) == ("there", [1])
        assert [one.turn for one in failures(result.run)] == [2, 2, 2]
        check_kept(store.run(work.id))
        (row,) = store.runs()
        # The stream that broke had reported a part of its usage, if its client does.
        assert row.usage == result.usage
        store.compact(work.id)
        assert store.run(work.id).usage == result.usage
