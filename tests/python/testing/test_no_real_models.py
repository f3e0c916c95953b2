"""Real models that a test must not call."""

import pytest

from callslip import (
    Agent,
    FunctionModel,
    LocalModel,
    ModelError,
    ScriptedModel,
    UsageError,
    as_model,
)
from callslip.models import Fallback, Retrying
from callslip.testing import Say, no_real_models

MESSAGES = [{"role": "user", "content": "How is Oslo?"}]
ANSWER = Say("chatty").finish("4 degrees")


class Client:
    """A client of OpenAI's form that counts its requests."""

    def __init__(self):
        self.calls = 0
        self.chat = self.completions = self

    def create(self, *, model, messages, **options):
        self.calls += 1
        return ANSWER


@pytest.fixture(autouse=True)
def allowed(monkeypatch):
    monkeypatch.delenv("CALLSLIP_NO_MODELS", raising=False)


def test_a_client_is_not_called():
    client = Client()
    model = as_model(client, model="gpt")
    with no_real_models():
        with pytest.raises(UsageError, match="under no_real_models: got one of OpenAIModel 'gpt'"):
            model(MESSAGES)
        with pytest.raises(ModelError) as caught:
            Agent(model, protocol="chatty").run_sync("How is Oslo?")
    assert client.calls == 0
    assert isinstance(caught.value.__cause__, UsageError)

    assert Agent(model, protocol="chatty").run_sync("How is Oslo?").value == "4 degrees"
    assert client.calls == 1


def test_no_other_attempt_follows():
    client = Client()
    model = Fallback(Retrying(as_model(client, model="gpt")), ScriptedModel([ANSWER]))
    with no_real_models(), pytest.raises(ModelError, match="expected no call of a real model"):
        Agent(model, protocol="chatty").run_sync("How is Oslo?")


def test_the_local_model_is_not_started():
    with no_real_models():
        model = LocalModel()
        with pytest.raises(UsageError, match="got one of LocalModel"):
            list(model(MESSAGES))
        with pytest.raises(UsageError, match="got one of LocalModel"):
            _ = model.base_url


def test_the_environment_forbids_real_models(monkeypatch):
    monkeypatch.setenv("CALLSLIP_NO_MODELS", "1")

    with pytest.raises(UsageError, match="under CALLSLIP_NO_MODELS=1"):
        as_model(Client(), model="gpt")(MESSAGES)


def test_models_of_tests_are_called():
    with no_real_models():
        for model in (ScriptedModel([ANSWER]), FunctionModel(lambda _: ANSWER), lambda _: ANSWER):
            assert Agent(model, protocol="chatty").run_sync("How is Oslo?").value == "4 degrees"


def test_the_outer_block_still_holds_after_an_inner_one():
    model = as_model(Client(), model="gpt")
    with no_real_models():
        with no_real_models():
            pass
        with pytest.raises(UsageError):
            model(MESSAGES)
    assert model(MESSAGES) == ANSWER
