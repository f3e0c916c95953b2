"""Finished runs and agents of another shape: the result may be read, and nothing else happens."""

import asyncio
from typing import Literal, TypedDict

import pytest

from callslip import Agent, ScriptedModel, TicketStore, UsageError, tool
from scripted import act, finish


class Area(TypedDict):
    area: int


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def subtract(a: int, b: int) -> int:
    """Subtract."""
    return a - b


def agent_of(store=None, *replies, **options):
    return Agent(ScriptedModel([*replies]), store=store, **{"tools": [add], **options})


@pytest.fixture(params=["file", "database"])
def store(request, tmp_path):
    if request.param == "file":
        place = tmp_path / "runs.sqlite"
    else:
        place = request.getfixturevalue("database")
    with TicketStore(place) as store:
        yield store


def finished(store):
    return agent_of(store, act("add", a=1, b=2), finish("three")).run_sync("Add.").run


OTHERS = {
    "tools": ({"tools": [subtract]}, "the tool 'add' is gone: keep it"),
    "protocol": ({"protocol": "chatty"}, "the run has the protocol react, this agent chatty"),
    "type": ({"returns": str}, "the run returns no type, this agent str"),
}
others = pytest.mark.parametrize(("options", "why"), OTHERS.values(), ids=OTHERS)


def check_untouched(run, why, error):
    assert why in str(error)
    assert "call agent.hand_over(run)" in str(error)
    assert run.log[-1].kind == "run_finished"


@others
def test_another_agent_reads_the_result_and_continues_nothing(store, options, why):
    run_id = finished(store).id
    result = agent_of(store, **options).resume_sync(run_id)
    assert result.value == "three"
    with pytest.raises(UsageError) as caught:
        result.run.send_sync("More?")
    check_untouched(store.run(run_id), why, caught.value)

    async def awaited():
        run = agent_of(store, **options).start(run=run_id)
        await run
        await run.send("More?")

    with pytest.raises(UsageError) as caught:
        asyncio.run(awaited())
    check_untouched(store.run(run_id), why, caught.value)

    async def streamed():
        async with agent_of(store, **options).stream(run=run_id) as run:
            async for _ in run:
                pass
            await run.send("More?")

    with pytest.raises(UsageError) as caught:
        asyncio.run(streamed())
    check_untouched(store.run(run_id), why, caught.value)


@others
def test_a_message_that_waits_is_read_by_an_agent_that_fits(store, options, why):
    run_id = finished(store).id
    store.run(run_id).send("More?")
    with pytest.raises(UsageError, match="can't be resumed by this agent") as caught:
        agent_of(store, **options).resume_sync(run_id)
    assert why in str(caught.value)
    result = agent_of(store, finish("more")).resume_sync(run_id)
    assert result.value == "more"
    assert [event.text for event in result.run.log if event.kind == "user_said"] == ["More?"]


@pytest.mark.parametrize("is_kept", [False, True])
def test_an_override_of_another_shape_continues_nothing(tmp_path, is_kept):
    store = TicketStore(tmp_path / "runs.sqlite") if is_kept else None
    agent = agent_of(store, act("add", a=1, b=2), finish("three"), finish("more"))
    run = agent.run_sync("Add.").run
    with agent.override(tools=[subtract]), pytest.raises(UsageError) as caught:
        run.send_sync("More?")
    check_untouched(run, "the tool 'add' is gone: keep it", caught.value)
    assert run.send_sync("More?").value == "more"


@pytest.mark.parametrize(
    "returns", [int, float, bool, list[str], Literal["a"], Area, dict[str, int], int | None]
)
def test_an_answer_of_another_type_is_refused(tmp_path, returns):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run_id = finished(store).id
        agent = agent_of(store, returns=returns)
        message = "the answer of the run is not of the type in returns: 'answer' must be "
        with pytest.raises(UsageError) as caught:
            agent.resume_sync(run_id)
        assert str(caught.value).startswith(message)


def test_an_answer_that_fits_is_a_value_of_the_type(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        first = agent_of(store, finish({"area": 4}), returns=dict[str, int])
        run_id = first.run_sync("How large?").run.id
        for returns in (Area, dict[str, int], dict[str, float]):
            assert agent_of(store, returns=returns).resume_sync(run_id).value == {"area": 4}
