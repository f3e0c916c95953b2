"""A transcript that is longer than the model can read: the work is kept, and can go on."""

import asyncio
from types import SimpleNamespace as Obj

import pytest

from callslip import (
    Agent,
    ContextFull,
    FunctionModel,
    KeepLast,
    ModelError,
    Retrying,
    TicketStore,
    replay,
    tool,
)
from callslip.models._failures import is_context_full, is_refusal
from scripted import act, finish

WORDS = "This model's maximum context length is 900 tokens, however you requested 1000 tokens"


@tool
def step(n: int) -> str:
    """Take a step."""
    done.append(n)
    return f"step {n} " + "x" * 200


done = []


@pytest.fixture(autouse=True)
def _fresh():
    done.clear()


def bounded(messages):
    """A model that can read so much, and takes eight steps."""
    if sum(len(one["content"]) for one in messages[1:]) > 1_500:
        raise ValueError(WORDS)
    if "step 8 " in messages[-1]["content"]:
        return finish("there")
    return act("step", n=len(done) + 1)


def everything(exchanges):
    """A policy of the program, which nothing overrules."""
    return exchanges


def test_a_run_that_is_too_long_is_gone_on_with(path):
    with TicketStore(path) as store:
        agent = Agent(FunctionModel(bounded), tools=[step], store=store, history=everything)
        with pytest.raises(ContextFull) as caught:
            agent.run_sync("go")
        run = caught.value.run
        assert isinstance(caught.value, ModelError)
        assert str(caught.value) == (
            f"the model's context is full in turn {run.turns}: ValueError: {WORDS}; pass "
            f"history=KeepLast(…) to the agent and call resume({run.id!r}) to continue the run"
        )
        taken = len(done)
        assert [one.outcome for one in run.tickets] == ["ok"] * taken
        with pytest.raises(ContextFull):
            agent.resume_sync(run.id)
        shorter = Agent(FunctionModel(bounded), tools=[step], store=store, history=KeepLast(3))
        result = shorter.resume_sync(run.id)
    assert result.value == "there"
    # Nothing is done twice.
    assert done == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_run_that_is_not_kept_is_in_the_error():
    with pytest.raises(
        ContextFull, match=r"the run so far is the error's \.run; pass history=KeepLast"
    ) as caught:
        Agent(FunctionModel(bounded), tools=[step], history=everything).run_sync("go")
    assert len(caught.value.run.tickets) == len(done) > 2
    assert isinstance(caught.value.__cause__, ValueError)


def shortened(run):
    return [event for event in run.log if event.kind == "history_shortened"]


@pytest.mark.parametrize("driver", ["sync", "async", "wrapped", "streamed"])
def test_less_is_shown_once_the_model_has_refused_a_request(driver, store):
    refused = []

    def model(messages):
        try:
            return bounded(messages)
        except ValueError:
            refused.append(messages)
            raise

    wrapped = (
        Retrying(model)
        if driver == "wrapped"
        else FunctionModel(model, chunk_size=5 if driver == "streamed" else None)
    )
    agent = Agent(wrapped, tools=[step], store=store)
    result = agent.run_sync("go") if driver == "sync" else asyncio.run(agent.run("go"))
    assert result.value == "there"
    assert done == [1, 2, 3, 4, 5, 6, 7, 8]
    # The size of the context is known from the first refusal on.
    assert len(refused) == 1
    events = shortened(result.run)
    assert events[0].error == f"ValueError: {WORDS}"
    assert all(one.error is None for one in events[1:])
    kinds = [event.kind for event in result.run.log]
    assert kinds.count("model_replied") == result.run.turns
    assert replay(result.run.export()).messages == result.messages
    # What was left out once stays left out.
    cuts = [(one.exchanges, one.results) for one in events]
    assert cuts == sorted(cuts)
    assert len(set(cuts)) == len(cuts)


def test_a_request_is_made_twice_at_most():
    calls = []

    def model(messages):
        calls.append(len(messages))
        if len(done) == 4:
            raise ValueError(WORDS)
        return act("step", n=len(done) + 1)

    with pytest.raises(ContextFull) as caught:
        Agent(model, protocol="react", tools=[step]).run_sync("go")
    assert len(calls) == 6
    assert calls[-1] < calls[-2]
    assert len(shortened(caught.value.run)) == 1


def test_a_task_that_is_too_long_is_not_asked_again():
    calls = []

    def model(messages):
        calls.append(messages)
        raise ValueError(WORDS)

    with pytest.raises(ContextFull) as caught:
        Agent(model).run_sync("go")
    assert len(calls) == 1
    assert shortened(caught.value.run) == []


class Refused(Exception):  # noqa: N818
    def __init__(self, text="400", **fields):
        super().__init__(text)
        self.__dict__.update(fields)


class ContextWindowExceededError(Exception):
    pass


class Odd(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError("no words")


def wrapped():
    error = ModelError("the request failed")
    error.__cause__ = Refused("prompt is too long: 210000 tokens > 200000 maximum")
    return error


@pytest.mark.parametrize(
    "error",
    [
        Refused(code="context_length_exceeded"),
        Refused(type="exceed_context_size_error"),
        Refused(body={"error": {"type": "exceed_context_size_error", "n_ctx": 4096}}),
        Refused(body={"code": "context_length_exceeded"}),
        Refused("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        Refused("The input token count (2000001) exceeds the maximum number of tokens allowed"),
        Refused("Requested tokens (600) exceed context window of 512"),
        ContextWindowExceededError("too much"),
        ModelError("the prompt exceeds the available context size"),
        wrapped(),
    ],
)
def test_a_full_context_is_told_in_each_client_s_words(error):
    def model(messages):
        raise error

    with pytest.raises(ContextFull):
        Agent(model).run_sync("go")


@pytest.mark.parametrize(
    "error",
    [
        Refused("Invalid 'stop': string too long. Expected a string with maximum context length"),
        Refused("rate limit reached: 20000 tokens per minute", code="rate_limit_exceeded"),
        Refused(body=Obj(code=400)),
        RuntimeError("connection lost"),
        Odd(),
    ],
)
def test_other_failures_are_none_of_that(error):
    assert not is_context_full(error)
    assert not is_refusal(error)
