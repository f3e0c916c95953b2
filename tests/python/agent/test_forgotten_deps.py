"""Runs without the deps that their functions need raise an error before the first request."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeVar

import pytest

from callslip import Agent, Context, ScriptedModel, TicketStore, Tool, UsageError, tool
from scripted import act, finish


@dataclass
class Deps:
    user: str


class Named(Protocol):
    user: str


T = TypeVar("T")
NEEDS = [
    Context[Deps],
    Context[str],
    Context[dict[str, int]],
    Context[Named],
    Context[Deps] | None,
    Annotated[Context[Deps], "x"],
    Context[Deps | str],
]
DOES_NOT = [
    Context,
    Context[Any],
    Context[object],
    Context[None],
    Context[Deps | None],
    Context[Annotated[Deps | None, "x"]],
    Context[Literal["a"] | None],
    Context[T],
]


def agent(*, model=None, **options):
    return Agent(model or ScriptedModel([finish()]), **options)


def taking(annotation, **options):
    def who(context) -> str:
        return "x"

    who.__annotations__["context"] = annotation
    return tool(**options)(who)


@pytest.mark.parametrize("annotation", NEEDS, ids=str)
def test_declared_deps_are_expected(annotation):
    for tools in ([taking(annotation)], [agent(tools=[taking(annotation)]).as_tool(name="x")]):
        with pytest.raises(UsageError, match=r"deps for the tool 'who', which takes Context\[.*; "):
            agent(tools=tools).run_sync("?")
        assert agent(tools=tools).run_sync("?", deps=Deps("Ann")).value == "done"


@pytest.mark.parametrize("annotation", DOES_NOT, ids=str)
def test_deps_that_may_be_none_are_not(annotation):
    assert agent(tools=[taking(annotation)]).run_sync("?").value == "done"


def of_context(context: Context[Deps]) -> str:
    return context.deps.user


def of_value(value: Any, context: Context[Deps]) -> None:
    assert context.deps


def plain(x: int) -> int:
    return x


FUNCTIONS = {
    "instructions": {"instructions": of_context},
    "check_task": {"check_task": of_value},
    "check_answer": {"check_answer": of_value},
    "needs_approval of the tool 'f'": {"tools": [tool(name="f", needs_approval=of_value)(plain)]},
    "reconcile of the tool 'f'": {"tools": [tool(name="f", reconcile=of_context)(plain)]},
    "the tool 'f'": {"tools": [Tool.from_schema(of_context, name="f", parameters={})]},
}


@pytest.mark.parametrize(("what", "options"), FUNCTIONS.items(), ids=FUNCTIONS)
def test_every_function_with_a_context(what, options):
    one = agent(store=TicketStore(), **options)
    with pytest.raises(UsageError) as caught:
        one.run_sync("?")
    taken = f"Context[{__name__}.Deps]"
    told = f"expected deps for {what}, which takes {taken}: got none; pass deps=… to the run"
    assert str(caught.value) == told
    assert one.run_sync("?", deps=Deps("Ann")).value == "done"


async def streamed(one):
    async with one.stream("?") as run:
        async for _ in run:
            pass


async def started(one):
    await one.start("?")


WAYS = [lambda one: one.run_sync("?"), lambda one: list(one.stream_sync("?"))]
WAYS += [lambda one, way=way: asyncio.run(way(one)) for way in (streamed, started)]
WAYS += [lambda one: asyncio.run(one.run("?"))]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_start(way):
    model = ScriptedModel([finish()])
    with pytest.raises(UsageError, match="pass deps="):
        way(agent(model=model, tools=[taking(Context[Deps])]))
    assert model.requests == []


def test_an_override_needs_what_it_has():
    one = agent(tools=[taking(Context[Deps])])
    above = agent(tools=[one.as_tool(name="below")])
    with one.override(tools=[taking(Context)]):
        assert above.run_sync("?").value == "done"
    with pytest.raises(UsageError, match="pass deps="):
        above.run_sync("?")


def test_a_resumed_run_needs_them_again_and_a_finished_one_does_not(tmp_path):
    @tool
    def stop(context: Context[Deps]) -> str:
        """Stop."""
        raise KeyboardInterrupt

    options = {"tools": [stop, taking(Context[Deps])], "store": tmp_path / "runs.sqlite"}
    one = agent(model=ScriptedModel([act("stop")]), **options)
    with pytest.raises(KeyboardInterrupt) as caught:
        one.run_sync("?", deps=Deps("Ann"), key="k")
    run_id = caught.value.run.id
    again = one.replace(model=ScriptedModel([finish()]))
    with pytest.raises(UsageError, match="pass deps="):
        again.resume_sync(run_id)
    assert isinstance(again.resume_all_sync()[run_id], UsageError)
    assert again.resume_sync(run_id, deps=Deps("Ann")).value == "done"
    assert again.resume_sync(run_id).value == "done"


def test_a_failure_on_deps_that_nobody_declared_is_told():
    @tool
    def who(context: Context) -> str:
        """Say who."""
        return context.deps["user"]

    @tool
    async def whom(context: Context) -> str:
        """Say whom."""
        return context.deps.user

    model = ScriptedModel([act("who"), act("whom"), finish()])
    with pytest.warns(UserWarning, match="which is None: pass deps=… to the run") as told:
        agent(model=model, tools=[who, whom]).run_sync("?")
    assert [str(one.message).split("'")[1] for one in told] == ["who", "whom"]
