"""Models of `Fallback` that rest after failures in a row."""

from __future__ import annotations

import threading

import pytest

from callslip import Agent, Fallback, ModelError, Retrying, as_model
from callslip.errors import ContextFull, ModelRefused, UsageError
from callslip.models import _rest
from failing_server import failing_server
from optional import optional_module
from scripted import finish


class Busy(Exception):  # noqa: N818
    status_code = 503
    headers: dict[str, str] = {}  # noqa: RUF012


class Scripted:
    """A model that does what `do` says, and counts."""

    def __init__(self, do=Busy, name="m"):
        self.do, self.asked, self.model = do, 0, name

    def __call__(self, messages):
        self.asked += 1
        if isinstance(self.do, str):
            return self.do
        raise self.do("out of order")


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1_000.0

    monkeypatch.setattr(_rest, "_now", lambda: Clock.now)
    monkeypatch.setattr(_rest.random, "uniform", lambda *_: 1.0)
    return Clock


def failures(run):
    return [event for event in run.log if event.kind == "model_attempt_failed"]


@pytest.mark.parametrize("tries", [1, 2, 4])
def test_a_dead_model_costs_its_tries_once(clock, tries):
    first, second = Scripted(name="first"), Scripted(finish("there"))
    agent = Agent(Fallback(Retrying(first, tries=tries, backoff=0), second))
    for _ in range(20):
        assert agent.run_sync("go").value == "there"
    assert first.asked == {1: 3, 2: 4, 4: 4}[tries]
    assert second.asked == 20
    told = failures(agent.run_sync("go").run)
    assert [(one.model, one.wait) for one in told] == [("first", 0.0)]
    assert told[0].error.endswith("failures: Busy: out of order")
    assert told[0].error.startswith("resting after ")


def test_after_a_rest_one_request_tries_the_model_and_rests_double(clock):
    first, second = Scripted(), Scripted(finish("there"))
    agent = Agent(Fallback(Retrying(first, tries=4, backoff=0), second, rest=30))
    agent.run_sync("go")
    assert first.asked == 4
    for rest in (30, 60, 120, 240, 480, 600, 600):
        clock.now += rest - 1
        agent.run_sync("go")
        known = first.asked
        clock.now += 2
        agent.run_sync("go")
        agent.run_sync("go")
        assert first.asked == known + 1
    first.do = finish("first again")
    clock.now += 601
    assert agent.run_sync("go").value == "first again"
    first.do = Busy
    agent.run_sync("go")
    # It counts from the beginning.
    clock.now += 31
    assert first.asked == known + 6


def test_a_server_says_how_long_it_rests(clock):
    class Later(Busy):
        headers = {"retry-after": "90"}  # noqa: RUF012

    first, second = Scripted(Later), Scripted(finish("there"))
    agent = Agent(Fallback(first, second, after=1))
    agent.run_sync("go")
    for seconds, asked in ((89, 1), (2, 2)):
        clock.now += seconds
        agent.run_sync("go")
        assert first.asked == asked


@pytest.mark.parametrize("kind", [ContextFull, ModelRefused])
def test_failures_of_the_request_do_not_count(clock, kind):
    first, second = Scripted(kind), Scripted(finish("there"))
    agent = Agent(Fallback(first, second, after=1))
    for _ in range(5):
        agent.run_sync("go")
    assert first.asked == 5


def test_if_all_rest_the_one_that_ends_first_is_asked(clock):
    first, second = Scripted(), Scripted()
    agent = Agent(Fallback(first, second, after=1))
    with pytest.raises(ModelError):
        agent.run_sync("go")
    first.do = finish("there")
    assert agent.run_sync("go").value == "there"
    assert (first.asked, second.asked) == (2, 1)


def test_without_rests_each_turn_begins_with_the_first_model(clock):
    first, second = Scripted(), Scripted(finish("there"))
    agent = Agent(Fallback(first, second, rest=0))
    for _ in range(5):
        agent.run_sync("go")
    assert first.asked == 5


def test_of_many_threads_one_tries_the_model(clock):
    rest = _rest.Rest(1, 30.0)
    rest.failed(Busy("x"), is_probe=False)
    clock.now += 31
    taken = []
    barrier = threading.Barrier(30)

    def take():
        barrier.wait()
        taken.append(rest.take())

    threads = [threading.Thread(target=take) for _ in range(30)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (taken.count(None), taken.count(False)) == (1, 29)
    rest.release()
    assert rest.take() is None


def test_called_directly_it_rests_too(clock):
    first, second = Scripted(), Scripted("Hi")
    model = Fallback(first, second, after=2)
    assert [model([]).text for _ in range(5)] == ["Hi"] * 5
    assert first.asked == 2


def test_a_request_that_is_given_up_says_nothing(clock):
    first, second = Scripted(), Scripted("Hi")
    model = Fallback(first, second, after=1)
    model([])
    clock.now += 31
    attempts = model._attempts(next(model._calls[0].attempts()))
    next(attempts)
    attempts.close()
    assert model._rests[0].take() is None


@pytest.mark.parametrize("library", ["openai", "anthropic"])
def test_the_retries_of_clients_are_off(clock, library):
    module = optional_module(library)
    with failing_server() as server:
        base = f"{server.base}/v1" if library == "openai" else server.base
        client = getattr(module, "OpenAI" if library == "openai" else "Anthropic")
        first = as_model(client(base_url=base, api_key="k"), model="m")
        server.script[:] = ["500"]
        model = Fallback(first, Scripted(finish("there")))
        assert Agent(model).run_sync("go").value == "there"
        assert len(server.asked) == 1


@pytest.mark.parametrize("options", [{"after": 0}, {"after": 1.5}, {"rest": -1}, {"rest": "x"}])
def test_wrong_options_are_told(options):
    with pytest.raises(UsageError):
        Fallback(Scripted(), **options)
