"""After `erase`, nothing of an owner is in the store, and everything of the others is."""

import asyncio
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from callslip import Agent, Image, TicketStore, tool
from callslip.errors import RunCancelled, StoreError, UsageError
from callslip.fleet import Fleet
from pictures import png
from random_cases import seeds
from scripted import act, block, call, finish, give, turn_of


class Marks:
    """Random bytes in all texts of one owner's runs."""

    def __init__(self):
        self.all = []

    def new(self):
        self.all.append(os.urandom(24).hex())
        return self.all[-1]


REPLIES = {
    "react": lambda mark: [act("note", text=mark()), act("note", text=mark()), finish(mark())],
    "chatty": lambda mark: [
        block((mark(), "note", {"text": mark()}), (mark(), "note", {"text": mark()})),
        mark(),
    ],
    "ticket": lambda mark: [call("/tool/note", {"text": mark()}), give(mark())],
}


def leave_runs(store, owner, protocol, chance):
    """Leave runs of an owner, some compacted, with all texts marked."""
    marks = Marks()

    @tool(needs_approval=True)
    def note(text: str) -> list:
        """Note."""
        return [marks.new() + "x" * chance.choice([1, 20_000]), Image(picture(marks))]

    replies = REPLIES[protocol](marks.new)
    inner = Agent(lambda _: finish(marks.new()), store=store, name="inner")
    agent = Agent(
        lambda messages: replies[turn_of(messages)],
        tools=[note, inner.as_tool()],
        protocol=protocol,
        store=store,
        name="clerk",
    )

    async def main():
        task = [f"Note {marks.new()}", Image(picture(marks))]
        begun = agent.start(task, owner=owner, key=marks.new())
        async for _ in begun.watch():
            for ticket in begun.awaiting_approval:
                decide = chance.random()
                if decide < 0.5:
                    begun.approve(ticket, by=marks.new())
                elif decide < 0.8:
                    begun.deny(ticket, marks.new())
                else:
                    begun.approve(ticket, arguments={"text": marks.new()})
        if chance.random() < 0.5:
            begun.send(marks.new(), key=marks.new())
        return begun.id

    run_id = asyncio.run(main())
    if chance.random() < 0.5:
        store.compact(run_id)
    return marks.all


def picture(marks):
    """A picture that has a mark in its bytes."""
    return png(4, 4) + bytes.fromhex(marks.new())


def bytes_of(place):
    if isinstance(place, str):
        return tables(place)
    folder = place.parent
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


def tables(url):
    """All rows of all tables, as text."""
    found = []
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('callslip', 'pgmq')"
        ).fetchall()
        for schema, name in names:
            rows = connection.execute(
                f'SELECT one::text FROM "{schema}"."{name}" AS one'
            ).fetchall()
            found += [row[0] for row in rows]
    return "\n".join(found).encode()


def is_in(mark, found):
    return mark.encode() in found or bytes.fromhex(mark) in found


@pytest.fixture(params=["file", "database"])
def place(request, tmp_path):
    if request.param == "database":
        return request.getfixturevalue("database")
    return tmp_path / "runs.sqlite"


@pytest.mark.random_cases
@pytest.mark.parametrize("protocol", list(REPLIES))
def test_nothing_is_left_of_an_owner_and_all_of_the_others(place, protocol):
    for seed in seeds(1):
        chance = random.Random(f"{seed} {protocol}")
        with TicketStore(place) as store:
            marks = {
                owner: [
                    mark for _ in range(2) for mark in leave_runs(store, owner, protocol, chance)
                ]
                for owner in ("ann", "bob")
            }
            deleted = store.runs(owner="ann", limit=1)[0].run_id
            if chance.random() < 0.5:
                # What was deleted before is gone too.
                store.delete(deleted)
            kept = [run.run_id for run in store.runs(owner="bob")]
            before = bytes_of(place)
            missing = [mark for mark in marks["ann"] if not is_in(mark, before)]
            assert len(missing) < len(marks["ann"]) / 2, "the marks are found"
            assert store.erase(owner="ann") > 0
            after = bytes_of(place)
            assert [mark for mark in marks["ann"] if is_in(mark, after)] == []
            lost = [mark for mark in marks["bob"] if is_in(mark, before) and not is_in(mark, after)]
            assert lost == []
            assert store.runs(owner="ann") == []
            assert [run.run_id for run in store.runs(owner="bob")] == kept
            assert all(store.run(run_id).log for run_id in kept)
            store.erase(owner="bob")


def test_a_memory_forgets_them_too():
    with TicketStore() as store:
        agent = Agent(lambda _: finish(), store=store)
        for owner in ("ann", "bob", None):
            agent.run_sync("Go.", owner=owner, key="k")
        assert store.erase(owner="ann") == 1
        assert {run.owner for run in store.runs()} == {"bob", None}
        assert store.run(key="k", owner="ann") is None
        assert store.erase(owner="ann") == 0


