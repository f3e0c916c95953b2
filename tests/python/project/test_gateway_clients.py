"""The benchmark of clients through the gateway: a real client, and a model with known replies."""

import json
import sys
import time
from pathlib import Path

import pytest

from callslip import ScriptedModel

BENCHES = str(Path(__file__).resolve().parents[3] / "benches")

# Other programs there have the names of packages that tests start.
sys.path.append(BENCHES)
from eval_tasks import HELD_OUT, TASKS  # noqa: E402
from eval_tools import EFFECTS, TOOLS  # noqa: E402
from gateway_clients.__main__ import Way, by_client, measure, table  # noqa: E402
from gateway_clients.processes import Client  # noqa: E402
from gateway_clients.servers import gateway_at  # noqa: E402

sys.path.remove(BENCHES)
# Later tests give their processes this path.
assert BENCHES not in sys.path

ALARM = next(task for task in TASKS if "06:40" in task.text)
HALL = next(task for task in TASKS if "hall" in task.text)


def call(tool, **args):
    return json.dumps({"thought": "", "action": tool, "args": args})


def finish(answer):
    row = {"thought": "", "action": "FINISH", "final_answer": answer, "task_successful": True}
    return json.dumps(row)


ALARM_SET = call("set_alarm", time="06:40", label="gym")
TWICE = [ALARM_SET, call("set_alarm", time="06:40", label="Gym")]
DONE = finish("It has the number 90.")


@pytest.fixture
def row_of(tmp_path, monkeypatch):
    """A function that returns the row of the openai SDK for a task and the replies of a model."""
    monkeypatch.setenv("PYTHONPATH", BENCHES)

    def work(task, model, limit=60.0):
        with gateway_at(model, "react") as (url, counted):
            client = Client("openai_sdk", Path(sys.executable), url, "none", tmp_path / "log")
            try:
                return measure(
                    Way("openai SDK", "gateway", by_client(client, limit), counted), task
                )
            finally:
                client.close()

    return work


@pytest.mark.parametrize(
    ("replies", "right", "needless", "refused"),
    [
        ([ALARM_SET, DONE], True, 0, 0),
        (["The alarm is set.", ALARM_SET, DONE], True, 0, 1),
        ([*TWICE, DONE], True, 1, 0),
        ([call("switch_light", room="hall", on=False), ALARM_SET, DONE], True, 1, 0),
        ([ALARM_SET, finish("It is set.")], False, 0, 0),
        ([call("set_alarm", time="07:40", label="gym"), DONE], False, 1, 0),
        ([DONE], False, 0, 0),
    ],
    ids=["right", "refused", "twice", "another", "no value", "wrong argument", "no call"],
)
def test_a_task_is_right_if_its_calls_ran_and_the_answer_holds_the_value(
    row_of, replies, right, needless, refused
):
    row = row_of(ALARM, ScriptedModel(replies))

    assert (row["right"], row["needless"], row["refused"]) == (right, needless, refused), row
    assert row["requests"] == len(replies) - refused


def test_a_client_is_stopped_at_the_limit_and_its_calls_count(row_of):
    replies = iter([call("switch_light", room="hall", on=False)])

    def model(messages):
        for text in replies:
            return text
        time.sleep(4)
        return finish("off")

    row = row_of(HALL, model, limit=3.0)

    assert row["error"] == "not done after 3 s"
    assert [tool for tool, _ in row["made"]] == ["switch_light"]
    assert not row["right"]


def test_the_table_has_a_row_for_each_way():
    rows = [
        {"client": "a", "through": "gateway", "right": right, "made": [["t", {}]] * 2}
        | {"needless": 1, "refused": 3, "seconds": 2.0}
        for right in (True, False)
    ]
    rows.append({**rows[0], "through": "llama.cpp"})
    del rows[-1]["refused"]

    assert table(rows).splitlines()[2:] == [
        "| a | gateway | 1 of 2 | 4 | 2 | 6 | 2.0 |",
        "| a | llama.cpp | 1 of 1 | 2 | 1 | unknown | 2.0 |",
    ]


def test_each_tool_of_a_task_is_a_function_that_clients_can_run():
    for task in (*TASKS, *HELD_OUT):
        for tool in task.tools:
            assert tool.name in TOOLS
            assert tool.readonly == (tool.name not in EFFECTS)
