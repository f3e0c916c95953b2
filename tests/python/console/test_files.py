"""A console on the file of a store: beside its owner, after its end, and without one."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from callslip import Agent, ScriptedModel, StoreError, TicketStore, UsageError
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
from scripted import finish

BUTTON = '<button type="button" data-do='
OWNER = """
import sys
sys.path[:0] = {path!r}
from callslip import Agent, ScriptedModel, TicketStore
from consoles import pay, pay_call
from scripted import finish

store = TicketStore(sys.argv[1])
waiting = [run.run_id for run in store.runs() if run.status == "running"]
script = [finish("paid")] if waiting else [pay_call(invoice=7), finish("paid")]
agent = Agent(ScriptedModel(script), tools=[pay], store=store, name="bank")
print("open", flush=True)
result = agent.resume_sync(waiting[0]) if waiting else agent.run_sync("Pay the bills.")
print(result.value, flush=True)
input()
"""


@contextmanager
def owner(path):
    """Another process that works on a run of the file."""
    program = [sys.executable, "-c", OWNER.format(path=sys.path), path]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"open\n"
            yield process
        finally:
            process.kill()


def only_page(client):
    page = client.get("/").text
    return page.split('href="/runs/')[1].split('"')[0] if 'href="/runs/' in page else None


def test_beside_its_owner_a_file_is_read_and_after_its_death_decided(path):
    TicketStore(path).close()
    with opened(path) as client:
        with owner(path) as process:
            until(lambda: only_page(client) and "1 call waits" in client.get("/").text)
            run = f"/runs/{only_page(client)}"
            page = client.get(run).text
            assert f"process {process.pid}" in page
            assert BUTTON not in page
            assert f"which process {process.pid} has open" in client.get("/").text
            (box,) = boxes(page)
            refused = decide(client, box)
            assert refused.status_code == 409
            assert str(process.pid) in refused.json()["error"]
            with Events(client, f"{run}/events") as events:
                told = iter(events)
                parts = parts_of(told, lambda parts: parts.get("asks"))
                assert BUTTON not in text_of(parts, "asks")
                process.send_signal(signal.SIGKILL)
                process.wait()
                # The page that is open learns that it may decide now.
                parts_of(told, lambda parts: BUTTON in text_of(parts, "asks"), parts)
        assert BUTTON in client.get(run).text
        assert f"process {process.pid} has open" not in client.get("/").text
        assert decide(client, box).status_code == 200
        assert "already" in decide(client, box).json()["error"]
        # The owner comes back, and the page goes on with it.
        with owner(path) as process:
            assert process.stdout.readline() == b"paid\n"
            with Events(client, f"{run}/events") as events:
                parts_of(iter(events), lambda parts: "finished" in text_of(parts, "head"))
            assert "approved by 127.0.0.1" in client.get(run).text


def test_a_file_that_nobody_owns_is_decided_and_the_run_goes_on(path):
    with TicketStore(path) as store:
        run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(str(path), by=lambda _: "ann") as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        with Events(client, f"/runs/{run_id}/events") as events:
            told = iter(events)
            parts = parts_of(told, lambda parts: parts.get("asks"))
            assert decide(client, box).status_code == 200
            parts_of(told, lambda parts: parts["asks"] == [], parts)
    agent = Agent(ScriptedModel([finish("paid")]), tools=[pay], store=path, name="bank")
    result = agent.resume_sync(run_id)
    assert result.tickets[0].result == "paid 7"
    assert result.run.trace().tickets[0].approval.by == "ann (127.0.0.1)"
    agent.store.close()


def test_a_number_that_a_killed_process_has_left_is_nobody(path):
    with TicketStore(path) as store:
        run_id = leave_waiting(store, pay_call(invoice=7))
    for pid in (os.getpid(), os.getppid(), 1, 2**22 - 1, 10**30, 0, -1, "x"):
        lock = path.with_name(f"{path.name}.lock")
        lock.write_text(f"{pid}\nnow\npython\n")
        # What has just been written may be true.
        os.utime(lock, (0, 0))
        with opened(path) as client:
            assert BUTTON in client.get(f"/runs/{run_id}").text


@pytest.mark.parametrize("content", [None, b"", b"text"])
def test_a_decision_makes_no_file(path, content):
    with TicketStore(path) as store:
        run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(path) as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        for file in path.parent.iterdir():
            file.unlink()
        if content is not None:
            path.write_bytes(content)
        assert decide(client, box).status_code == 409
        assert client.get("/").status_code == 503
        assert [file.name for file in path.parent.iterdir()] == [path.name] * (content is not None)


def test_two_consoles_of_one_file_take_turns(path):
    with TicketStore(path) as store:
        runs = [leave_waiting(store, pay_call(invoice=7)) for _ in range(6)]
    with opened(path) as one, opened(path) as other:
        seen = [boxes(one.get(f"/runs/{run}").text)[0] for run in runs]

        def work(client, boxes):
            return [
                answer.status_code
                for box in boxes
                for answer in (decide(client, box), client.get("/"))
            ]

        with ThreadPoolExecutor(2) as both:
            first = both.submit(work, one, seen[:3])
            second = both.submit(work, other, seen[3:])
            assert first.result() + second.result() == [200] * 12


def test_a_decision_waits_while_another_process_has_the_file_for_a_moment(path, monkeypatch):
    with TicketStore(path) as store:
        run_id = leave_waiting(store, pay_call(invoice=7))
    tries = []

    def opening(path):
        tries.append(path)
        if len(tries) < 4:
            raise StoreError("it belongs to another process")
        return TicketStore(path)

    app = console(path, token=TOKEN)
    monkeypatch.setattr("callslip.console._source.TicketStore", opening)
    with served(app) as address, signed_in(address) as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        assert decide(client, box).status_code == 200
    assert len(tries) == 4


def test_a_file_that_this_process_has_open_is_refused(path):
    with TicketStore(path), pytest.raises(UsageError, match="pass its TicketStore"):
        console(path)
    app = console(path)
    with TicketStore(path), pytest.raises(UsageError, match="pass its TicketStore"):
        app._source.listing()


def test_what_is_no_file_of_a_store_is_refused(tmp_path):
    with pytest.raises(StoreError):
        console(tmp_path / "none.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("text")
    with pytest.raises(StoreError, match="is not the file of a store"):
        console(text)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_link_to_a_file_is_the_file(path, tmp_path):
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    with TicketStore(path) as store:
        leave_waiting(store, pay_call(invoice=7))
        with pytest.raises(UsageError, match="pass its TicketStore"):
            console(link)
