"""What those do who run a fleet: make a database ready, look after it, deploy."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from callslip import Agent, ScriptedModel, StoreError, TicketStore, UsageError, tool
from callslip.cli import main
from callslip.fleet import Fleet, WorkerStatus, migrate, status
from fleets import ledger
from fleets.crash import SUPPORT, Workers
from postgres import Proxy

FINISH = json.dumps(
    {"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": True}
)


@pytest.fixture
def empty(postgres):
    """The URL of a database without tables."""
    url = postgres.new_database(ready=False)
    yield url
    postgres.drop_database(url)


def run_one(store, agent=None):
    return Agent(lambda messages: FINISH, store=store, name="clerk").run_sync("?").run.id


def test_a_database_is_made_ready_once_and_the_tables_stay(empty, capsys):
    with pytest.raises(StoreError, match="callslip migrate"):
        TicketStore(empty)
    assert main(["migrate", empty]) == 0
    assert "made ready, and has version 4" in capsys.readouterr().out
    with TicketStore(empty) as store:
        run_id = run_one(store)
    assert migrate(empty) == (4, 4)
    with TicketStore(empty) as store:
        assert store.run(run_id).finished


def test_tables_of_a_later_version_are_refused(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE callslip.meta SET version = 99")
    for act in (TicketStore, migrate):
        with pytest.raises(StoreError, match="has schema version 99, this callslip knows up to 4"):
            act(database)


def test_tables_of_an_earlier_version_are_refused_until_they_are_migrated(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE callslip.meta SET version = 1")
    with pytest.raises(StoreError, match="has schema version 1, this callslip needs 4: call `call"):
        TicketStore(database)


def test_the_page_on_versions_names_the_present_formats(database, tmp_path):
    (before, now) = migrate(database)
    file = tmp_path / "runs.sqlite"
    with TicketStore(file) as store:
        log = json.loads(store.run(run_one(store)).export().splitlines()[0])
    with sqlite3.connect(file) as connection:
        (of_file,) = connection.execute("PRAGMA user_version").fetchone()
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "versions.md").read_text("utf-8")
    assert before == now
    assert f"| a store in PostgreSQL | {now} |" in page
    assert f"| a store in SQLite | {of_file} |" in page
    assert f"`events`) | {log['event']['run_started']['version']} |" in page


def test_many_may_migrate_at_once(empty):
    threads = [threading.Thread(target=migrate, args=[empty]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with TicketStore(empty) as store:
        assert status(store).queued == 0


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("postgresql://", "no host"),
        ("postgresql://nobody@127.0.0.1:1/nothing", "can't be reached"),
        ("postgresql://host/db?sslmode=often", "sslmode"),
    ],
)
def test_an_address_that_is_wrong_is_told(url, hint):
    with pytest.raises(StoreError, match=hint):
        TicketStore(url)


def test_nothing_is_sent_in_clear_text_to_another_machine_unasked():
    """The address is one that isn't a loopback address, and reaches this machine all the same."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"postgresql://me:secret@0.0.0.0:{server.getsockname()[1]}/agents"
        heard = []

        def answer():
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    request = connection.recv(8)
                    # `N`: this server has no TLS.
                    connection.sendall(b"N")
                    heard.append((request[4:], connection.recv(1000)))

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(
            StoreError, match=r"it offers no TLS.* pass \?sslmode=disable"
        ) as caught:
            TicketStore(address)
        assert "secret" not in str(caught.value)
        with pytest.raises(StoreError):
            TicketStore(f"{address}?sslmode=prefer")
        answering.join(30)
    (code, nothing), (_, startup) = heard
    assert (code, nothing) == (bytes.fromhex("04d2162f"), b"")
    assert b"agents" in startup


def test_the_password_is_never_shown(database):
    with_password = database.replace("callslip@", "callslip:secret@")
    with TicketStore(with_password) as store:
        assert "secret" not in f"{store!r} {store.address}"
        assert store.address == database


def test_durability_is_that_of_the_database(database):
    with pytest.raises(UsageError, match="synchronous_commit"):
        TicketStore(database, durability="normal")


