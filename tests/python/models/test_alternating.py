"""Roles that alternate on the wire, for every service."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace as Obj

import pytest

from callslip import Agent, ModelError, TicketStore
from callslip.models import as_model
from callslip.models._turns import alternating
from model_services import services
from optional import optional_module

DONE = '{"thought": "", "action": "FINISH", "final_answer": "x", "task_successful": true}'
ROLES = ("user", "assistant", "system")


def clients(base):
    openai, anthropic = optional_module("openai"), optional_module("anthropic")
    mistral = optional_module("mistralai.client")
    cohere, ollama = optional_module("cohere"), optional_module("ollama")
    google = optional_module("google.genai")
    chat = openai.OpenAI(base_url=f"{base}/v1", api_key="k")
    return {
        "openai": chat,
        "responses": chat.responses.create,
        "anthropic": anthropic.Anthropic(base_url=base, api_key="k"),
        "mistral": mistral.Mistral(server_url=f"{base}/mistral", api_key="k"),
        "cohere": cohere.ClientV2(base_url=base, api_key="k"),
        "ollama": ollama.Client(host=base),
        "google": google.Client(api_key="k", http_options={"base_url": base}),
    }


@pytest.fixture(scope="module")
def server():
    with services() as server:
        yield server


@pytest.fixture(scope="module")
def known(server):
    return clients(server.base)


def check_turns(turns):
    """As the templates of Gemma and Mistral check them."""
    turns = turns[1:] if turns[0]["role"] in ("system", "developer") else turns
    for at, turn in enumerate(turns):
        assert turn["role"] == ("assistant", "user")[at % 2 == 0]
        assert json.dumps(turn.get("content") or turn.get("parts")).strip('"[] ')
    assert len(turns) % 2 == 1


def sent(body):
    turns = body.get("messages") or body.get("input") or body.get("contents")
    return [turn | ({"role": "assistant"} if turn["role"] == "model" else {}) for turn in turns]


def some_messages(draw, most=7):
    words = ("", " ", "one", "two", "three\n")
    picked = [
        {"role": draw.choice(ROLES), "content": draw.choice(words)}
        for _ in range(draw.randint(0, most))
    ]
    return [{"role": "system", "content": "be brief"}, *picked, {"role": "user", "content": "go"}]


def test_any_messages_alternate_and_none_of_their_words_is_lost():
    draw = random.Random(3)
    for _ in range(500):
        messages = some_messages(draw)
        turns = alternating(messages)
        check_turns(turns)
        said = "".join(turn["content"] for turn in turns)
        assert all(one["content"] in said for one in messages)


@pytest.mark.parametrize(
    "service", ["openai", "responses", "anthropic", "mistral", "cohere", "ollama", "google"]
)
def test_what_each_service_is_sent_alternates(server, known, service):
    draw = random.Random(5)
    model = as_model(known[service], model="m", stream=False)
    for _ in range(4):
        model(some_messages(draw))
        check_turns(sent(server.bodies[-1]))


def test_a_turn_that_failed_is_followed_by_the_next_message(server, known, tmp_path):
    with TicketStore(tmp_path / "runs.db") as store:
        model = as_model(known["openai"], model="m", stream=False)
        check_next_message(server, Agent(model, store=store))


def check_next_message(server, agent):
    server.status, server.text = 400, DONE
    with pytest.raises(ModelError) as caught:
        agent.run_sync("one")
    server.status = 200
    run = caught.value.run
    agent.run_sync("two", messages=[{"role": "assistant", "content": "Hi."}])
    check_turns(sent(server.bodies[-1]))
    agent.run_sync("three", messages=[{"role": "user", "content": "a"}])
    check_turns(sent(server.bodies[-1]))
    run.send("four")
    assert agent.resume_sync(run.id).value == "x"
    check_turns(sent(server.bodies[-1]))
    server.text = None


def test_functions_and_frameworks_too():
    bodies = []

    def completion(*, model, messages, **options):
        bodies.append(messages)
        return {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}

    class Chain:
        model_name = "m"

        def invoke(self, messages, **options):
            bodies.append(messages)
            return Obj(text="Hi")

        ainvoke = stream = astream = invoke

    draw = random.Random(9)
    for client, name in ((completion, "m"), (Chain(), None)):
        model = as_model(client, model=name, stream=False)
        for _ in range(20):
            model(some_messages(draw))
            check_turns(bodies[-1])
