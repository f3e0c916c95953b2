"""`callslip approve`: calls of child runs, by their seals."""

import asyncio
import re

import pytest

from callslip import Agent, ScriptedModel, TicketStore
from payments import made, pay_to
from scripted import act, block, finish

pytestmark = pytest.mark.usefixtures("no_payments")


def agent(store, *amounts, resumed=False):
    """An agent with a child agent for each amount, which pays it."""
    replies = [[act("pay", to="ann", amount=amount), finish()][resumed:] for amount in amounts]
    inner = [
        Agent(ScriptedModel(texts), tools=[pay_to], name=f"inner{amount}")
        for texts, amount in zip(replies, amounts, strict=True)
    ]
    calls = block(*((f"c{at}", one.name, {"task": "x"}) for at, one in enumerate(inner)))
    tools = [one.as_tool() for one in inner]
    model = ScriptedModel([calls, "done"][resumed:])
    return Agent(model, tools=tools, store=store, protocol="chatty")


def left(path, *amounts):
    """Leave a run whose child runs wait, in a file that no process owns; their ids."""

    async def leave(store):
        run = agent(store, *amounts).start("go")
        async for _ in run.watch():
            if len(run.awaiting_approval) == len(amounts):
                return run.id, [one.id for one in run.children]
        raise AssertionError

    with TicketStore(path) as store:
        return asyncio.run(leave(store))


@pytest.mark.parametrize("by_child", [True, False], ids=["child", "root"])
def test_a_call_of_a_child_run_is_approved_by_its_seal(path, call, by_child):
    root, (child,) = left(path, 5)
    words = ("approve", path, child if by_child else root[:10], "T1")
    shown = call(*words, status=2)
    assert f"A call needs approval ({child}, T1)\n" in shown.out
    (seal,) = re.findall(r"--seal (\w{16})", shown.err)
    assert seal in call(*words, "--seal", seal[::-1], status=2).err
    assert f"approved T1 of run {child}: pay" in call(*words, "--seal", seal).out
    assert "already" in call("approve", path, child, "T1", "--seal", seal, status=2).err
    with TicketStore(path) as store:
        agent(store, 5, resumed=True).resume_sync(root)
    assert made == [("ann", 5)]


def test_a_seal_says_which_of_several_child_runs_is_meant(path, call):
    root, children = left(path, 5, 7)
    seals = {}
    for child in children:
        shown = call("approve", path, child, "T1", status=2)
        (amount,) = re.findall(r"amount \| (\d)", shown.out)
        (seals[amount],) = re.findall(r"--seal (\w{16})", shown.err)
    words = ("approve", path, root, "T1")
    for wrong in ((), ("--seal", "0" * 16)):
        refused = call(*words, *wrong, status=2)
        assert refused.out == ""
        assert all(child in refused.err for child in children)
    out = call(*words, "--seal", seals["7"]).out
    assert "amount | 7" in out
    assert "amount | 5" not in out
    # The one that is left is found without the seal of another.
    assert "amount | 5" in call(*words, "--seal", seals["7"], status=2).out
    assert call(*words, "--seal", seals["5"]).out


def test_the_call_of_the_run_itself_comes_before_those_of_its_child_runs(path, call):
    async def leave(store):
        inner = Agent(
            ScriptedModel([act("pay", to="ann", amount=5), finish()]), tools=[pay_to], name="inner"
        )
        calls = block(("own", "pay", {"to": "bob", "amount": 9}), ("c", "inner", {"task": "x"}))
        model = ScriptedModel([calls, "done"])
        one = Agent(model, tools=[pay_to, inner.as_tool()], store=store, protocol="chatty")
        run = one.start("go")
        async for _ in run.watch():
            if len(run.awaiting_approval) == 2:
                return run.id
        raise AssertionError

    with TicketStore(path) as store:
        root = asyncio.run(leave(store))
    shown = call("approve", path, root, "T1", status=2)
    assert "amount | 9" in shown.out
    (seal,) = re.findall(r"--seal (\w{16})", shown.err)
    assert (
        f"approved T1 of run {root}: pay" in call("approve", path, root, "T1", "--seal", seal).out
    )
