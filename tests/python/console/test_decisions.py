"""A decision counts for exactly the call that was shown, and only once."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from callslip import Agent, RunCancelled, ScriptedModel, TicketStore, UsageError
from consoles import (
    Events,
    boxes,
    decide,
    leave_waiting,
    opened,
    parts_of,
    pay,
    pay_call,
    until,
)
from hostile import HOSTILE, Page, named
from scripted import block, call_once, delegate, finish, give

CHATTY = block(("one", "pay", {"invoice": 1}), ("two", "pay", {"invoice": 2}))


def page_of(client, run_id):
    answer = client.get(f"/runs/{run_id}")
    assert answer.status_code == 200
    return answer.text


@pytest.mark.one_process
def test_a_call_is_approved_and_the_run_goes_on(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        (box,) = boxes(page_of(client, run_id))
        answer = decide(client, box)
        assert (answer.status_code, answer.json()) == (200, {"done": "approve", "by": "127.0.0.1"})
        assert boxes(page_of(client, run_id)) == []
        agent = Agent(ScriptedModel([finish("paid")]), tools=[pay], store=store, name="bank")
        assert agent.resume_sync(run_id).tickets[0].result == "paid 7"
        assert "approved by 127.0.0.1" in page_of(client, run_id)


def test_a_call_of_a_run_that_works_is_denied_with_a_reason(store):
    script = ScriptedModel([pay_call(invoice=7), finish("not paid")])
    agent = Agent(script, tools=[pay], store=store)
    results = []
    worker = threading.Thread(target=lambda: results.append(agent.run_sync("Pay.")))
    with opened(store, by=lambda request: request.headers["user-agent"][:5]) as client:
        worker.start()
        until(lambda: store.tickets(awaiting_approval=True))
        (run,) = store.runs()
        (box,) = boxes(page_of(client, run.run_id))
        assert decide(client, box, "deny", "too <b>much</b>").status_code == 200
        worker.join(60)
    (ticket,) = results[0].tickets
    assert ticket.error == "The call of 'pay' was denied: too <b>much</b>"
    assert results[0].run.trace().tickets[0].approval.by == "pytho (127.0.0.1)"


@pytest.mark.parametrize(
    "changed",
    [{"seal": "0" * 64}, {"seal": ""}, {"seal": "\ud800"}, {"ticket": "T2"}, {"ticket": "T99"}],
    ids=str,
)
def test_another_call_than_the_one_shown_is_not_decided(changed):
    store = TicketStore()
    run_id = leave_waiting(store, CHATTY, protocol="chatty")
    with opened(store) as client:
        first, _ = boxes(page_of(client, run_id))
        assert decide(client, first, **changed).status_code in {404, 409}
        assert len(boxes(page_of(client, run_id))) == 2


def test_a_seal_is_of_one_run_only():
    store = TicketStore()
    first, second = (leave_waiting(store, pay_call(invoice=7)) for _ in "ab")
    with opened(store) as client:
        (one,), (other,) = (boxes(page_of(client, run)) for run in (first, second))
        assert one["seal"] != other["seal"]
        assert decide(client, one | {"address": other["address"]}).status_code == 409
        assert decide(client, one).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"do": "pay"},
        {"why": None},
        {"seal": 7},
        {"ticket": ["T1"]},
        {"why": "x" * 200_000},
        {"why": "only if the amount is right"},
        {"do": ["approve"]},
        {"do": {}},
        {"ticket": "T1\ud800"},
        {"seal": [[[[]]]]},
    ],
    ids=lambda body: str(body)[:20],
)
def test_what_is_no_decision_is_refused(body):
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        (box,) = boxes(page_of(client, run_id))
        assert decide(client, box, **body).status_code in {400, 404, 413}
        assert len(boxes(page_of(client, run_id))) == 1


@pytest.mark.parametrize("body", [b"", b"[" * 90_000, b"{}", b"[]", b"\xff", b'"approve"'])
def test_what_is_no_json_object_is_refused(body):
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        (box,) = boxes(page_of(client, run_id))
        assert decide(client, box, body=body).status_code == 400


@pytest.mark.parametrize("key", ["~7aCA", "~", "~!", "~7aCA.html", "%00", "a" * 5_000])
def test_what_is_no_run_is_not_found(key):
    with opened(TicketStore()) as client:
        assert client.get(f"/runs/{key}").status_code == 404


@pytest.mark.parametrize(
    ("by", "status", "kept"),
    [
        (lambda _: "ann\nroot (1.1.1.1)", 200, "ann root (1.1.1.1) (127.0.0.1)"),
        (lambda _: "x" * 100_000, 200, f"{'x' * 200} (127.0.0.1)"),
        (lambda _: "", 200, "127.0.0.1"),
        (lambda _: None, 200, "127.0.0.1"),
        (lambda _: 7, 500, None),
        (lambda request: asyncio.sleep(0), 500, None),
    ],
    ids=["lines", "long", "empty", "none", "number", "awaitable"],
)
@pytest.mark.filterwarnings("ignore:coroutine 'sleep' was never awaited")
def test_the_name_of_the_person_is_one_short_line(by, status, kept):
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store, by=by) as client:
        (box,) = boxes(page_of(client, run_id))
        assert decide(client, box).status_code == status
    approval = store.run(run_id).trace().tickets[0].approval
    assert approval.by == kept
    assert (approval.decision is None) == (kept is None)


def test_of_two_people_one_decides(store):
    run_id = leave_waiting(store, CHATTY, protocol="chatty")
    with opened(store) as client, ThreadPoolExecutor(8) as people:
        shown = boxes(page_of(client, run_id))
        assert len(shown) == 2
        for box in shown:
            words = ["approve", "deny"] * 4
            answers = list(people.map(lambda word, box=box: decide(client, box, word), words))
            assert sorted(one.status_code for one in answers) == [200] + [409] * 7
            assert all("already" in one.json()["error"] for one in answers if one.is_error)


def test_calls_below_are_decided_on_the_page_above():
    script = [
        delegate("Pay invoice 7."),
        *call_once("ticket", "pay", {"invoice": 7})[:1],
        give("paid"),
        give("all is paid"),
    ]
    store = TicketStore()
    agent = Agent(ScriptedModel(script), protocol="ticket", tools=[pay], store=store, delegate=True)

    def work():
        with suppress(RunCancelled):
            agent.run_sync("Pay the bills.")

    worker = threading.Thread(target=work)
    worker.start()
    with opened(store) as client:
        until(lambda: store.tickets(awaiting_approval=True))
        (below,) = store.tickets(awaiting_approval=True)
        (above,) = (run for run in store.runs() if run.parent_run is None)
        assert "1 run waiting for you" in client.get("/").text
        (box,) = boxes(page_of(client, above.run_id))
        assert box["address"] == f"/runs/{below.run_id}/decide"
        assert decide(client, box).status_code == 200
        until(lambda: not store.tickets(awaiting_approval=True))
        store.run(above.run_id).cancel()
        worker.join(60)


def test_a_call_is_shown_whole_as_it_is():
    secret = "sk-ant-api03-" + "a1B2" * 20
    note = "\n".join([*(f"line {number} {'x' * 300}" for number in range(400)), "the end"])
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7, note=f"{secret}\n{note}"))
    with opened(store) as client:
        html = page_of(client, run_id)
    box = Page(html[html.index('<section class="ask"') : html.index("</section>")] + "</section>")
    assert f"{secret}\n{note}" in box.text
    assert "more characters" not in box.text


@pytest.fixture(scope="module")
def hostile():
    """A console with a run for each hostile text, as its agent, task and argument."""
    store = TicketStore()
    runs = [
        leave_waiting(store, pay_call(invoice=7, note=text), name=text[:50] or "agent", task=text)
        for text in HOSTILE
    ]
    with opened(store) as client:
        yield client, store, runs


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_a_hostile_call_is_shown_as_text(hostile, at):
    client, store, runs = hostile
    page = Page(page_of(client, runs[at]))
    for one in (page, Page(client.get("/").text)):
        assert not one.elements & {"iframe", "base", "object", "link", "img"}
        assert [tag for tag, _, _ in one.values if tag == "script"] == []
        assert not [name for _, name in one.attributes if name.startswith("on")]
        assert one.markup == []
    (note,) = [ticket.arguments["note"] for ticket in store.tickets(run=runs[at])]
    shown = named(note if "\n" in note else json.dumps(note, ensure_ascii=False))
    assert shown in page.text


def test_why_a_call_waits_is_shown_and_a_finished_run_has_no_box(store):
    done = Agent(ScriptedModel([finish("4")]), store=store).run_sync("What is 2 + 2?")
    with opened(store) as client:
        assert boxes(page_of(client, done.run.id)) == []
        for address in (f"/runs/{done.run.id}.html", f"/runs/{done.run.id}.jsonl"):
            answer = client.get(address)
            assert answer.headers["content-disposition"].startswith("attachment; filename=")
        assert answer.text == done.run.export()


def test_a_name_that_is_none_is_a_mistake_of_the_program_and_decides_nothing(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store, by=lambda _: "\ud800") as client:
        (box,) = boxes(page_of(client, run_id))
        answer = decide(client, box)
        assert answer.is_error
        assert len(boxes(page_of(client, run_id))) == 1


def test_an_open_page_is_told_of_a_decision_made_elsewhere():
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client, Events(client, f"/runs/{run_id}/events") as events:
        told = iter(events)
        parts = parts_of(told, lambda parts: parts.get("asks"))
        store.run(run_id).approve("T1", by="ann")
        parts_of(told, lambda parts: parts["asks"] == [], parts)
        with pytest.raises(UsageError, match="already"):
            store.run(run_id).deny("T1")
