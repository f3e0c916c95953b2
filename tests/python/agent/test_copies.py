"""Copies of runs, results and what they yield, in this process and in others."""

import asyncio
import copy
import pickle
from multiprocessing import get_context

import pytest

from callslip import Agent, Delta, ScriptedModel, TicketStore, UsageError, replay, tool
from pictures import png
from scripted import act, finish

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}
copied = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)

DELTAS = [
    Delta.Thoughts("a"),
    Delta.Reasoning("a"),
    Delta.Text("a"),
    Delta.Answer("a"),
    Delta.CallId(1, "a"),
    Delta.Tool(0, "a"),
    Delta.Arguments(2, "a"),
    Delta.CallReady(3),
    Delta.TicketId("T1"),
]


@tool
def draw(size: int):
    """Draw."""
    return png(size, size)


def drawn():
    model = ScriptedModel([act("draw", size=2), finish(), finish("again")])
    return Agent(model, tools=[draw]).run_sync("Draw.")


def parts_of_a_result():
    result = drawn()
    return result.messages, result.trace(), Delta.Answer("a")


@copied
def test_messages_and_traces_are_copied(copied):
    result = drawn()
    assert result.messages.has_parts
    messages = copied(result.messages)
    assert messages == result.messages
    assert messages.has_parts
    trace = copied(result.trace())
    assert trace == result.trace()
    assert trace.to_dict() == result.trace().to_dict()
    assert trace.parts["T1"].data == result.run.parts["T1"].data
    with pytest.raises(TypeError):
        trace.parts["T2"] = trace.parts["T1"]


def test_a_copy_of_messages_is_of_that_moment():
    result = drawn()
    messages = copy.deepcopy(result.messages)
    messages[0]["content"] = "other"
    assert result.messages[0]["content"] != "other"
    count = len(result.messages)
    result.run.send_sync("More?")
    assert (len(messages), len(result.run.messages) > count) == (count, True)


@copied
@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: type(delta).__name__)
def test_deltas_are_copied(delta, copied):
    twin = copied(delta)
    assert (type(twin), repr(twin)) == (type(delta), repr(delta))


@pytest.mark.timeout(120)
def test_what_a_run_yields_comes_from_another_process():
    with get_context("spawn").Pool(1) as pool:
        messages, trace, delta = pool.apply(parts_of_a_result)
    assert messages[-1]["role"] == "assistant"
    assert (trace.agent, trace.parts["T1"].size > 0, delta.text) == ("agent", True, "a")


@pytest.mark.parametrize("made", [copy.deepcopy, lambda run: replay(run.export())])
@pytest.mark.parametrize("how", ["send", "send_sync"])
def test_a_message_to_a_copy_is_refused_and_changes_nothing(made, how):
    run = made(drawn().run)
    with pytest.raises(UsageError) as caught:
        getattr(run, how)("More?")
    assert str(caught.value) == (
        f"run {run.id} is a copy without an agent, and the message would be lost: call "
        "agent.hand_over(run, say=…), or send it to the run itself"
    )
    assert (run.stop_reason, run.log[-1].kind) == ("finished", "run_finished")
    other = Agent(ScriptedModel([finish("seen")]))
    assert other.hand_over_sync(run, say="More?").value == "seen"


@copied
def test_a_run_that_waits_for_a_worker_has_no_copy(database, copied):
    from callslip.fleet import Fleet

    with TicketStore(database) as store:
        run_id = asyncio.run(Fleet(store).submit("clerk", "x"))
        with pytest.raises(UsageError, match="^run .* can't be copied before it begins: it has no"):
            copied(store.run(run_id))


@pytest.mark.parametrize("of_parent", ["first", None])
@pytest.mark.parametrize("of_child", ["first", "second", None])
def test_a_run_that_a_tool_has_started_is_a_child_in_any_store(tmp_path, of_parent, of_child):
    stores = {name: TicketStore(tmp_path / f"{name}.sqlite") for name in ("first", "second")}
    inner = Agent(ScriptedModel([finish("in")]), name="inner", store=stores.get(of_child))

    @tool
    async def ask() -> str:
        """Ask."""
        return (await inner.run("Answer.")).value

    model = ScriptedModel([act("ask"), finish("out")])
    run = asyncio.run(Agent(model, tools=[ask], store=stores.get(of_parent)).run("Ask.")).run
    for one in (run, copy.deepcopy(run)):
        assert [child.task for child in one.children] == ["Answer."]
        assert [child.task for child in one.trace().tickets[0].runs] == ["Answer."]
    for store in stores.values():
        store.close()
