"""One conversation over several services: each admits what the others have left."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from callslip import Agent, Fallback, Limits, TicketStore, as_model, tool
from optional import optional_module
from services.anthropic import AnthropicService
from services.chat import chat_service
from services.gemini import Reply as GeminiReply
from services.gemini import gemini
from services.loopback import running
from services.responses import ResponsesService

anthropic = optional_module("anthropic")
genai = optional_module("google.genai")
openai = optional_module("openai")

PAID: list[float] = []
PAYING = threading.Lock()
OSLO = '{"city": "Oslo"}'


@tool(repeatable=True)
def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"4 degrees in {city}"


@tool(needs_approval=True, repeatable=True)
def pay(amount: float) -> str:
    """Pay an amount."""
    with PAYING:
        PAID.append(amount)
    return "paid"


TOOLS = [weather, pay]
# Two calls with one id, a call that is refused, a call that awaits approval, and an answer.
REPLIES = [
    [("think", "Both?"), ("text", "I look."), *[("call", "a", "weather", OSLO)] * 2],
    [("think", "Pay."), ("call", "b", "pay", '{"amount": NaN}'), ("call", "c", "weather", OSLO)],
    [("think", "Again."), ("call", "a", "pay", '{"amount": 5}')],
    [("text", "Done.")],
]


def _of_gemini(reply):
    parts = []
    for kind, *rest in reply:
        if kind == "text":
            parts.append({"text": rest[0]})
        elif kind == "think":
            parts.append({"text": rest[0], "thought": True})
        else:
            _, name, text = rest
            amount = {"amount": "much" if "NaN" in text else 5.0}
            arguments = amount if name == "pay" else {"city": "Oslo"}
            call = {"functionCall": {"name": name, "args": arguments}}
            # Gemini signs the first call of a step.
            is_first = not any("functionCall" in one for one in parts)
            parts.append(call | ({"sign": True} if is_first else {}))
    return GeminiReply(parts)


class Services:
    """All services, with a model for each."""

    def __init__(self, stack):
        enter = stack.enter_context
        self.chat = enter(chat_service())
        self.anthropic = enter(running(AnthropicService()))
        self.responses = enter(running(ResponsesService()))
        self.gemini = enter(gemini())
        own = {"api_key": "k", "max_retries": 0}
        chat = enter(openai.OpenAI(base_url=self.chat.base, **own))
        responses = enter(openai.OpenAI(base_url=self.responses.base, **own))
        messages = enter(anthropic.Anthropic(base_url=self.anthropic.base, **own))
        options = genai.types.HttpOptions(base_url=self.gemini.base)
        google = genai.Client(api_key="k", http_options=options)
        thinking = {"type": "enabled", "budget_tokens": 1024}
        self.models = {
            "chat": as_model(chat.chat.completions.create, model="m"),
            "anthropic": as_model(messages, model="m", thinking=thinking, max_tokens=2048),
            "responses": as_model(responses.responses.create, model="m"),
            "gemini": as_model(google, model="m"),
        }

    def begin(self, name, replies):
        """Have one service reply by a script. What it has issued it still knows."""
        service = getattr(self, name)
        if name == "gemini":
            service.script = [_of_gemini(reply) for reply in replies]
        elif name == "chat":
            # OpenAI's chat tells no reasoning, and refuses any.
            service.reset(*([one for one in reply if one[0] != "think"] for reply in replies))
        else:
            service.begin(*replies)


@pytest.fixture(scope="module")
def services():
    with ExitStack() as stack:
        yield Services(stack)


@pytest.fixture(autouse=True)
def _nothing_paid():
    PAID.clear()


def agent_of(model, store=None):
    return Agent(
        model, protocol="native", tools=TOOLS, store=store, name="a", limits=Limits(turns=None)
    )


ROUTES = [
    ["chat", "anthropic", "responses", "gemini", "chat"],
    ["gemini", "responses", "anthropic", "chat", "gemini"],
    ["responses", "chat", "gemini", "anthropic", "responses"],
    ["anthropic", "gemini", "chat", "responses", "anthropic"],
]


@pytest.mark.parametrize("route", ROUTES, ids="-".join)
def test_a_run_goes_from_service_to_service_and_back(services, route, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run_id = None
        for step, name in enumerate(route, 1):
            services.begin(name, REPLIES)
            agent = agent_of(services.models[name], store)
            if run_id is None:
                result = agent.run_sync("Do it.", approve=lambda _: True)
                run_id = result.run.id
            else:
                run = store.run(run_id)
                run.send("Once more.")
                result = agent.resume_sync(run_id, approve=lambda _: True)
            assert result.value == "Done."
            assert len(PAID) == step
            assert result.run.violations == step


@pytest.mark.parametrize("name", ["chat", "anthropic", "responses", "gemini"])
def test_a_run_is_resumed_from_every_event_with_what_the_service_admits(services, name, tmp_path):
    services.begin(name, REPLIES)
    model = services.models[name]
    whole = agent_of(model).run_sync("Do it.", approve=lambda _: True)
    assert whole.value == "Done."
    lines = whole.run.export().splitlines(keepends=True)
    with TicketStore(tmp_path / "runs.sqlite") as store:
        for cut in range(1, len(lines)):
            begun = lines[:cut]
            PAID.clear()
            services.begin(name, REPLIES[sum('"model_replied"' in one for one in begun) :])
            # The first line holds the id: each beginning becomes a run of its own.
            other = begun[0].replace(whole.run.id, f"run-{cut}")
            run_id = store.import_run("".join([other, *begun[1:]]), trust=True)
            result = agent_of(model, store).resume_sync(run_id, approve=lambda _: True)
            assert result.value == "Done."
            completed = [one for one in begun if '"ticket_completed"' in one]
            paid_before = sum('\\"paid\\"' in one or '"paid"' in one for one in completed)
            assert len(PAID) + paid_before <= 1


def test_another_service_takes_over_in_the_middle_of_a_turn(services):
    services.begin("chat", [REPLIES[0]])
    services.begin("anthropic", REPLIES[1:])
    broken = services.models["chat"]
    asked = 0

    def once(messages, *, tools=(), tool_choice=None):
        nonlocal asked
        asked += 1
        if asked > 1:
            raise ConnectionError("gone")
        return broken(messages, tools=tools, tool_choice=tool_choice)

    model = Fallback(once, services.models["anthropic"])
    result = agent_of(model).run_sync("Do it.", approve=lambda _: True)
    assert result.value == "Done."
    assert PAID == [5.0]
