"""Pages that follow their run: what is sent, to whom, and for how long."""

import json
import re
import threading
from contextlib import ExitStack

import pytest

from callslip import Agent, ScriptedModel, TicketStore, tool
from callslip.console import console
from consoles import (
    TOKEN,
    Events,
    boxes,
    decide,
    leave_waiting,
    opened,
    parts_of,
    pay,
    pay_call,
    served,
    signed_in,
    text_of,
    until,
)
from hostile import HOSTILE
from scripted import act, delegate, finish, give, wait

pytestmark = pytest.mark.filterwarnings("ignore:The `is_closed`")


@pytest.fixture
def steps():
    """Lets a run take one step after the other."""
    return threading.Semaphore(0)


def worker_of(store, steps, replies):
    @tool
    def step(number: int) -> str:
        """Step."""
        assert steps.acquire(timeout=60)
        return f"step {number} is done"

    agent = Agent(ScriptedModel(replies), tools=[step, pay], store=store, name="stepper")
    return threading.Thread(target=lambda: agent.run_sync("Take steps."))


def test_a_run_grows_on_its_page_and_only_what_changes_is_sent(store, steps):
    script = [*(act("step", number=number) for number in range(6)), finish("all done")]
    worker = worker_of(store, steps, script)
    with opened(store) as client:
        worker.start()
        until(store.tickets)
        (run,) = store.runs()
        seen = client.get(f"/runs/{run.run_id}").text
        with Events(client, f"/runs/{run.run_id}/events") as events:
            told = checked(events)
            parts = parts_of(told, has_row("Turn 1"))
            for number in range(6):
                steps.release()
                parts_of(told, has_row(f"step {number} is"), parts)
            parts_of(told, has_row("Turn 7"), parts)
            parts_of(told, lambda parts: "finished" in text_of(parts, "head"), parts)
            after = client.get(f"/runs/{run.run_id}").text
            parts_of(told, lambda parts: digests(parts) == shown(after), parts)
        worker.join(60)
    assert "all done" in text_of(parts, "task")
    assert len(shown(seen)) < len(shown(after))


def checked(events):
    """The changes of a page: nothing is sent that the page has already."""
    known = {}
    for name, data in events:
        if name == "pieces":
            for at, (digest, _) in data["changed"].items():
                assert known.get((data["section"], at)) != digest
                known[data["section"], at] = digest
        yield name, data


def has_row(text):
    return lambda parts: text in text_of(parts, "rows")


def digests(parts):
    return [
        digest
        for section in ("head", "task", "legend", "rows")
        for digest, _ in parts.get(section, [])
    ]


def shown(page):
    return re.findall(r'data-digest="(\w+)"', page)


def test_the_list_of_runs_follows_and_those_that_wait_are_first(store):
    with opened(store) as client, Events(client, "/events?state=") as events:
        told = iter(events)
        parts = parts_of(told, lambda parts: "No runs yet" in text_of(parts, "end"))
        waiting = leave_waiting(store, pay_call(invoice=7))
        Agent(ScriptedModel([finish("4")]), store=store, name="later").run_sync("What is 2 + 2?")
        parts_of(
            told,
            lambda parts: len(parts["rows"]) == 2 and "waiting" in text_of(parts, "head"),
            parts,
        )
    assert waiting in parts["rows"][0][1]
    assert "1 run waiting for you" in text_of(parts, "head")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, "wfe"),
        ({"state": "waiting"}, "w"),
        ({"state": "running"}, "w"),
        ({"state": "finished"}, "f"),
        ({"state": "failed"}, "e"),
        ({"state": "no such"}, "wfe"),
        ({"agent": "f"}, "f"),
        ({"agent": "F"}, ""),
        ({"text": "TASK OF"}, "fe"),
        ({"text": "pay", "agent": "w"}, "w"),
        ({"text": "</title>"}, ""),
    ],
    ids=str,
)
def test_runs_are_chosen(query, shown, several):
    page = several.get("/", params=query).text
    names = "".join(name for name in "wfe" if f">{name} · react" in page)
    assert names == shown
    assert ("No run is like this" in page) == (not shown)


@pytest.fixture(scope="module")
def several():
    store = TicketStore()
    leave_waiting(store, pay_call(invoice=7), name="w")
    Agent(ScriptedModel([finish("x")]), store=store, name="f").run_sync("task of f")
    with pytest.raises(Exception, match="has 0 replies"):
        Agent(ScriptedModel([]), store=store, name="e").run_sync("task of e")
    with opened(store) as client:
        yield client


def test_a_page_is_at_most_so_long(several):
    store = TicketStore()
    agent = Agent(ScriptedModel([finish("x")] * 130), store=store)
    for number in range(130):
        agent.run_sync(f"task {number}")
    waiting = leave_waiting(store, pay_call(invoice=7))
    for number in range(3):
        agent = Agent(ScriptedModel([finish("x")]), store=store)
        agent.run_sync(f"later {number}")
    with opened(store) as client:
        page = client.get("/?text=").text
        after = client.get(page.split('id="after" href="')[1].split('"')[0].replace("&amp;", "&"))
        assert after.text.count("<tr ") == 34
        assert "Runs before" in after.text
        assert client.get("/?page=99999").text.count("<tr ") == 0
    assert page.count("<tr ") == 100
    assert page.index(waiting) < page.index("later 2")
    assert ">34 more runs</a>" in page


