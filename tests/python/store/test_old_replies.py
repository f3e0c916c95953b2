"""Replies that version 8 of the log executed, and later readers refuse: their runs go on."""

from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, TicketStore, replay, tool
from scripted import finish

LOGS = sorted((Path(__file__).parents[2] / "data" / "logs" / "version_8").glob("*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_log_with_such_replies_is_replayed_stored_and_compacted(path):
    log = path.read_text("utf-8")
    assert replay(log).export() == log
    with TicketStore() as store:
        run_id = store.import_run(log)
        before = store.run(run_id)
        seen = (before.stop_reason, before.turns, [one.result for one in before.tickets])
        store.compact(run_id)
        after = store.run(run_id)
        assert (after.stop_reason, after.turns, [one.result for one in after.tickets]) == seen


def test_a_run_with_such_a_reply_is_resumed():
    paid = []

    @tool(needs_approval=True)
    def pay(to: str, amount: int = 10) -> str:
        """Pay."""
        paid.append((to, amount))
        return f"paid {amount} to {to}"

    (path,) = (path for path in LOGS if path.stem == "open")
    with TicketStore() as store:
        run_id = store.import_run(path.read_text("utf-8"))
        agent = Agent(ScriptedModel([finish("paid")]), tools=[pay], name="old", store=store)
        result = agent.resume_sync(run_id, approve=lambda ticket: True)
        assert (result.value, paid) == ("paid", [("Ann(", 10)])
        assert replay(store.run(run_id)).export() == store.run(run_id).export()
