"""Summaries in the place of the oldest exchanges."""

import asyncio
import pickle

import pytest

from callslip import (
    Agent,
    FunctionModel,
    KeepLast,
    LimitExceeded,
    Limits,
    ModelChunk,
    ModelReply,
    Priced,
    Retrying,
    ScriptedModel,
    Summarize,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from scripted import act, finish


@tool
def step(n: int) -> str:
    """Take a step."""
    return f"step {n} " + "x" * 292


class Steps:
    """A model that takes steps, and can fail at one of them."""

    def __init__(self, last, *, fails_at=None):
        self.last = last
        self.fails_at = fails_at
        self.requests = []
        self.taken = 0

    def __call__(self, messages):
        if self.taken + 1 == self.fails_at:
            self.fails_at = None
            raise ConnectionError("gone")
        self.requests.append([dict(one) for one in messages])
        self.taken += 1
        return act("step", n=self.taken) if self.taken <= self.last else finish("there")


USAGE = {"input_tokens": 100, "output_tokens": 10}


def numbered(usage=USAGE):
    """A model of summaries that numbers them."""

    def summarize(messages):
        count = len(summaries.requests)
        return ModelReply(f"summary {count}", usage=usage)

    summaries = FunctionModel(summarize)
    return summaries


def run(agent, driver="sync"):
    return agent.run_sync("go") if driver == "sync" else asyncio.run(agent.run("go"))


def shortened(run):
    return [event for event in run.log if event.kind == "history_shortened"]


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_the_oldest_exchanges_are_replaced_by_a_summary(driver, store):
    model, summaries = Steps(12), numbered()
    history = Summarize(summaries, after=600, keep=2)
    agent = Agent(model, protocol="react", tools=[step], history=history, store=store)
    result = run(agent, driver)
    assert result.value == "there"
    events = shortened(result.run)
    assert [one.summary for one in events] == [
        f"summary {number}" for number in range(1, len(events) + 1)
    ]
    assert len(events) >= 2
    # The first request has the task and the replies with their outcomes, but for the last two.
    system, request = summaries.requests[0].messages
    assert system["role"] == "system"
    left_out = events[0].exchanges
    assert "The task of the user:\ngo" in request["content"]
    for number in range(1, left_out + 1):
        assert f"step {number} xxx" in request["content"]
    assert f"step {left_out + 1} xxx" not in request["content"]
    # The next one has the summary so far, and what followed.
    request = summaries.requests[1].messages[1]["content"]
    assert "summary 1" in request
    assert f"step {left_out} xxx" not in request
    assert f"step {left_out + 1} xxx" in request
    # The model is shown the last summary, and two whole exchanges or more.
    last = model.requests[-1]
    opening = [one for one in last if "is a summary of them:]" in one["content"]]
    assert len(opening) == 1
    assert opening[0]["content"].endswith(f"summary of them:]\n{events[-1].summary}")
    assert "step 12 xxx" in last[-1]["content"]
    # It is paid for, and a replay pays nothing.
    assert result.usage.input_tokens == 100 * len(events)
    assert result.usage.output_tokens == 10 * len(events)
    asked = len(summaries.requests)
    again = replay(result.run.export())
    assert again.messages == result.messages
    assert again.usage == result.usage
    assert len(summaries.requests) == asked


def streamed(messages):
    yield "sum"
    yield ModelChunk("mary", usage=USAGE)


async def later(messages):
    await asyncio.sleep(0)
    return ModelReply("<think>hm</think>\nsummary", usage=USAGE)


async def streamed_later(messages):
    yield "summary"
    yield ModelChunk("", "stop", USAGE)


@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize(
    "summarizer",
    [streamed, later, streamed_later, Retrying(later), Priced(streamed, input=1, output=1)],
    ids=["streamed", "async", "async-streamed", "wrapped", "priced"],
)
def test_any_model_writes_summaries(summarizer, driver):
    history = Summarize(summarizer, after=600, keep=2)
    agent = Agent(Steps(6), protocol="react", tools=[step], history=history)
    result = run(agent, driver)
    events = shortened(result.run)
    assert [one.summary for one in events] == ["summary"] * len(events) != []
    assert result.usage.input_tokens == 100 * len(events)
    assert (result.usage.cost > 0) == isinstance(summarizer, Priced)


def test_a_resumed_run_has_its_summary_without_another_request(path):
    model, summaries = Steps(12, fails_at=9), numbered()
    history = Summarize(summaries, after=600, keep=2)
    with TicketStore(path) as store:
        agent = Agent(model, protocol="react", tools=[step], history=history, store=store)
        with pytest.raises(Exception, match="gone") as caught:
            agent.run_sync("go")
        asked = len(summaries.requests)
        assert asked >= 1
        run_id = caught.value.run.id
    with TicketStore(path) as store:
        agent = Agent(model, protocol="react", tools=[step], history=history, store=store)
        store.compact(run_id)
        result = agent.resume_sync(run_id)
        assert store.runs()[0].usage.input_tokens == result.usage.input_tokens
    assert f"summary of them:]\\nsummary {asked}" in str(model.requests[8])
    assert len(shortened(result.run)) == len(summaries.requests) - asked
    assert result.usage.input_tokens == 100 * len(summaries.requests)


EMPTY = (
    "no summary: ModelError: expected a summary: got an empty reply; pass another model to "
    "Summarize"
)


@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ConnectionError("refused"), "no summary: ConnectionError: refused"),
        (
            "",
            EMPTY,
        ),
        (
            "<think>hm</think> ",
            EMPTY,
        ),
    ],
)
def test_a_summary_that_fails_does_not_end_the_run(reply, words, driver):
    replies = ScriptedModel([reply, "the second"])
    model = Steps(8)
    agent = Agent(
        model,
        protocol="react",
        tools=[step],
        history=Summarize(replies, after=600, keep=2),
    )
    result = run(agent, driver)
    assert result.value == "there"
    first, second = shortened(result.run)[:2]
    assert first.error == words
    assert first.summary is None
    assert second.summary == "the second"
    shown = next(str(one) for one in model.requests if "left out here.]" in str(one))
    assert "step 1 xxx" not in shown


