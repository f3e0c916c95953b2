"""`callslip answer`: results from outside, and answers to questions."""

import asyncio
import json

import pytest

from callslip import Agent, ScriptedModel, TicketStore, ask_user
from scripted import act, finish

QUESTION = {"question": "Which one?", "choices": ["red", "größer"]}


@pytest.fixture
def waiting(tmp_path):
    """A file that no process owns, with a run that awaits an answer."""
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        model = ScriptedModel([act("ask_user", **QUESTION)])
        agent = Agent(model, tools=[ask_user], store=store)

        async def leave_waiting():
            run = agent.start("go")
            async for event in run.watch():
                if event.kind == "ticket_opened":
                    break
            return run.id

        run_id = asyncio.run(leave_waiting())
    return path, run_id


def test_a_question_is_listed_and_answered_once(waiting, call):
    path, run_id = waiting
    assert f"{run_id}  T1 awaiting a result" in call("runs", path).out
    (row,) = json.loads(call("runs", path, "--waiting", "--json").out)
    assert (row["waiting"], row["awaiting_result"]) == ([], ["T1"])
    assert "awaiting a result" in call("show", path, run_id).out

    words = ("answer", path, run_id[:10], "T1")
    wrong = call(*words, '"green"', status=2).err
    assert 'must be one of "red" or "größer"' in wrong
    assert f"answered T1 of run {run_id}: ask_user" in call(*words, '"größer"', "--by", "ann").out
    assert "ann answered already" in call(*words, '"red"', status=2).err
    assert json.loads(call("runs", path, "--waiting", "--json").out) == []

    with TicketStore(path) as store:
        agent = Agent(ScriptedModel([finish()]), tools=[ask_user], store=store)
        assert agent.resume_sync(run_id).tickets[0].result == "größer"


def test_a_question_without_an_answer_fails(waiting, call):
    path, run_id = waiting
    call("answer", path, run_id, "T1", "--error", "nobody knows")
    with TicketStore(path) as store:
        (ticket,) = store.run(run_id).tickets
    assert ticket.error == "Error calling tool 'ask_user': nobody knows."


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["T1", "red"], "expected the result as JSON"),
        (["T7", '"red"'], "only T1 can be answered"),
    ],
)
def test_wrong_words_change_nothing(waiting, call, words, problem):
    path, run_id = waiting
    assert problem in call("answer", path, run_id, *words, status=2).err
    with TicketStore(path) as store:
        assert [ticket.id for ticket in store.tickets(awaiting="result")] == ["T1"]


@pytest.mark.parametrize("words", [[], ['"red"', "--error", "x"]])
def test_there_is_a_value_or_an_error(waiting, call, words):
    path, run_id = waiting
    with pytest.raises(SystemExit):
        call("answer", path, run_id, "T1", *words, status=2)


@pytest.mark.parametrize(
    "ticket", ["T4294967296", "T99999999999999999999", "T" + "9" * 5000, "T-1"]
)
def test_a_ticket_beyond_all_numbers_is_none(waiting, call, ticket):
    path, run_id = waiting
    assert "such as 'T1'" in call("answer", path, run_id, ticket, "5", status=2).err


def test_a_result_that_is_too_deep_is_no_json(waiting, call):
    path, run_id = waiting
    assert "the result as JSON" in call("answer", path, run_id, "T1", "[" * 99_999, status=2).err
