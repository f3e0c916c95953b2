"""A run that was cancelled stays so, with all runs below it, wherever its process has ended."""

import asyncio

import pytest

from callslip import Agent, TicketStore, tool
from scripted import act, finish, turn_of

WORK = [act("work"), finish()]
ASK = [act("ask", task="t"), finish()]


class Desk:
    """A tree of three agents on one store, each started by a call or by a task."""

    def __init__(self, store, kinds):
        self.store, self.done = store, []

        @tool
        async def work() -> str:
            """Work."""
            self.done.append("work")
            return "worked"

        above, below = kinds.split("-")
        self.inner = self.agent("inner", WORK, work)
        self.middle = self.agent("middle", ASK, self.asking(self.inner, below))
        self.outer = self.agent("outer", ASK, self.asking(self.middle, above))

    def agent(self, name, replies, *tools):
        return Agent(self.model(replies), tools=tools, store=self.store, name=name)

    @staticmethod
    def asking(agent, kind):
        if kind == "task":
            return agent.as_tool(name="ask")

        @tool
        async def ask(task: str) -> str:
            """Ask."""
            return (await agent.run(task)).value

        return ask

    @staticmethod
    def model(replies):
        return lambda messages: replies[turn_of(messages)]

    def resume_all(self, name, how):
        agent = getattr(self, name)
        return asyncio.run(agent.resume_all()) if how == "async" else agent.resume_all_sync()


def left_behind(kind):
    """A store with a tree of which only the top was cancelled, and the id of the top."""
    first = Desk(TicketStore(), kind)
    top = first.outer.run_sync("go").run
    logs = {}
    for row in first.store.runs():
        run = first.store.run(row.run_id)
        lines = run.export().splitlines(keepends=True)
        opened = [event.kind for event in run.log].index("ticket_opened")
        logs[row.run_id] = "".join(lines[: opened + 1])
    store = TicketStore()
    cut = TicketStore()
    cut.import_run(logs[top.id])
    cut.run(top.id).cancel()
    logs[top.id] = cut.run(top.id).export()
    for log in logs.values():
        store.import_run(log)
    assert {run.agent: run.status for run in store.runs()} == {
        "outer": "finished",
        "middle": "running",
        "inner": "running",
    }
    return store, top.id


@pytest.fixture(params=["call-call", "call-task", "task-call", "task-task"])
def kind(request):
    return request.param


def all_are_cancelled(store):
    return {run.stop_reason for run in store.runs()} == {"cancelled"} and not store.tickets(
        status="IN_PROGRESS"
    )


@pytest.mark.parametrize("name", ["outer", "middle", "inner"])
@pytest.mark.parametrize("how", ["async", "sync"])
def test_resume_all_of_any_agent_ends_what_has_outlived_its_run(kind, name, how):
    store, _ = left_behind(kind)
    desk = Desk(store, kind)
    assert desk.resume_all(name, how) == {}
    assert desk.done == []
    if name == "inner" and not all_are_cancelled(store):
        # The run above it was open when it was looked at.
        desk.resume_all(name, how)
    assert all_are_cancelled(store)


def test_a_second_cancel_ends_what_the_first_could_not(kind):
    store, top = left_behind(kind)
    store.run(top).cancel()
    assert all_are_cancelled(store)


def test_what_was_left_behind_stays_cancelled_where_its_run_goes_on(kind):
    store, top = left_behind(kind)
    desk = Desk(store, kind)
    assert desk.outer.resume_sync(top).run.finished
    assert store.runs(status="running") == []
    assert "cancelled" in {run.stop_reason for run in store.runs(agent="inner")}


@pytest.mark.parametrize("how", ["async", "sync"])
@pytest.mark.parametrize("is_file", [False, True], ids=["memory", "file"])
def test_a_run_that_is_cancelled_while_it_waits_to_be_resumed_is_not(tmp_path, how, is_file):
    """The runs are listed once. The first of them cancels the others meanwhile."""
    done = []

    @tool
    async def work(n: int) -> str:
        """Work."""
        done.append(n)
        for run in store.runs(status="running"):
            if run.task != f"task {n}":
                store.run(run.run_id).cancel()
        return "worked"

    def model(messages):
        number = int(str(messages).rsplit("task ", 1)[1][0])
        return [act("work", n=number), finish()][turn_of(messages)]

    with TicketStore(tmp_path / "runs.sqlite" if is_file else None) as store:
        agent = Agent(model, tools=[work], store=store)
        for n in range(5):
            run = Agent(lambda messages: finish(), tools=[work]).run_sync(f"task {n}").run
            store.import_run(run.export().splitlines(keepends=True)[0])
        results = (
            asyncio.run(agent.resume_all(at_once=1)) if how == "async" else agent.resume_all_sync()
        )
        assert done == [0]
        assert [result.value for result in results.values()] == ["done"]
        assert [run.stop_reason for run in store.runs()] == ["cancelled"] * 4 + ["finished"]