def test_a_worker_that_was_killed_is_not_busy(store):
    now = status(store)
    options = {"version": "1", "agents": [], "queues": [], "lost": 0, "refused": 0, "slots": 4}
    killed = WorkerStatus(id="killed", busy=4, seen=60.0, **options)
    alive = WorkerStatus(id="alive", busy=1, seen=3.0, **options)
    assert replace(now, workers=[killed, alive]).metric("busy") == 0.25
    assert replace(now, workers=[killed]).metric("busy") == 0


def test_status_says_what_waits(store, database, capsys):
    async def submit():
        fleet = Fleet(store)
        for number in range(3):
            await fleet.submit("clerk", str(number), tenant="acme" if number else None)

    asyncio.run(submit())
    run_one(store)
    now = status(store)
    (queue,) = [one for one in now.queues if one.name == "default"]
    assert (now.queued, now.finished, queue.waiting) == (3, 1, 3)
    assert queue.tenants == {"acme": 2, "": 1}
    assert now.metric("queue_length") == 3
    assert now.metric("queue_age") == queue.oldest > 0
    assert now.metric("busy") == 0
    with pytest.raises(UsageError, match="queue_age"):
        now.metric("mood")
    assert main(["status", database]) == 0
    said = capsys.readouterr().out
    assert "3 runs queued, 0 running (0 at rest), 1 finished" in said
    assert "no standby, commits wait for no standby" in said
    assert main(["status", database, "--metric", "queued"]) == 0
    assert capsys.readouterr().out == "3\n"
    assert main(["status", database, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queued"] == 3


def test_commands_say_which_database_has_no_run(database, capsys):
    with TicketStore(database) as store:
        address = store.address
    assert main(["show", database]) == 2
    assert (
        capsys.readouterr().err == f"callslip: there is no run in {address}: pass another store\n"
    )
    assert main(["replay", database]) == 0
    assert capsys.readouterr() == ("", f"callslip: there is no run in {address}\n")
    assert main(["show", database, "nope"]) == 2
    hint = f"there is no run nope in {address}: call callslip runs for a list"
    assert capsys.readouterr().err == f"callslip: {hint}\n"


def test_plain_sql_sees_the_same_in_the_views(store):
    run_id = run_one(store)
    query = "SELECT run_id, status, turns FROM callslip.runs WHERE run_id = $1"
    (row,) = store.query(query, [run_id])
    assert row == {"run_id": run_id, "status": "finished", "turns": 1}
    events = store.query("SELECT seq, kind, data FROM callslip.events ORDER BY seq")
    assert [one["kind"] for one in events] == [event.kind for event in store.run(run_id).log]
    assert all(json.loads(one["data"]) is not None for one in events)
    with pytest.raises(StoreError, match="can't be run"):
        store.query("DELETE FROM callslip.run RETURNING id")
    with pytest.raises(StoreError, match="nothing"):
        store.query("SELECT nothing")


def test_the_commands_of_stores_take_the_url(store, database, tmp_path, capsys):
    run_id = run_one(store)
    assert main(["runs", database]) == 0
    assert run_id in capsys.readouterr().out
    assert main(["show", database, run_id[:5]]) == 0
    assert "done" in capsys.readouterr().out
    assert main(["watch", database, run_id, "--json"]) == 0
    assert capsys.readouterr().out.splitlines() == store.run(run_id).export().splitlines()
    assert main(["export", database]) == 0
    log = capsys.readouterr().out
    (tmp_path / "log").write_text(log)
    store.delete(run_id)
    assert main(["import", database, str(tmp_path / "log")]) == 0
    assert main(["replay", database, run_id]) == 0
    assert "all the same" in capsys.readouterr().out
    assert main(["show", database, "nothing"]) == 2
    assert f"there is no run nothing in {database}" in capsys.readouterr().err


def test_a_decision_at_the_terminal_reaches_the_workers(store, database, capsys):
    call = json.dumps({"thought": "t", "action": "pay", "args": {"amount": 7}})

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    agent = Agent(ScriptedModel([call, FINISH]), tools=[pay], name="clerk")

    async def work():
        fleet = Fleet(store, [agent])
        run_id = await fleet.submit("clerk", "Pay 7.")
        assert await fleet.drive(run_id) == "rests"
        (ticket,) = store.run(run_id).awaiting_approval
        approve = ["approve", database, run_id, "T1", "--by", "Ann"]
        assert main(approve) == 2
        assert main([*approve, "--seal", ticket.seal]) == 0
        assert "as soon as a worker" in capsys.readouterr().out
        assert await fleet.drive(run_id) == "over"
        assert store.tickets(run=run_id)[0].result == "paid 7"

    asyncio.run(work())


def as_role(url, role, name):
    """The URL of a database for a new user with this role alone."""
    user = f"{name}_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN IN ROLE {role}")
    return url.replace("callslip@", f"{user}@")


def test_a_web_server_submits_decides_and_reads_and_writes_no_log(store, database):
    web = as_role(database, "callslip_client", "web")
    work = as_role(database, "callslip_worker", "work")

    async def main():
        with TicketStore(web) as client, TicketStore(work) as shared:
            agent = Agent(lambda messages: FINISH, name="clerk", store=shared)
            working = asyncio.create_task(Fleet(shared, [agent]).work(queues=["default", "own"]))
            woken = []
            fleet = Fleet(client, dispatch=woken.append)
            run_id = await fleet.submit("clerk", "?", queue="own")
            assert (await fleet.result(run_id, timeout=30)).value == "done"
            again = await asyncio.wait_for(client.run(run_id).send("more"), 30)
            assert again.value == "done"
            assert status(client).finished == 1
            assert (woken[0], await fleet.due()) == (run_id, [])
            with pytest.raises(StoreError, match="permission denied"):
                await Agent(lambda messages: FINISH, store=client).run("?")
            with pytest.raises(StoreError, match="permission denied"):
                client.delete(run_id)
            working.cancel()
            await asyncio.wait([working])

    asyncio.run(main())


FLEET = """
import os
from callslip import Agent, TicketStore
from callslip.fleet import Fleet

def model(messages):
    return %r

fleet = Fleet(TicketStore(os.environ["DATABASE_URL"]), [Agent(model, name="clerk")], lease=5)
"""


def test_the_command_works_until_it_is_told_to_end(store, database, tmp_path):
    (tmp_path / "app.py").write_text(FLEET % FINISH)
    environment = {**os.environ, "DATABASE_URL": database}
    command = [sys.executable, "-m", "callslip", "work", "app:fleet", "--slots", "4"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:

        async def submit():
            fleet = Fleet(store)
            return await fleet.result(await fleet.submit("clerk", "?"), timeout=60)

        assert asyncio.run(submit()).value == "done"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
    assert status(store).workers == []


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("app", "module:name"),
        ("nothing:fleet", "cannot be imported"),
        ("json:dumps", "to be a Fleet"),
    ],
)
def test_the_command_says_what_is_wrong_with_its_fleet(fleet, said, capsys):
    assert main(["work", fleet]) == 2
    assert said in capsys.readouterr().err