@pytest.mark.one_process
def test_64_pages_are_open_at_once_and_each_is_told(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client, ExitStack() as pages:
        readers = [
            iter(pages.enter_context(Events(client, f"/runs/{run_id}/events"))) for _ in range(64)
        ]
        seen = [parts_of(reader, lambda parts: parts.get("asks")) for reader in readers]
        assert client.get(f"/runs/{run_id}/events").status_code == 503
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        assert decide(client, box).status_code == 200
        for reader, parts in zip(readers, seen, strict=True):
            parts_of(reader, lambda parts: parts["asks"] == [], parts)


def test_a_page_that_is_closed_makes_room(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    with served(app) as address, signed_in(address) as client:
        for _ in range(3):
            with Events(client, f"/runs/{run_id}/events") as events:
                parts_of(iter(events), lambda parts: parts.get("asks"))
                assert app._live._pages >= 1
        until(lambda: app._live._pages == 0)
        assert app._live._views == {}


def test_equal_pages_are_rendered_once(store, monkeypatch):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    rendered = []
    render = app._render_run
    monkeypatch.setattr(app, "_render_run", lambda *one: (rendered.append(one), render(*one))[1])
    with served(app) as address, signed_in(address) as client, ExitStack() as pages:
        for _ in range(20):
            reader = pages.enter_context(Events(client, f"/runs/{run_id}/events"))
            parts_of(iter(reader), lambda parts: parts.get("asks"))
    # A store may still be writing behind its runs.
    assert 1 <= len(rendered) <= 3


def test_streams_end_when_the_server_does(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    page = f"/runs/{run_id}/events"
    with served(app) as address, signed_in(address) as client, Events(client, page) as events:
        told = iter(events)
        parts_of(told, lambda parts: parts.get("asks"))
        app.end_streams()
        for _ in told:
            pass
        until(lambda: app._live._pages == 0)


def test_a_run_that_is_deleted_is_told(store):
    run_id = Agent(ScriptedModel([finish("x")]), store=store).run_sync("x").run.id
    with opened(store) as client, Events(client, f"/runs/{run_id}/events") as events:
        told = iter(events)
        parts_of(told, lambda parts: "rows" in parts)
        store.delete(run_id)
        assert run_id in parts_of(told, lambda parts: parts.get("problem"))["problem"]
        assert client.get(f"/runs/{run_id}").status_code == 404


def test_a_mistake_in_a_page_is_logged_and_the_others_live(store, monkeypatch, caplog):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)

    def fail(*_):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(app, "_render_run", fail)
    with served(app) as address, signed_in(address) as client:
        with Events(client, f"/runs/{run_id}/events") as events:
            told = parts_of(iter(events), lambda parts: parts.get("problem"))
        assert client.get("/").status_code == 200
    assert told["problem"] == "this page cannot be shown: the program's log says why"
    assert "ZeroDivisionError" in caplog.text


def test_a_run_without_the_one_above_is_listed_by_itself():
    script = [delegate("inner"), give("inner answer"), wait("T1"), give("x")]
    run = Agent(ScriptedModel(script), protocol="ticket", delegate=True).run_sync("outer").run
    (child,) = run.children
    store = TicketStore()
    store.import_run(child.export())
    with opened(store) as client:
        assert f'href="/runs/{child.id}"' in client.get("/").text


def test_an_open_page_survives_a_look_that_fails(monkeypatch):
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN)
    version, failing = app._live._version, []

    def look():
        if failing:
            raise OverflowError("a mistake")
        return version()

    monkeypatch.setattr(app._live, "_version", look)
    page = f"/runs/{run_id}/events"
    with served(app) as address, signed_in(address) as client, Events(client, page) as events:
        told = iter(events)
        parts = parts_of(told, lambda parts: parts.get("asks"))
        failing.append(1)
        store.run(run_id).deny("T1")
        failing.clear()
        parts_of(told, lambda parts: parts["asks"] == [], parts)


@pytest.mark.parametrize("run_id", [*HOSTILE[:8], "a/../b", "x.html", ".", "~", "y" * 300, ""])
def test_any_id_of_an_import_has_an_address(run_id):
    source = TicketStore()
    result = Agent(ScriptedModel([finish("x")]), store=source, name="agent").run_sync("the task")
    log = result.run.export().replace(f'"{result.run.id}"', json_text(run_id))
    store = TicketStore()
    try:
        imported = store.import_run(log)
    except Exception as error:
        pytest.skip(f"no run has such an id: {error}")
    with opened(store) as client:
        page = client.get("/").text
        address = page.split('href="')[1].split('"')[0]
        assert "the task" in client.get(address).text
        assert client.get(f"{address}.jsonl").text == store.run(imported).export()


def json_text(text):
    return json.dumps(text.encode(errors="replace").decode())
