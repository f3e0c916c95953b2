"""The crash test in short, and its judge: it must see each promise that a store could break."""

import copy
import os

import pytest

from crash import judge
from crash.jobs import Job
from crash.judge import Logs, Wrong
from crash.loop import CrashTest

SEED = 7 if os.environ.get("CI") else int.from_bytes(os.urandom(4))
JOB = Job("a", "react", 1)


def test_processes_killed_at_work_lose_and_repeat_nothing(tmp_path):
    print(f"seed {SEED}")
    seen = CrashTest(tmp_path, SEED, print).run(12)
    assert seen["kills"] == 12
    assert seen["runs replayed"] == seen["runs"] > 0


def log(*events):
    return [
        {"seq": seq, "at": 0.0, "event": {kind: data}} for seq, (kind, data) in enumerate(events)
    ]


STARTED = ("run_started", {"task": JOB.task})
REPLIED = ("model_replied", {"turn": 1})
OPENED = ("ticket_opened", {"ticket": "T1"})
COMPLETED = ("ticket_completed", {"ticket": "T1", "outcome": "ok"})
FINISHED = ("run_finished", {"reason": "finished", "value": str(JOB.right)})
RUN = {"run": log(STARTED, REPLIED, OPENED, COMPLETED, FINISHED)}
CALL = {"kind": "tool", "run": "run", "ticket": "T1", "key": "k", "job": "a", "step": 0}
CALL = {**CALL, "attempt": 0, "tool": "charge"}


def lines(*ats, **more):
    return [{**CALL, "at": at, **more} for at in ats]


def test_what_is_right_passes():
    judge.nothing_was_lost(Logs({"run": RUN["run"][:3]}), Logs(RUN), {"run": str(JOB.right)})
    judge.nothing_was_repeated(Logs({"run": RUN["run"][:3]}), lines("start"))
    judge.effects_are_as_declared(lines("start", "effect", "end"))
    judge.jobs_are_done([JOB], Logs(RUN), lines("start", "effect"))


@pytest.mark.parametrize(
    ("after", "finished"),
    [
        ({}, {}),
        ({"run": RUN["run"][:2]}, {}),
        ({"run": [*RUN["run"][:2], *RUN["run"][3:]]}, {}),
        ({"run": RUN["run"][:4]}, {"run": str(JOB.right)}),
        (RUN, {"run": "another value"}),
    ],
    ids=["the run", "an event", "another event", "the end that was told", "another end"],
)
def test_a_loss_is_seen(after, finished):
    with pytest.raises(Wrong):
        judge.nothing_was_lost(Logs({"run": RUN["run"][:3]}), Logs(after), finished)


def test_a_repeated_model_call_is_seen():
    line = {"at": "start", "kind": "model", "job": "a", "turn": 0}
    with pytest.raises(Wrong, match="reply that is kept"):
        judge.nothing_was_repeated(Logs(RUN), [line])
    judge.nothing_was_repeated(Logs(RUN), [{**line, "turn": 1}])


def test_a_repeated_tool_call_is_seen():
    with pytest.raises(Wrong, match="call that is finished"):
        judge.nothing_was_repeated(Logs(RUN), lines("start"))


@pytest.mark.parametrize(
    "wrong",
    [
        lines("start", "start"),
        lines("start", "start", tool="ship"),
        [*lines("start", tool="put"), *lines("start", tool="put", key="other")],
        [*lines("start", tool="put"), *lines("start", tool="put", ticket="T2")],
        [*lines("start", "effect"), *lines("start", "effect", key="l", ticket="T2", attempt=1)],
    ],
    ids=["once", "reconciled", "another key", "one key for two", "once by two tickets"],
)
def test_a_wrong_effect_is_seen(wrong):
    with pytest.raises(Wrong):
        judge.effects_are_as_declared(wrong)


def test_what_may_be_repeated_may_be():
    judge.effects_are_as_declared(lines("start", "effect", "start", "effect", tool="put"))
    judge.effects_are_as_declared(lines("start", "reconcile", "start", "effect", tool="ship"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda runs: runs.clear(),
        lambda runs: runs.update(again=runs["run"]),
        lambda runs: runs["run"].pop(),
        lambda runs: runs["run"].pop(3),
        lambda runs: runs["run"][-1]["event"]["run_finished"].update(value="0"),
        lambda runs: runs["run"][-1]["event"]["run_finished"].update(reason="limit"),
    ],
    ids=["no run", "two runs", "no end", "an open ticket", "a wrong value", "another end"],
)
def test_a_job_that_is_not_done_is_seen(spoil):
    runs = copy.deepcopy(RUN)
    spoil(runs)
    with pytest.raises(Wrong):
        judge.jobs_are_done([JOB], Logs(runs), lines("start", "effect"))
    with pytest.raises(Wrong):
        judge.jobs_are_done([JOB], Logs(RUN), lines("start"))