def test_all_workers_are_replaced_and_no_run_notices(store, database):
    """Each is told to end while runs are under way; none ends as cancelled, or waits for the
    lease of ten minutes."""
    workers = Workers(database, 3, "--ledger", database, "--lease", "600", "--wait", "0.05")
    ledger.make(database)

    async def roll():
        fleet = Fleet(store)
        runs = [await fleet.submit("busy", f"TASK-{number}") for number in range(12)]
        await asyncio.sleep(1.5)
        for number in range(3):
            workers.signal(number, signal.SIGTERM)
            await asyncio.to_thread(workers.processes[number].wait, 60)
            workers.restart_ended()
        return [await fleet.result(run_id, timeout=120) for run_id in runs]

    try:
        results = asyncio.run(roll())
    finally:
        workers.close()
    assert {result.value for result in results} == {"done"}
    assert {one.outcome for result in results for one in result.tickets} == {"ok"}


def test_a_store_waits_while_the_database_is_away_for_a_moment(database):
    with Proxy(database) as proxy, TicketStore(proxy.url) as store:
        run_one(store)
        proxy.drop()
        threading.Timer(1.0, proxy.resume).start()
        assert store.run(run_one(store)).finished


def test_a_store_opened_before_a_fork_is_not_usable_in_the_child(database):
    program = """
import os, sys
from callslip import TicketStore, StoreError
store = TicketStore(sys.argv[1])
store.runs()
child = os.fork()
if child == 0:
    try:
        store.runs()
    except StoreError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
_, status = os.waitpid(child, 0)
store.runs()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program, database],
        env={**os.environ, "PYTHONPATH": path},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
