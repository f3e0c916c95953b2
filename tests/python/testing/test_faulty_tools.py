"""Tools that fail as planned, in front of the tools of an application."""

import asyncio

import pytest

from callslip import Agent, Context, OpenAPI, ScriptedModel, UsageError, tool
from callslip.testing import PROTOCOLS, Called, FaultyTools, Say


@tool
def stock(item: str) -> int:
    """Count an item."""
    return len(item)


@tool(readonly=True)
async def price(item: str, context: Context) -> float:
    """Tell the price of an item."""
    await asyncio.sleep(0)
    return len(item) / 2 if context.tool == "price" else -1


def run(tools, *calls, name="react"):
    say = Say(name)
    script = [say.call(one, item="apple") for one in calls]
    with ScriptedModel([*script, say.finish("done")]) as model:
        return Agent(model, protocol=name, tools=tools).run_sync("How many apples?")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_tool_fails_and_then_works(name):
    with FaultyTools({"stock": [ConnectionError("no route"), "ok"]}, [stock, price]) as tools:
        say = Say(name)
        script = [say.call("stock", item="apple"), say.call("stock", item="pears")]
        model = ScriptedModel([*script, say.finish("done")])
        result = Agent(model, protocol=name, tools=tools).run_sync("How many apples?")

    assert result.tickets == [Called("stock", outcome="error"), Called("stock", outcome="ok")]
    assert "no route" in result.tickets[0].error
    assert result.tickets[1].result == 5


def test_an_attempt_of_the_runtime_takes_the_next_item():
    with FaultyTools({"price": [ConnectionResetError, "ok"]}, [price]) as tools:
        result = run(tools, "price")

    assert [(one.outcome, one.attempts, one.result) for one in result.tickets] == [("ok", 2, 2.5)]


def test_the_tools_are_described_as_before():
    faulty = FaultyTools({"stock": [OSError], "price": [OSError]}, [stock, price])

    prompts = {
        Agent(ScriptedModel([]), protocol="react", tools=tools).system_prompt
        for tools in ([stock, price], faulty)
    }
    assert len(prompts) == 1
    # The tools of the application stay as they are.
    assert [one.result for one in run([stock], "stock").tickets] == [5]


def test_a_tool_that_has_run_already_can_fail():
    assert [one.result for one in run([price], "price").tickets] == [2.5]

    result = run(FaultyTools({"price": [LookupError("gone")]}, [price]), "price")

    assert result.tickets == [Called("price", outcome="error")]


def test_an_operation_of_a_document_can_fail():
    class Client:
        def request(self, *_, **__):
            raise AssertionError("the operation was called")

    document = {
        "openapi": "3.1.0",
        "info": {"title": "Stock", "version": "1"},
        "servers": [{"url": "https://stock.example"}],
        "paths": {"/items": {"get": {}}},
    }
    api = OpenAPI(document, client=Client())
    say = Say("ticket")
    with FaultyTools({"GET /items": [LookupError("gone")]}, api) as tools:
        model = ScriptedModel([say.call("GET /items"), say.finish("done")])
        result = Agent(model, protocol="ticket", tools=tools).run_sync("Which items?")

    assert "gone" in result.tickets[0].error


def test_a_tool_without_a_plan_is_called():
    result = run(FaultyTools({"stock": [OSError]}, [stock, price]), "price")

    assert result.tickets == [Called("price", outcome="ok")]


def test_an_agent_can_be_overridden_with_faulty_tools():
    say = Say("react")
    model = ScriptedModel([say.call("stock", item="apple"), say.finish("done")])
    agent = Agent(model, protocol="react", tools=[stock])
    with agent.override(tools=FaultyTools({"stock": [OSError]}, [stock])):
        result = agent.run_sync("How many apples?")

    assert result.tickets == [Called("stock", outcome="error")]


def test_a_fault_that_was_not_reached_is_an_error():
    with (
        pytest.raises(AssertionError, match=r"expected more calls of tools.*'stock'"),
        FaultyTools({"stock": [OSError, "ok"]}, [stock]) as tools,
    ):
        run(tools, "stock")


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"stok": [OSError]}, "one of 'stock': got 'stok'"),
        ({"stock": "ok"}, "expected a list"),
        ({"stock": [7]}, "expected an exception, or 'ok'"),
        ({"stock": [int]}, "expected an exception, or 'ok'"),
        ({"stock": ["error"]}, "expected an exception, or 'ok'"),
    ],
)
def test_a_wrong_plan_is_refused(faults, message):
    with pytest.raises(UsageError, match=message):
        FaultyTools(faults, [stock])
