"""Logs as JSON lines: exported, taken in, replayed, and refused where they were changed."""

import gzip
import json

import pytest

from callslip import (
    Agent,
    Limits,
    ReplayError,
    StoreError,
    UsageError,
    replay,
    tool,
)
from fetching import FINISH, agent, call
from scripted import turn_of


def test_a_run_is_exported_and_taken_in_elsewhere(store):
    run = agent(None).run_sync("go").run
    text = run.export()
    assert [json.loads(line)["seq"] for line in text.splitlines()] == list(range(len(run.log)))
    assert store.import_run(text) == run.id
    assert store.run(run.id).export() == text
    assert store.tickets(run=run.id) == run.tickets[::-1]
    with pytest.raises(StoreError, match="already"):
        store.import_run(text.splitlines())
    with pytest.raises(ReplayError, match="line 2 is no event of a run"):
        store.import_run(text.splitlines()[0] + "\n{}\n")
    with pytest.raises(ReplayError, match="first events are missing"):
        store.import_run(text.splitlines()[1:])
    with pytest.raises(ReplayError, match="the log is empty"):
        store.import_run("")


def test_a_file_that_is_no_export_is_refused_by_its_name(tmp_path):
    file = tmp_path / "run.jsonl.gz"
    for content in (gzip.compress(b"{}" * 99)[:-9], b"\x1f\x8b nothing", b"\xff{}"):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=r"run\.jsonl\.gz to be"):
            replay(file)


def test_a_log_is_replayed_and_a_difference_is_named(tmp_path):
    run = agent(None).run_sync("go").run
    file = tmp_path / "run.jsonl"
    file.write_text(run.export())
    for log in (run, run.export(), run.export().splitlines(), file, str(file)):
        again = replay(log)
        assert (again.id, again.task, again.messages) == (run.id, "go", run.messages)
        assert again.export() == run.export()
    altered = run.export().replace("line 1 of 2", "line 7 of 2", 1)
    assert replay(altered).tickets[0].result == ["line 0 of 2", "line 7 of 2"]
    altered = run.export().replace('"tool":"fetch"', '"tool":"fail"', 1)
    with pytest.raises(ReplayError, match=r"event 3 differs: the log has \{"):
        replay(altered)
    with pytest.raises(FileNotFoundError):
        replay(tmp_path / "none.jsonl")


def test_awkward_results_are_kept_exported_and_listed(store):
    awkward = ["a\u2028b\u2029c\x85d\x1ce\r\nf", "\ud800", 10**5000, float("nan"), "\0", 2.50, -0.0]

    @tool(repeatable=True)
    def give(n: int) -> object:
        """Give."""
        return awkward[n]

    replies = [call("give", n=n) for n in range(len(awkward))] + [
        FINISH.replace("done", "d\u2028e")
    ]
    worker = Agent(
        lambda messages: replies[turn_of(messages)],
        tools=[give],
        store=store,
    )
    run = worker.run_sync("go\u2028on").run
    assert run.export() == store.run(run.id).export()
    assert replay(run.export()).messages == run.messages
    listed = store.tickets()[::-1]
    assert listed == run.tickets
    assert listed[0].result == awkward[0]
    assert listed[2].result == "1" + "0" * 5000
    assert [event.kind for event in run.log][-1] == "run_finished"
    store.delete(run.id)
    store.import_run(run.export())
    assert store.run(run.id).task == "go\u2028on"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"ticket":1,', '"ticket":0,'), "event 4 can't follow those before it"),
        (('"ticket":1,', '"ticket":7,'), "event 4 can't follow those before it"),
        (('"turn":1', '"turn":0'), "event 1 can't follow those before it"),
        (('"turn":1', '"turn":4294967295'), "event 1 can't follow those before it"),
        (('"seq":4', '"seq":5'), "event 5 where event 4 belongs"),
        (('"version":9', '"version":10'), "version 10"),
        (('"react"', '"other"'), "line 1 is no event of a run"),
        (('"turn":1', '"turn":-1'), "is no event of a run"),
    ],
)
def test_changed_logs_are_refused_and_say_why(store, change, words):
    text = agent(None).run_sync("go").run.export()
    assert change[0] in text
    for take in (store.import_run, replay):
        with pytest.raises(ReplayError, match=words):
            take(text.replace(*change))
    assert store.runs() == []


def test_a_changed_state_is_refused(store):
    run_id = store.import_run(agent(None).run_sync("go").run.export())
    store.compact(run_id)
    text = store.run(run_id).export()
    store.delete(run_id)
    for change in (
        ('"turn":3', '"turn":4'),
        ('"open":0', '"open":1'),
        ("line 1 of 2", "line 7 of 2"),
    ):
        assert change[0] in text
        with pytest.raises(
            ReplayError, match="the state in event 14 is not the one that was written"
        ):
            store.import_run(text.replace(change[0], change[1], 9))
    assert store.import_run(text) == run_id


def test_numbers_of_any_length_come_back():
    text = "9" * 5000
    reply = f'<thoughts>x</thoughts><output>{{"type": "RETURN", "value": {text}}}</output>'
    worker = Agent(lambda messages: reply, protocol="ticket", limits=Limits(json_digits=6000))
    result = worker.run_sync("go")
    assert str(result.value) == text
    assert result.run.log[-1].value == result.value
