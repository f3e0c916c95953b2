"""The names of models, and the times of their replies, in the log."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from callslip import (
    Agent,
    Fallback,
    LocalModel,
    ModelChunk,
    ModelError,
    ReactProtocol,
    Retrying,
    ScriptedModel,
    TicketStore,
    as_model,
    replay,
)
from callslip.errors import RunFailed
from callslip.events import ModelAsked, ModelReplied
from optional import optional_module
from scripted import act, finish

drivers = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Named(ScriptedModel):
    """A scripted model with a name and a provider."""

    def __init__(self, name: str, *replies: Any, provider: str = "openai", **options: Any) -> None:
        super().__init__(replies, **options)
        self.model, self.provider = name, provider


def look(id: int) -> int:  # noqa: A002
    """Look."""
    return id


def run(model: Any, *, is_async: bool, **options: Any) -> Any:
    agent = Agent(model, protocol=ReactProtocol(), tools=[look], **options)
    return asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")


def of_kind(run: Any, kind: type) -> list[Any]:
    return [event for event in run.log if isinstance(event, kind)]


def names(run: Any) -> list[tuple[str | None, str | None]]:
    """The models that were asked and those that replied, in the order of the log."""
    kinds = (ModelAsked, ModelReplied)
    return [(one.model, one.provider) for one in run.log if isinstance(one, kinds)]


@drivers
@pytest.mark.parametrize("chunk_size", [None, 5])
def test_the_log_names_the_model(is_async: bool, chunk_size: int | None) -> None:
    model = Named("small-1", act("look", id=1), finish(), is_async=is_async, chunk_size=chunk_size)
    made = run(model, is_async=is_async).run
    assert names(made) == [("small-1", "openai"), (None, None)] * 2
    assert replay(made.export()).messages == made.messages


@drivers
@pytest.mark.parametrize("wrap", [lambda model: model, Retrying], ids=["bare", "wrapped"])
def test_the_first_piece_of_a_stream_has_a_time(is_async: bool, wrap: Any) -> None:
    made = run(wrap(ScriptedModel([finish()], chunk_size=9)), is_async=is_async).run
    (asked,), (replied,) = of_kind(made, ModelAsked), of_kind(made, ModelReplied)
    assert asked.at <= replied.first_at <= replied.at
    assert replay(made.export()).log == made.log


@drivers
def test_reasoning_is_the_first_piece(is_async: bool) -> None:
    def model(messages: Any) -> Any:
        yield ModelChunk("")
        yield ModelChunk("", reasoning="Well.")
        yield ModelChunk(finish())

    made = run(model, is_async=is_async).run
    (replied,) = of_kind(made, ModelReplied)
    assert replied.first_at < replied.at


@drivers
def test_what_is_not_known_is_not_written(is_async: bool) -> None:
    made = run(lambda messages: finish(), is_async=is_async).run
    lines = [json.loads(line)["event"] for line in made.export().splitlines()]
    asked, replied = (
        next(line[kind] for line in lines if kind in line)
        for kind in ("model_asked", "model_replied")
    )
    assert asked == {"turn": 1}
    assert {"first_at", "model", "provider"}.isdisjoint(replied)


@drivers
@pytest.mark.parametrize("chunk_size", [None, 5])
def test_the_model_that_replied_for_another_is_named(
    is_async: bool, chunk_size: int | None
) -> None:
    first = Named("large-1", ModelError("busy"), act("look", id=1), ModelError("busy"))
    replies = (act("look", id=2), ModelError("busy"))
    second = Named("small-1", *replies, provider="anthropic", chunk_size=chunk_size)
    last = ScriptedModel([finish()], chunk_size=chunk_size)
    made = run(Fallback(Retrying(first, tries=1), second, last), is_async=is_async).run
    assert names(made) == [
        ("large-1", "openai"),
        ("small-1", "anthropic"),
        ("large-1", "openai"),
        (None, None),
        ("large-1", "openai"),
        ("ScriptedModel", None),
    ]
    assert replay(made.export()).log == made.log


def test_a_model_that_has_resumed_a_run_is_named(tmp_path: Any) -> None:
    with TicketStore(tmp_path / "runs.sqlite") as store:
        with pytest.raises(RunFailed) as failed:
            run(Named("large-1", ModelError("gone")), is_async=False, store=store)
        agent = Agent(
            Named("small-1", act("look", id=1), finish()),
            protocol=ReactProtocol(),
            tools=[look],
            store=store,
        )
        made = agent.resume_sync(failed.value.run.id).run
        # The question was written by the first agent, and answered for the second one.
        assert names(made) == [
            ("large-1", "openai"),
            ("small-1", "openai"),
            ("small-1", "openai"),
            (None, None),
        ]
        assert replay(made.export()).log == made.log
        store.compact(made.id)
        assert store.run(made.id).messages == made.messages


ADDRESSES = {
    "https://api.openai.com/v1": "openai",
    "https://x.openai.azure.com/openai/v1/": "azure.ai.openai",
    "https://api.groq.com/openai/v1": "groq",
    "https://api.mistral.ai/v1": "mistral_ai",
    "https://europe-west1-aiplatform.googleapis.com/v1": "gcp.vertex_ai",
    "https://bedrock-runtime.us-east-1.amazonaws.com": "aws.bedrock",
    "http://127.0.0.1:8000/v1": "openai",
    "https://api.openai.com.example.net/v1": "openai",
    "https://notapi.groq.com/v1": "openai",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_provider_of_an_address(address: str) -> None:
    openai = optional_module("openai")
    client = openai.OpenAI(base_url=address, api_key="k")
    assert as_model(client, model="m").provider == ADDRESSES[address]
    assert as_model(client.responses.create, model="m").provider == ADDRESSES[address]


def test_the_provider_of_other_clients() -> None:
    anthropic = optional_module("anthropic")
    client = anthropic.AsyncAnthropic(api_key="k")
    assert as_model(client, model="m").provider == "anthropic"
    assert Retrying(as_model(client, model="m"))._calls[0].known_name == ("m", "anthropic")

    def create(*, model: str, messages: Any, **options: Any) -> str:
        return "text"

    # The address of a function is not known.
    assert as_model(create, model="m").provider is None
    llama = SimpleNamespace(create_chat_completion=lambda messages: "text")
    assert as_model(llama).provider == "local"


def test_the_name_of_a_local_model() -> None:
    model = LocalModel("/models/qwen3-4b.q4_k_m.gguf")
    assert (model.model, model.provider) == ("qwen3-4b.q4_k_m", "local")
    assert LocalModel().model == "SmolLM2-135M-Instruct"
