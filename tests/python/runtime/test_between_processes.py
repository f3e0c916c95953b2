"""What is said to runs that nobody works on: it is written down, and stands in nobody's way."""

import asyncio
import json
import threading

import pytest

from callslip import Agent, Role, TicketStore, UsageError, tool
from scripted import task_of, turn_of


def output(**move):
    return f"<thoughts>t</thoughts><output>{json.dumps(move)}</output>"


class Work:
    """A run that gives a task to another one, which makes a call that needs approval."""

    def __init__(self):
        self.did = []

        @tool(needs_approval=True, effect="idempotent")
        def sign(n: int) -> int:
            """Sign."""
            self.did.append(n)
            return n

        self.tools = [sign]

    def __call__(self, messages):
        turn = turn_of(messages)
        wait = output(type="AWAIT", ticket_id="T1")
        if task_of(messages).startswith("part"):
            call = output(type="CALL", route="/sign", payload={"n": 1}, description="sign")
            return [call, wait, output(type="RETURN", value="signed")][turn]
        task = output(type="DELEGATE", task="part")
        return [task, wait, output(type="RETURN", value="done")][turn]

    def agent(self, store):
        return Agent(self, protocol="ticket", tools=self.tools, store=store)


@pytest.fixture
def crashed(store):
    """A store as a process leaves it that ends while the call waits for approval."""
    with TicketStore() as first:
        thread = threading.Thread(target=Work().agent(first).run_sync, args=["whole"])
        thread.start()
        while not (waiting := first.tickets(awaiting_approval=True)):
            pass
        logs = [first.run(run.run_id).export() for run in first.runs()]
        first.run(waiting[0].run_id).approve(waiting[0])
        thread.join()
    for log in logs:
        store.import_run(log)
    return store


def root_of(store):
    return next(run.run_id for run in store.runs() if run.parent_run is None)


@pytest.mark.one_process
def test_cancelling_a_run_ends_those_below_it(crashed):
    crashed.run(root_of(crashed)).cancel()
    assert [run.stop_reason for run in crashed.runs()] == ["cancelled", "cancelled"]
    assert crashed.tickets(status="IN_PROGRESS") == []


@pytest.mark.one_process
@pytest.mark.parametrize("which", ["root", "child"])
def test_a_run_is_taken_up_once_somebody_has_approved_of_its_call(crashed, monkeypatch, which):
    root = root_of(crashed)
    approving, resumed = threading.Event(), threading.Event()
    written = crashed._commits.written

    def slow(run):
        if not approving.is_set():
            approving.set()
            # Long enough for the other thread to come by; it has to wait for this one.
            resumed.wait(0.3)
        written(run)

    monkeypatch.setattr(crashed._commits, "written", slow)
    word = crashed.run(root if which == "root" else f"{root}.T1")

    def say():
        if which == "root":
            word.send("hurry up")
        else:
            word.approve("T1")

    saying = threading.Thread(target=say)
    saying.start()
    assert approving.wait(60)
    if which == "root":
        crashed.run(f"{root}.T1").approve("T1")
    work = Work()
    result = work.agent(crashed).resume_sync(root)
    resumed.set()
    saying.join()
    assert (result.value, work.did) == ("done", [1])


def test_a_tree_that_cannot_go_on_stays_as_it_is(tmp_path):
    def agent(store, protocol):
        return Agent(
            reply,
            protocol="chatty",
            store=store,
            roles={"R": Role(protocol=protocol)},
        )

    async def reply(messages):
        if task_of(messages) != "go":
            await asyncio.sleep(60)
        return (
            "<tool>"
            + json.dumps(
                [
                    {
                        "call_id": "a",
                        "tool_name": "spawn_agent",
                        "arguments": {"role": "R", "prompt": "x"},
                    },
                    {
                        "call_id": "b",
                        "tool_name": "spawn_agent",
                        "arguments": {"role": "S", "prompt": "y"},
                    },
                    {
                        "call_id": "w",
                        "tool_name": "wait_for_agents",
                        "arguments": {"agent_ids": ["$a"]},
                    },
                ]
            )
            + "</tool>"
        )

    async def logs():
        with TicketStore(tmp_path / "first.sqlite") as store:
            task = asyncio.create_task(agent(store, "ticket").run("go"))
            while len(store.runs()) < 3:
                await asyncio.sleep(0.01)
            taken = [store.run(run.run_id).export() for run in store.runs()]
            task.cancel()
            await asyncio.wait([task])
            return taken

    with TicketStore(tmp_path / "second.sqlite") as store:
        for log in asyncio.run(logs()):
            store.import_run(log)
        before = {run.run_id: store.run(run.run_id).export() for run in store.runs()}
        ((_, error),) = asyncio.run(agent(store, "react").resume_all()).items()
        assert isinstance(error, UsageError)
        assert "protocol" in str(error)
        assert {run.run_id: store.run(run.run_id).export() for run in store.runs()} == before
