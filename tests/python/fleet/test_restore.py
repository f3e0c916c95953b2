"""A dump of a database, restored into another server: `callslip migrate` makes it ready again."""

import asyncio
import json
import logging
import subprocess

import psycopg
import pytest

from callslip import Agent, ScriptedModel, StoreError, TicketStore, tool
from callslip.cli import main
from callslip.fleet import Fleet, migrate, status
from fleets.here import turns
from postgres import Server
from scripted import act, finish

ROLES = ["callslip_client", "callslip_worker"]


@pytest.fixture
def fresh():
    """A server that has never had a store."""
    with Server() as server:
        yield server


@pytest.fixture
def paid():
    return []


@pytest.fixture
def clerk(paid):
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    return Agent(turns(act("pay", amount=7), finish("done")), tools=[pay], name="clerk")


@pytest.fixture
def filled(database, clerk):
    """The ids of a run that is over, one that awaits approval and one that waits for a worker."""

    async def fill():
        with TicketStore(database) as store:
            agent = Agent(ScriptedModel([finish("done")]), store=store, name="clerk")
            over = (await agent.run("?")).run.id
            fleet = Fleet(store, [clerk])
            resting = await fleet.submit("clerk", "Pay 7.", tenant="acme")
            assert await fleet.drive(resting) == "rests"
            return over, resting, await fleet.submit("clerk", "Pay 7.", key="order-7")

    return asyncio.run(fill())


def in_custom_form(source, url, server, restored, path):
    subprocess.run([source.program("pg_dump"), "-Fc", "-f", path, url], check=True, timeout=60)
    command = ["pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "-d", restored]
    subprocess.run([server.program(command[0]), *command[1:], path], check=True, timeout=60)


def as_text(source, url, server, restored, path):
    """With the rights of roles that are not there: psql shows errors, and goes on."""
    dumped = subprocess.run(
        [source.program("pg_dump"), url], check=True, capture_output=True, timeout=60
    ).stdout
    command = [server.program("psql"), "-q", "-o", str(path), restored]
    done = subprocess.run(command, input=dumped, check=True, capture_output=True, timeout=60)
    missing = 'role "callslip_worker" does not exist' in done.stderr.decode()
    assert missing == (not roles_of(server))


def roles_of(server):
    with psycopg.connect(server.url("postgres")) as connection:
        rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'callslip\\_%'")
        return sorted(name for (name,) in rows)


def as_role(server, url, role):
    """The URL for a new user with this role alone."""
    server.execute(f"CREATE ROLE my_{role} LOGIN IN ROLE {role}")
    return url.replace("callslip@", f"my_{role}@")


@pytest.fixture
def go_on(fresh, filled, clerk, paid):
    """Does in the copy what was left to do, as a web server and a worker with their roles alone."""

    def go_on(url):
        web, work = (as_role(fresh, url, role) for role in ROLES)
        over, resting, queued = filled

        async def decide():
            with TicketStore(web) as client, TicketStore(work) as shared:
                working = asyncio.create_task(Fleet(shared, [clerk]).work(slots=4))
                fleet = Fleet(client)
                assert client.run(over).stop_reason == "finished"
                assert await fleet.submit("clerk", "Pay 7.", key="order-7") == queued
                for run_id in (resting, queued):
                    async with asyncio.timeout(60):
                        while not client.run(run_id).awaiting_approval:
                            await asyncio.sleep(0.02)
                    client.run(run_id).approve("T1", by="Ann")
                    assert (await fleet.result(run_id, timeout=60)).value == "done"
                new = await fleet.submit("clerk", "Pay 7.", queue="default")
                client.run(new).cancel()
                with pytest.raises(StoreError, match="permission denied"):
                    client.delete(over)
                now = status(client)
                working.cancel()
                await asyncio.wait([working])
                return now

        now = asyncio.run(decide())
        assert now.finished >= 3
        assert paid == [7, 7]

    return go_on


@pytest.fixture(params=[in_custom_form, as_text])
def move(request, postgres, database, fresh, tmp_path):
    """Copies the database to the other server, and returns its URL there."""

    def move():
        restored = fresh.new_database(ready=False)
        request.param(postgres, database, fresh, restored, tmp_path / "agents.dump")
        return restored

    return move


def test_it_works_in_a_server_without_the_roles(fresh, move, go_on, capsys):
    restored = move()
    assert roles_of(fresh) == []
    assert main(["migrate", restored]) == 0
    told = "the database had version 4, and has version 4 of the tables\n"
    assert capsys.readouterr() == (told, "")
    assert roles_of(fresh) == ROLES
    go_on(restored)


def test_it_works_in_a_server_that_has_the_roles(fresh, move, go_on):
    fresh.new_database()
    assert roles_of(fresh) == ROLES
    restored = move()
    assert migrate(restored) == (4, 4)
    go_on(restored)


@pytest.mark.parametrize("present", [[], ["callslip_worker"], ["callslip_client"]])
def test_a_user_who_may_not_create_roles_reads_which_are_missing(fresh, present, capsys, caplog):
    fresh.execute("CREATE ROLE plain LOGIN")
    for role in present:
        fresh.execute(f"CREATE ROLE {role} NOLOGIN")
    fresh.execute("CREATE DATABASE agents OWNER plain")
    url = fresh.url("agents").replace("callslip@", "plain@")
    missing = [role for role in ["callslip_worker", "callslip_client"] if role not in present]
    assert main(["migrate", url]) == 0
    said = capsys.readouterr()
    assert "was made ready" in said.out
    assert f"expected the roles {' and '.join(missing)}: got a user who may not" in said.err
    create = [f"CREATE ROLE {role} NOLOGIN;" for role in missing]
    assert " ".join(create) in said.err
    with caplog.at_level(logging.WARNING, "callslip.fleet"):
        assert migrate(url) == (4, 4)
    assert " ".join(create) in caplog.text
    for role in present:
        # What is there has its rights already.
        with TicketStore(as_role(fresh, fresh.url("agents"), role)) as store:
            assert store.runs() == []
    with TicketStore(url) as store:
        agent = Agent(ScriptedModel([finish("done")]), store=store)
        assert agent.run_sync("?").value == "done"
    for statement in create:
        fresh.execute(statement)
    assert main(["migrate", url]) == 0
    assert capsys.readouterr().err == ""
    for role in missing:
        with TicketStore(as_role(fresh, fresh.url("agents"), role)) as store:
            assert (
                json.loads(store.run(store.runs()[0].run_id).export().splitlines()[0])["seq"] == 0
            )
