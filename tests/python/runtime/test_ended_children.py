"""A child run that is over stays so when its parent, which had not heard of it, is resumed: however
it has ended, its model is not asked again, and the call of the parent has the outcome that it has
where one process drives both."""

import asyncio

import pytest

from callslip import Agent, Limits, TicketStore, tool
from scripted import act, finish, turn_of

ENDS = ["finished", "limit", "violations", "model_error", "cancelled"]
WAYS = ["resume", "resume_sync", "start", "resume_all", "resume_all_sync"]


class Desk:
    """An agent whose child run ends in a way of its own, and what was done meanwhile."""

    def __init__(self, store, end):
        self.store, self.end, self.asked, self.made = store, end, 0, []

        @tool(effect="once")
        def work() -> str:
            """Work."""
            self.made.append(1)
            return "worked"

        @tool
        def stop() -> str:
            """Let somebody cancel the run that calls."""
            (run,) = store.runs(agent="inner")
            store.run(run.run_id).cancel()
            return "stopped"

        self.inner = Agent(
            self.answer,
            tools=[work, stop],
            limits=Limits(turns=1 if end == "limit" else 9),
            on_limit="raise",
            store=store,
            name="inner",
        )
        script = [act("inner", task="t"), finish("done")]
        self.outer = Agent(
            lambda messages: script[turn_of(messages)],
            tools=[self.inner.as_tool()],
            store=store,
            name="outer",
        )

    def answer(self, messages):
        self.asked += 1
        if self.end == "model_error":
            raise ConnectionError("the service is down")
        first = {"cancelled": act("stop"), "violations": "no move", "finished": finish("in")}
        script = [first.get(self.end, act("work")), act("work"), finish("in")]
        return "no move" if self.end == "violations" else script[turn_of(messages)]

    async def go_on(self, how, run_id):
        if how == "start":
            return await self.outer.start(run=run_id)
        if how == "resume":
            return await self.outer.resume(run_id)
        return await self.outer.resume_all()

    def resume(self, how, run_id):
        if how.endswith("_sync"):
            ids = [] if how == "resume_all_sync" else [run_id]
            return getattr(self.outer, how)(*ids)
        return asyncio.run(self.go_on(how, run_id))


def logs_of(store):
    return {row.agent: store.run(row.run_id).export() for row in store.runs()}


def unheard(logs):
    """The logs of a process that ended when the child run had ended, and its parent not heard."""
    lines = logs["outer"].splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if "ticket_completed" in line)
    return "".join(lines[:cut]), logs["inner"]


def calls(run):
    # The words of a client are only known to the process that has asked it.
    return [(call.outcome, (call.error or "").split(":")[:2], call.result) for call in run.tickets]


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.parametrize("end", ENDS)
def test_a_child_run_that_is_over_is_not_asked_again(tmp_path, kind, end):
    live = Desk(TicketStore(), end)
    expected = live.outer.run_sync("go").run
    assert {run.stop_reason for run in live.store.runs(agent="inner")} == {end}
    logs = logs_of(live.store)
    for how in WAYS if kind == "memory" else WAYS[-1:]:
        with TicketStore(tmp_path / "runs.sqlite" if kind == "file" else None) as store:
            for log in unheard(logs):
                store.import_run(log)
            desk = Desk(store, end)
            desk.resume(how, expected.id)
            assert (desk.asked, desk.made) == (0, []), how
            assert logs_of(store)["inner"] == logs["inner"], how
            assert calls(store.run(expected.id)) == calls(expected), how


def test_a_child_run_that_is_over_keeps_nobody_from_resuming_its_parent():
    live = Desk(TicketStore(), "cancelled")
    expected = live.outer.run_sync("go").run
    store = TicketStore()
    for log in unheard(logs_of(live.store)):
        store.import_run(log)
    desk = Desk(store, "cancelled")
    # Its tools are gone.
    inner = Agent(desk.answer, store=store, name="inner")
    outer = Agent(lambda _: finish(), tools=[inner.as_tool()], store=store, name="outer")
    assert outer.check(store.run(expected.id)) == []
    assert outer.resume_sync(expected.id).run.finished


def test_a_message_to_a_child_run_that_is_over_is_still_read():
    live = Desk(TicketStore(), "cancelled")
    expected = live.outer.run_sync("go").run
    store = TicketStore()
    for log in unheard(logs_of(live.store)):
        store.import_run(log)
    (child,) = store.runs(agent="inner")
    store.run(child.run_id).send("Say what you have.")
    desk = Desk(store, "finished")
    assert [call.outcome for call in desk.outer.resume_sync(expected.id).tickets] == ["ok"]
    assert desk.asked > 0
