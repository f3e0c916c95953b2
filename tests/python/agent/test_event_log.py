"""The logger `callslip.run`: its records, their fields, and its silence."""

import asyncio
import json
import logging
import subprocess
import sys

import pytest

from callslip import Agent, ModelError, ModelReply, ScriptedModel, TicketStore, tool
from callslip.events import TicketOpened
from callslip.logs import JSONFormatter


def call(name, **args):
    return json.dumps({"thought": "secret plan", "action": name, "args": args})


FINISH = json.dumps(
    {"thought": "t", "action": "FINISH", "final_answer": "42", "task_successful": True}
)


@tool
def look(shelf: str) -> str:
    """Look at a shelf."""
    return f"private books of {shelf}"


@tool
def burn(shelf: str) -> str:
    """Burn a shelf."""
    raise ValueError("private reason")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


@pytest.fixture(autouse=True)
def heard(caplog):
    caplog.set_level(logging.WARNING, "callslip.run")


def run(*replies, **options):
    options = {"protocol": "react", "tools": [look, burn], "name": "clerk", **options}
    return Agent(ScriptedModel(replies), **options).run_sync("private task")


def lines(caplog):
    return [
        (record.levelname, record.message)
        for record in caplog.records
        if record.name == "callslip.run"
    ]


def fields(caplog, event):
    found = [one.callslip for one in caplog.records if one.name == "callslip.run"]
    return [one for one in found if one["event"] == event]


def test_a_run_logs_its_start_and_its_end(caplog):
    with caplog.at_level(logging.INFO, "callslip.run"):
        usage = {"input_tokens": 900, "output_tokens": 60}
        result = run(call("look", shelf="A"), ModelReply(FINISH, usage=usage))
    (_, start), (_, end) = lines(caplog)
    assert start == f"run {result.run.id} of 'clerk' started"
    assert end.startswith(
        f"run {result.run.id} finished: 2 turns, 1 ticket, 0 violations, 900+60 tokens, "
    )
    (ended,) = fields(caplog, "run_finished")
    assert (ended["turns"], ended["input_tokens"], ended["reason"]) == (2, 900, "finished")
    assert ended["run_id"] == result.run.id


def test_no_content_without_the_variable(caplog, monkeypatch):
    monkeypatch.delenv("CALLSLIP_LOG_CONTENT", raising=False)
    with caplog.at_level(logging.DEBUG, "callslip.run"):
        run(call("look", shelf="A"), call("burn", shelf="B"), FINISH)
    own = [record for record in caplog.records if record.name == "callslip.run"]
    text = "".join(f"{one.message}{one.callslip}" for one in own)
    assert "T1 look opened" in text
    assert not [word for word in ("private", "secret", "42'") if word in text]


def test_texts_with_the_variable(caplog, monkeypatch):
    monkeypatch.setenv("CALLSLIP_LOG_CONTENT", "1")
    with caplog.at_level(logging.DEBUG, "callslip.run"):
        run(call("look", shelf="A"), FINISH)
    assert fields(caplog, "ticket_completed")[0]["result"] == "private books of A"
    assert "secret plan" in fields(caplog, "model_replied")[0]["text"]


def test_a_violation_is_a_warning_that_forges_no_line(caplog):
    name = "x\nrun 1 of 'root' started\x1b[31m\u202e" + "y" * 5_000
    run(call(name, shelf="A"), FINISH)
    ((level, message),) = lines(caplog)
    assert level == "WARNING"
    assert " turn 1: unknown_tool: " in message
    assert message.isprintable()
    (violated,) = fields(caplog, "violated")
    assert len(violated["message"]) <= 200


def test_a_failed_tool_is_a_warning(caplog):
    result = run(call("burn", shelf="A"), FINISH)
    assert lines(caplog) == [("WARNING", f"run {result.run.id} T1 burn failed: error")]


def test_a_failed_run_logs_its_end(caplog):
    with caplog.at_level(logging.INFO, "callslip.run"), pytest.raises(ModelError):
        run(ConnectionError("private"))
    assert " ended (model_error): 1 turn, " in lines(caplog)[-1][1]


@pytest.mark.parametrize(("word", "text"), [("approve", "was approved"), ("deny", "was denied")])
def test_approvals_and_decisions(caplog, word, text, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(
            ScriptedModel([call("pay", amount=3), FINISH]),
            protocol="react",
            tools=[pay],
            store=store,
        )
        with caplog.at_level(logging.INFO, "callslip.run"):
            result = agent.run_sync("go", approve=lambda ticket: word == "approve")
    said = [message for _, message in lines(caplog)]
    assert f"run {result.run.id} T1 pay waits for approval" in said
    assert f"run {result.run.id} T1 pay {text}" in said


def test_a_decision_while_no_driver_works_on_the_run(caplog):
    agent = Agent(ScriptedModel([call("pay", amount=3), FINISH]), protocol="react", tools=[pay])
    logs = []

    async def main():
        async with agent.stream("go") as running:
            async for event in running:
                if isinstance(event, TicketOpened):
                    logs.append(running.run.export())
                    running.approve("T1")

    asyncio.run(asyncio.wait_for(main(), 20))
    # As a process leaves it that ends while the call is awaiting approval.
    with TicketStore() as store:
        run = store.run(store.import_run(logs[0]))
        with caplog.at_level(logging.INFO, "callslip.run"):
            run.approve("T1")
    assert lines(caplog) == [("INFO", f"run {run.id} T1 pay was approved")]


def test_a_line_of_json(caplog):
    with caplog.at_level(logging.INFO, "callslip.run"):
        result = run(FINISH)
    first = json.loads(JSONFormatter().format(caplog.records[0]))
    assert (first["level"], first["logger"]) == ("INFO", "callslip.run")
    assert first["callslip"]["run_id"] == result.run.id


def test_a_program_that_configures_nothing_reads_nothing():
    program = (
        "import logging, callslip\n"
        "model = callslip.ScriptedModel(['nonsense', 'nonsense', 'nonsense'])\n"
        "agent = callslip.Agent(model, protocol='react')\n"
        "try:\n    agent.run_sync('x')\n"
        "except callslip.CallslipError as error:\n    print(error.run._feed)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=200
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("driver", ["run", "run_sync"])
@pytest.mark.parametrize("part", ["handler", "filter"])
def test_what_a_handler_raises_ends_no_run(monkeypatch, capsys, part, driver, shown):
    """Neither at an event, nor where the failure of a tool is logged."""

    def breaks(record):
        raise RuntimeError("the disk of the log is full")

    handler = logging.Handler()
    if part == "handler":
        handler.emit = breaks
    else:
        handler.addFilter(breaks)
    logger = logging.getLogger("callslip")
    monkeypatch.setattr(logging, "raiseExceptions", shown)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    agent = Agent(ScriptedModel([call("burn", shelf="a"), "nonsense", FINISH]), tools=[look, burn])
    result = agent.run_sync("go") if driver == "run_sync" else asyncio.run(agent.run("go"))
    assert result.value == "42"
    assert (capsys.readouterr().err.count("the disk of the log is full") > 2) == shown


def test_a_record_names_the_place_that_has_written_it(caplog):
    run(call("burn", shelf="a"), FINISH)
    (record,) = [one for one in caplog.records if one.name == "callslip.tools"]
    assert (record.filename, record.funcName) == ("failure.py", "log_failure")
