"""Rates of a bounded model, and prices."""

import asyncio
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import (
    Agent,
    BoundedModel,
    Fallback,
    LimitExceeded,
    Limits,
    ModelReply,
    Priced,
    Retrying,
    ScriptedModel,
    UsageError,
    replay,
    tool,
)
from callslip._base import _lazy
from callslip.models._rates import Rates
from optional import optional_module
from random_cases import cases
from scripted import act, finish

USAGE = {"input_tokens": 1_000, "output_tokens": 100}


@settings(max_examples=cases(60))
@given(
    per_minute=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 30), min_size=1, max_size=150),
)
def test_no_minute_has_more_than_its_requests_and_those_saved_up(per_minute, pauses):
    rates, now, starts = Rates(per_minute, None), 0.0, []
    for pause in pauses:
        now += pause
        starts.append(now + rates.reserve(100, now).wait)
    assert starts == sorted(starts)
    for at, begin in enumerate(starts):
        within = sum(begin <= one < begin + 60 - 1e-6 for one in starts[at:])
        # One minute's amount that was saved up, and what comes in during this one.
        assert within <= 2 * per_minute + 1


def test_the_next_request_waits_until_its_share_is_there():
    rates = Rates(2, None)
    waits = [rates.reserve(1, 0.0).wait for _ in range(4)]
    assert waits == [0, 0, 30, 60]
    assert rates.reserve(1, 90.0).wait == 0


def test_tokens_are_estimated_and_settled():
    rates = Rates(None, 1_000)
    first = rates.reserve(4_000, 0.0)
    assert (first.wait, first.tokens) == (0, 1_000)
    # The reply has shown that a token has 8 characters.
    rates.settle(first, 500)
    second = rates.reserve(4_000, 0.0)
    assert (second.wait, second.tokens) == (0, 500)
    assert rates.reserve(4_000, 0.0).wait == 30
    # A request larger than a minute's amount is made all the same.
    assert Rates(None, 10).reserve(400, 0.0).wait == 540


def test_what_is_given_back_can_be_taken():
    rates = Rates(1, 100)
    rates.give_back(rates.reserve(400, 0.0))
    assert rates.reserve(400, 0.0).wait == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_run_waits_for_its_rate(is_async):
    @tool
    def step(n: int) -> int:
        """Take a step."""
        return n

    model = BoundedModel(ScriptedModel([act("step", n=1)]), per_minute=1)
    agent = Agent(model, tools=[step], limits=Limits(seconds=0.5), on_limit="raise")
    with pytest.raises(LimitExceeded) as caught:
        asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    assert (caught.value.limit, len(caught.value.run.tickets)) == ("seconds", 1)
    # The request that was not made is not counted: the next one waits no longer.
    assert model._rates.reserve(1).wait <= 60


def test_threads_and_loops_share_one_rate():
    inner = [finish(str(at)) for at in range(20)]
    model = BoundedModel(ScriptedModel(inner), concurrency=3, per_minute=6_000)
    agent = Agent(model)

    async def many():
        await asyncio.gather(*(agent.run("go") for _ in range(10)))

    threads = [threading.Thread(target=agent.run_sync, args=("go",)) for _ in range(10)]
    for thread in threads:
        thread.start()
    asyncio.run(many())
    for thread in threads:
        thread.join(60)
    assert len(model._leaves()[0].model.requests) == 20


@pytest.mark.parametrize("chunk_size", [None, 5])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("limit", ["cost", "tokens"])
def test_a_limit_that_nothing_counts_ends_the_run(limit, is_async, chunk_size):
    made = []

    @tool
    def step(n: int) -> int:
        """Take a step."""
        made.append(n)
        return n

    # Tokens without a price count for nothing either.
    usage = USAGE if limit == "cost" else None
    replies = [ModelReply(act("step", n=1), usage=usage), finish("too late")]
    model = ScriptedModel(replies, chunk_size=chunk_size)
    agent = Agent(model, tools=[step], limits=Limits(**{limit: 0.000001 if usage else 1}))
    with pytest.raises(LimitExceeded) as caught:
        asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    told = {
        "cost": (
            "expected the model client to report the cost of its replies, for Limits(cost=…): got "
            "none; wrap the model in Priced(model, input=…, output=…), or use Limits(tokens=…)"
        ),
        "tokens": (
            "expected the model client to report the usage of its replies, for Limits(tokens=…): "
            "got none; let the client report token counts, or use another limit"
        ),
    }
    assert (str(caught.value), caught.value.limit) == (told[limit], limit)
    run = caught.value.run
    assert (made, run.turns, run.stop_reason) == ([], 1, "limit")
    assert replay(run.export()).messages == run.messages


def test_a_child_that_nothing_counts_ends_too():
    child = Agent(ScriptedModel([finish("free")]), name="child")
    priced = Priced(
        ScriptedModel(
            [
                ModelReply(act("child", task="x"), usage=USAGE),
                ModelReply(finish("told"), usage=USAGE),
            ]
        ),
        input=1.0,
        output=1.0,
    )
    agent = Agent(priced, tools=[child.as_tool(description="A child.")], limits=Limits(cost=1.0))
    result = agent.run_sync("go")
    (ticket,) = result.tickets
    assert ticket.outcome == "error"
    assert "Priced(model" in ticket.error
    (below,) = result.run.children
    assert replay(below.export()).messages == below.messages


@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_that_costs_nothing_is_counted(is_async):
    free = Priced(ScriptedModel([ModelReply(finish("free"), usage=USAGE)]), input=0, output=0)
    agent = Agent(free, limits=Limits(cost=1.0))
    result = asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    assert (result.value, result.usage.cost) == ("free", 0.0)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_limited_is_counted_though_the_model_goes_on(is_async):
    pieces = [finish("there"), " and", " on", " and on", ModelReply("", "stop", USAGE)]
    model = Priced(ScriptedModel([pieces]), input=1.0, output=10.0)
    agent = Agent(model, limits=Limits(cost=1.0))
    result = asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")
    assert (result.value, result.usage.cost) == ("there", pytest.approx(0.002))


class Price:
    """Stands for genai-prices."""

    def __init__(self):
        self.Usage = SimpleNamespace

    def calc_price(self, usage, *, model_ref):
        if model_ref != "known":
            raise LookupError(model_ref)
        fresh = usage.input_tokens - usage.cache_read_tokens
        cost = fresh * 1.0 + usage.cache_read_tokens * 0.1 + usage.output_tokens * 10.0
        return SimpleNamespace(total_price=cost / 1_000_000)


class Named:
    def __init__(self, model):
        self.model = model

    def __call__(self, messages):
        return ModelReply(finish("there"), "stop", {**USAGE, "cached_tokens": 500})


def test_known_prices_are_those_of_the_package(monkeypatch):
    monkeypatch.setitem(vars(_lazy), "genai_prices", Price())
    model = Priced(Retrying(Fallback(Named("known"))))
    assert Agent(model).run_sync("go").usage.cost == pytest.approx(0.00155)
    with pytest.raises(UsageError, match=r"known prices: got 'odd'; pass its prices, Priced\("):
        Priced(Fallback(Named("known"), Named("odd")))


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.delitem(vars(_lazy), "genai_prices", raising=False)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(UsageError, match=r'pip install "callslip\[prices\]"'):
        Priced(Named("known"))


def test_the_package_itself_knows_models():
    optional_module("genai_prices")
    model = Priced(Named("gpt-5-mini"))
    assert 0 < Agent(model).run_sync("go").usage.cost < 0.01
    with pytest.raises(UsageError, match="got 'no-such-model-9'"):
        Priced(Named("no-such-model-9"))
