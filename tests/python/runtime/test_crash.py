"""The crash test in short, and its judge: it must see each promise that a store could break."""

import copy

import pytest

from crash import judge
from crash.decisions import DECISIONS, WAYS, decide_and_die
from crash.jobs import Job
from crash.judge import Wrong
from crash.logs import Logs
from crash.loop import CrashTest
from random_cases import SEED

JOB = Job("a", "react", 1)


@pytest.mark.random_cases
@pytest.mark.timeout(1200)
def test_processes_killed_at_work_lose_and_repeat_nothing(tmp_path):
    print(f"seed {SEED}")
    seen = CrashTest(tmp_path, SEED, print).run(12)
    assert seen["kills"] == 12
    assert seen["runs replayed"] == seen["jobs"] + seen["runs below others"]
    assert seen["runs below others"] > 0


def test_a_decision_that_was_acknowledged_stands(tmp_path):
    print(f"seed {SEED}")
    seen = decide_and_die(tmp_path, 32, SEED, print)
    assert {seen[decision] for decision in DECISIONS} == {8}
    assert {seen[f"by a {way}"] for way in WAYS} == {8}


def log(*events):
    return [
        {"seq": seq, "at": 0.0, "event": {kind: data}} for seq, (kind, data) in enumerate(events)
    ]


STARTED = ("run_started", {"task": JOB.task})
REPLIED = ("model_replied", {"turn": 1})
OPENED = ("ticket_opened", {"ticket": 1})
COMPLETED = ("ticket_completed", {"ticket": 1, "outcome": {"ok": 1}})
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


BOSS = Job("b", "ticket", 1, 1)
PART = BOSS.part(0, "DELEGATE")
GIVEN = ("ticket_opened", {"ticket": 1, "kind": "task"})
BELOW = ("run_started", {"task": PART.task, "parent": {"run_id": "boss", "ticket": 1}})


def family():
    """A job whose only step is a job of its own, and the ledger of both."""
    done = ("ticket_completed", {"ticket": 1, "outcome": {"ok": PART.right}})
    end = ("run_finished", {"reason": "finished", "value": PART.right})
    runs = {
        "boss": log(("run_started", {"task": BOSS.task}), GIVEN, done, end),
        "boss.T1": log(BELOW, end),
    }
    steps = [line for step in range(PART.steps) for line in lines("effect", job="b-0", step=step)]
    return runs, steps


def test_a_job_with_another_below_it_passes():
    runs, steps = family()
    judge.jobs_are_done([BOSS], Logs(runs), steps)
    judge.nothing_is_left_below(Logs(runs))
    judge.nothing_is_left_below(Logs({"boss": runs["boss"][:2], "boss.T1": runs["boss.T1"][:1]}))


def test_a_run_that_is_left_below_is_seen():
    runs, _ = family()
    with pytest.raises(Wrong, match="was left"):
        judge.nothing_is_left_below(Logs({**runs, "boss.T1": runs["boss.T1"][:1]}))
    with pytest.raises(Wrong, match="no ticket"):
        judge.nothing_is_left_below(Logs({**runs, "boss": runs["boss"][:1]}))
    with pytest.raises(Wrong, match="no ticket"):
        judge.nothing_is_left_below(Logs({"boss.T1": runs["boss.T1"]}))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda runs: runs.pop("boss.T1"),
        lambda runs: runs["boss.T1"].pop(),
        lambda runs: runs["boss"][2]["event"]["ticket_completed"].update(outcome={"ok": 0}),
        lambda runs: runs["boss"][2]["event"]["ticket_completed"].update(outcome={"error": {}}),
        lambda runs: runs.update({"boss.T2": runs["boss.T1"]}),
    ],
    ids=["no run", "no end", "another value", "a failure", "two runs"],
)
def test_a_part_of_a_job_that_is_not_done_is_seen(spoil):
    runs, steps = family()
    spoil(runs)
    with pytest.raises(Wrong):
        judge.jobs_are_done([BOSS], Logs(runs), steps)


ASKED = ("ticket_opened", {"ticket": 1, "needs_approval": True})
APPROVED = ("approved", {"ticket": 1})
DENIED = ("ticket_completed", {"ticket": 1, "outcome": {"denied": {"message": "no"}}})
DOUBT = ("ticket_completed", {"ticket": 1, "outcome": {"in_doubt": {"message": "?"}}})
RESUMED = ("noted", {"note": "resumed"})


def decided(*ats, denied=False, alone=False):
    said = {"kind": "approval", "run": "run", "ticket": "T1", "denied": denied, "alone": alone}
    return [{"at": at, **said} for at in ats]


def asked(*events, waiting=()):
    return Logs({"run": log(STARTED, REPLIED, ASKED, *events)}, {("run", at) for at in waiting})


def test_what_was_approved_of_or_denied_passes():
    judge.approvals_hold(asked(waiting=["T1"]), decided("asked"))
    judge.approvals_hold(
        asked(APPROVED, COMPLETED), [*decided("asked", "decided"), *lines("start")]
    )
    judge.approvals_hold(asked(DENIED), decided("asked", "decided", denied=True, alone=True))
    judge.nothing_was_repeated(asked(), decided("asked"))


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        (asked(), []),
        (asked(APPROVED, waiting=["T1"]), decided("asked")),
        (asked(waiting=["T1"]), decided("asked", "decided", alone=True)),
        (asked(waiting=["T1"]), decided("asked", "decided", alone=True, denied=True)),
        (asked(waiting=["T1"]), [*decided("asked"), *lines("start")]),
        (asked(APPROVED), []),
        (asked(APPROVED), decided("asked", denied=True)),
        (asked(DENIED), decided("asked")),
        (asked(APPROVED, APPROVED), decided("asked")),
        (Logs({**asked(DENIED).runs, "run.T1": RUN["run"]}), decided("asked", denied=True)),
    ],
    ids=[
        "not listed",
        "still listed",
        "an approval lost",
        "a denial lost",
        "made unasked",
        "approved by nobody",
        "approved but denied",
        "denied but approved",
        "approved twice",
        "denied and begun",
    ],
)
def test_an_approval_that_does_not_hold_is_seen(logs, said):
    with pytest.raises(Wrong):
        judge.approvals_hold(logs, said)


@pytest.mark.parametrize("event", [APPROVED, DENIED])
def test_who_is_asked_again_is_seen(event):
    with pytest.raises(Wrong, match="asked again"):
        judge.nothing_was_repeated(asked(event), decided("asked"))


def test_a_call_that_was_approved_of_between_processes_is_made_by_the_next():
    alone = decided("asked", "decided", alone=True)
    with pytest.raises(Wrong, match="never made"):
        judge.approvals_count(asked(RESUMED, APPROVED, RESUMED, DOUBT), alone)
    judge.approvals_count(asked(APPROVED, RESUMED, RESUMED, DOUBT), alone)
    judge.approvals_count(asked(APPROVED, RESUMED, DOUBT), decided("asked", "decided"))
    judge.approvals_count(asked(APPROVED, RESUMED, COMPLETED), alone)
