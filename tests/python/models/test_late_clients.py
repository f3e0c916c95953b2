"""Clients that are made at the first request: an agent in a module exists without a key."""

import asyncio

import openai
import pytest

from callslip import Agent, ModelError, Retrying, ScriptedModel, UsageError, as_model
from callslip.models import ClientModel
from callslip.testing import no_real_models
from model_services import services
from scripted import finish


@pytest.fixture
def served(monkeypatch):
    with services() as found:
        found.text = finish("done")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.base}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        yield found


def test_a_name_needs_no_key_before_the_first_request(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = as_model("openai:gpt-5-mini", temperature=0)
    assert isinstance(model, ClientModel)
    assert (model.model, model.provider, model.is_async) == ("gpt-5-mini", "openai", True)
    agent = Agent(model)
    with agent.override(model=ScriptedModel([finish("tested")])):
        assert agent.run_sync("?").value == "tested"
    with pytest.raises(ModelError, match="the client of openai cannot be made: .*OPENAI_API_KEY"):
        agent.run_sync("?")


@pytest.mark.parametrize("wrapped", [False, True])
def test_runs_in_any_loop_and_without_one(served, wrapped):
    model = as_model("openai:gpt-5-mini")
    agent = Agent(Retrying(model) if wrapped else model)
    for _ in range(2):
        # Each has an event loop of its own, and the last one is closed by then.
        assert asyncio.run(agent.run("?")).value == "done"
        assert agent.run_sync("?").value == "done"
    assert {body["model"] for body in served.bodies} == {"gpt-5-mini"}


def test_a_factory_is_called_at_the_first_request_of_each_loop(served):
    made = []

    def client():
        made.append(1)
        return openai.OpenAI(max_retries=0)

    agent = Agent(as_model(client, model="m"))
    assert made == []
    assert agent.run_sync("?").value == agent.run_sync("?").value == "done"
    assert len(made) == 1


def test_a_factory_that_fails_says_so():
    def client():
        raise KeyError("SECRET_NAME")

    with pytest.raises(ModelError, match=r"expected .*client\(\) to make a client: got KeyError"):
        Agent(as_model(client, model="m")).run_sync("?")
    with pytest.raises(ModelError, match="expected the client of a known library"):
        Agent(as_model(lambda: "no client", model="m")).run_sync("?")


def test_no_client_is_made_where_no_model_may_be_called():
    made = []
    agent = Agent(as_model(lambda: made.append(1), model="m"))
    with no_real_models(), pytest.raises(ModelError, match="expected no call of a real model"):
        agent.run_sync("?")
    assert made == []


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("gpt-5-mini", {}, "expected a client, or one of 'openai:NAME', 'anthropic:NAME': got"),
        ("openai:", {}, "got 'openai:'; pass one of them"),
        ("nobody:m", {}, "got 'nobody:m'; pass one of them"),
        ("openai:m", {"model": "n"}, "expected no model= beside 'openai:m'"),
    ],
)
def test_names_that_are_none(name, options, said):
    with pytest.raises(UsageError, match=said):
        as_model(name, **options)


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setattr("callslip.models._late.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pass callslip\[openai\] to pip install"):
        as_model("openai:m")


def test_an_agent_without_a_model():
    agent = Agent(None)
    assert agent.model is None
    with agent.override(model=ScriptedModel([finish("tested")])):
        assert agent.run_sync("?").value == "tested"
    assert (
        agent.replace(model=ScriptedModel([finish("replaced")])).run_sync("?").value == "replaced"
    )
    with pytest.raises(ModelError, match=r"got None; pass one to Agent, or use agent.override"):
        agent.run_sync("?")