def test_the_usage_of_summaries_counts_towards_the_limits():
    summaries = numbered({"input_tokens": 5_000, "output_tokens": 10})

    def model(messages):
        return ModelReply(steps(messages), usage={"input_tokens": 10, "output_tokens": 1})

    steps = Steps(12)
    agent = Agent(
        model,
        protocol="react",
        tools=[step],
        history=Summarize(summaries, after=600, keep=2),
        limits=Limits(tokens=4_000),
        on_limit="raise",
    )
    with pytest.raises(LimitExceeded, match="tokens"):
        agent.run_sync("go")
    assert len(summaries.requests) == 1


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_a_time_limit_holds_while_a_summary_is_written(driver):
    given_up = []

    async def endless(messages):
        try:
            await asyncio.sleep(600)
        finally:
            given_up.append(len(messages))

    agent = Agent(
        Steps(12),
        protocol="react",
        tools=[step],
        history=Summarize(endless, after=600, keep=2),
        limits=Limits(seconds=1),
    )
    with pytest.raises(LimitExceeded, match="seconds") as caught:
        run(agent, driver)
    assert shortened(caught.value.run) == []
    # That of the turn, and that of the last turn.
    if driver == "async":
        assert given_up == [2, 2]


def test_a_known_context_is_a_bound_of_its_own():
    model, summaries = Steps(30), numbered()
    model.context = 2_400
    agent = Agent(model, protocol="react", tools=[step], history=Summarize(summaries, keep=2))
    result = agent.run_sync("go")
    assert result.value == "there"
    assert len(summaries.requests) >= 2
    for request in model.requests:
        assert sum(len(one["content"]) for one in request) // 3 < 2_400


def test_what_is_kept_is_not_summarized_in_every_turn():
    model, summaries = Steps(12), numbered()
    agent = Agent(
        model, protocol="react", tools=[step], history=Summarize(summaries, after=100, keep=4)
    )
    assert agent.run_sync("go").value == "there"
    assert len(summaries.requests) <= 6


def test_a_request_for_a_summary_fits_its_model():
    requests = []

    def small(messages):
        requests.append(messages)
        return "summary"

    small.context = 900
    agent = Agent(
        Steps(12), protocol="react", tools=[step], history=Summarize(small, after=1_200, keep=1)
    )
    assert agent.run_sync("go").value == "there"
    assert requests
    for messages in requests:
        assert sum(len(one["content"]) for one in messages) < 900 * 3
        assert "The task of the user:\ngo" in messages[1]["content"]


def test_another_policy_may_follow():
    model = Steps(12, fails_at=9)
    store = TicketStore()
    history = Summarize(numbered(), after=600, keep=2)
    agent = Agent(model, protocol="react", tools=[step], history=history, store=store)
    with pytest.raises(Exception, match="gone") as caught:
        agent.run_sync("go")
    run_id = caught.value.run.id
    for policy in (KeepLast(3), None):
        model.fails_at = model.taken + 2 if policy is not None else None
        agent = Agent(model, protocol="react", tools=[step], history=policy, store=store)
        if policy is not None:
            with pytest.raises(Exception, match="gone"):
                agent.resume_sync(run_id)
            assert "summary" not in str(model.requests[-1])
        else:
            assert agent.resume_sync(run_id).value == "there"
            assert "summary of them" in str(model.requests[-1])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Summarize(len, after=0),
            "expected Summarize(after=…) to be a whole number from 1: got 0",
        ),
        (
            lambda: Summarize(len, keep=0),
            "expected Summarize(keep=…) to be a whole number from 1: got 0",
        ),
        (
            lambda: Summarize(len, keep=True),
            "expected Summarize(keep=…) to be a whole number from 1: got True",
        ),
        (
            lambda: Summarize("gpt"),
            "expected a callable from messages to text as the model: got str: pass "
            "as_model('openai:gpt'), for example",
        ),
    ],
)
def test_options_are_checked(make, text):
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == text


def test_it_is_a_value():
    policy = Summarize(later, after=100)
    assert policy == Summarize(later, after=100)
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert "after=100, keep=4)" in repr(policy)