def test_an_owner_whose_run_is_in_progress_keeps_everything(place):
    with TicketStore(place) as store:
        entered, go = threading.Event(), threading.Event()

        @tool
        def hold() -> str:
            """Hold."""
            entered.set()
            go.wait(60)
            return "held"

        replies = [act("hold"), finish()]
        agent = Agent(lambda messages: replies[turn_of(messages)], tools=[hold], store=store)
        Agent(lambda _: finish(), store=store).run_sync("Go.", owner="ann")

        async def main():
            begun = agent.start("Go.", owner="ann")
            await asyncio.to_thread(entered.wait)
            with pytest.raises(StoreError, match=begun.id):
                await asyncio.to_thread(store.erase, owner="ann")
            assert len(store.runs(owner="ann")) == 2
            begun.cancel()
            go.set()
            with pytest.raises(RunCancelled):
                await begun

        asyncio.run(main())
        assert store.erase(owner="ann") == 2


def test_a_reader_of_an_older_state_is_named(tmp_path):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        Agent(lambda _: finish(), store=store).run_sync("Go.", owner="ann")
        # In another process: this one must not open the file by itself.
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN');"
            "c.execute('SELECT count(*) FROM run').fetchone(); print('reads', flush=True);"
            "sys.stdin.read()"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert reader.stdout.readline() == b"reads\n"
            with pytest.raises(StoreError, match="End the other programs that read it"):
                store.erase(owner="ann")
        finally:
            reader.communicate(timeout=60)
        assert store.runs(owner="ann") == []
        assert store.erase(owner="ann") == 0
        Agent(lambda _: finish(), store=store).run_sync("Go.", owner="bob")
    assert sqlite3.connect(path).execute("SELECT count(*) FROM run").fetchone() == (1,)


def test_runs_that_wait_for_a_worker_are_erased(database):
    with TicketStore(database) as store:
        mark = os.urandom(24).hex()
        asyncio.run(Fleet(store).submit("clerk", mark, tenant=f"tenant {mark}", key=mark))
        assert is_in(mark, tables(database))
        assert store.erase(owner=f"tenant {mark}") == 1
        assert not is_in(mark, tables(database))


def files_of(url):
    """The bytes of all tables, indexes and large values, as they are on the server's disk."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        ((folder,),) = connection.execute("SHOW data_directory").fetchall()
        rows = connection.execute(
            "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relkind IN ('r', 'i', 't')"
        ).fetchall()
    # The first file of a table is replaced, and gone with the next checkpoint.
    paths = [Path(folder, name) for (name,) in rows if name is not None]
    return b"".join(path.read_bytes() for path in paths if path.exists())


def commands_of_the_page():
    """What the page says to run with psql, as statements."""
    page = (Path(__file__).parents[3] / "docs/howto/web.md").read_text("utf-8")
    (block,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    selecting, rest = block.split("\\gexec")
    return selecting, [one for one in rest.split(";") if one.strip()]


def test_the_commands_of_the_page_leave_nothing_in_the_files_of_a_database(database):
    marks = Marks()

    @tool
    def note(text: str) -> str:
        """Note."""
        return marks.new() + "x" * 20_000

    with TicketStore(database) as store:
        fleet, ann = Fleet(store), f"ann {marks.new()}"
        replies = [act("note", text=marks.new()), finish(marks.new())]
        clerk = Agent(lambda messages: replies[turn_of(messages)], tools=[note], store=store)
        other = Agent(lambda _: finish(), store=store)
        # Runs of both are in the same pages.
        for _ in range(3):
            clerk.run_sync(marks.new(), owner=ann, key=marks.new())
            other.run_sync("Go.", owner="bob")
        tenant = f"tenant {marks.new()}"
        asyncio.run(fleet.submit("later", marks.new(), tenant=tenant))
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ANALYZE")
        before = files_of(database)
        # Large values are compressed.
        assert sum(is_in(mark, before) for mark in marks.all) > len(marks.all) / 2
        store.erase(owner=ann)
        store.erase(owner=tenant)
        selecting, rest = commands_of_the_page()
        with psycopg.connect(database, autocommit=True) as connection:
            statements = [row[0] for row in connection.execute(selecting).fetchall()]
            for statement in [*statements, *rest]:
                connection.execute(statement)
        assert [mark for mark in marks.all if is_in(mark, files_of(database))] == []
        assert {run.owner for run in store.runs()} == {"bob"}


def test_what_an_owner_must_be():
    with TicketStore() as store:
        for owner in ("", None, 7, "x" * 201):
            with pytest.raises(UsageError, match="owner"):
                store.erase(owner=owner)
