"""Old runs: written to an archive, then deleted with the files of their scripts."""

import gzip
import io
import re

import obstore.store
import psycopg
import pytest
from obstore.exceptions import PermissionDeniedError

from callslip import Agent, StoreError, TicketStore, tool
from callslip.cli import main
from callslip.fleet._retention import archive_and_prune, erase_of_owner
from callslip.sandbox._file_stores import FolderStore, open_file_store
from fleets.here import call, finish
from scripted import turn_of

FINISH = '{"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def run_one(store):
    return Agent(lambda messages: FINISH, store=store).run_sync("?").run.id


def age(database, run_id):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "UPDATE callslip.run SET started_at = started_at - 1e6, "
            "finished_at = finished_at - 1e6 WHERE id = %s",
            [run_id],
        )


def test_old_runs_are_archived_and_deleted(store, database, tmp_path, capsys):
    old = [run_one(store) for _ in range(3)]
    kept = store.run(old[0]).export()
    for run_id in old:
        age(database, run_id)
    young = run_one(store)
    words = ["prune", database, "--older-than", "1d", "--archive", str(tmp_path)]
    assert main(words) == 0
    assert capsys.readouterr().out == "3 runs were deleted\n"
    assert [run.run_id for run in store.runs()] == [young]
    (path,) = tmp_path.glob(f"*/{old[0]}.jsonl.gz")
    log = gzip.decompress(path.read_bytes()).decode()
    assert log == kept
    assert store.import_run(log) == old[0]
    copy = tmp_path / "copy.sqlite"
    assert main(["import", str(copy), str(path)]) == 0
    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{old[0]}\nrun {old[0]}: ")
    with TicketStore() as other:
        assert other.import_run(path) == old[0]
        assert other.run(old[0]).export() == kept
    with pytest.raises(SystemExit):
        main(["prune", database])
    assert main(["prune", database, "--older-than", "soon"]) == 2


def test_old_runs_are_archived_in_an_object_store(store, database):
    old = run_one(store)
    kept = store.run(old).export()
    age(database, old)
    archive = obstore.store.MemoryStore()
    assert archive_and_prune(store, 86_400, archive) == 1
    (one,) = archive.list().collect()
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d/{old}\.jsonl\.gz", one["path"])
    log = gzip.decompress(bytes(archive.get(one["path"]).bytes())).decode()
    assert log == kept
    assert store.import_run(log) == old


@pytest.mark.parametrize("with_archive", [False, True])
def test_a_run_that_goes_on_is_not_deleted(store, database, tmp_path, with_archive):
    told, driven, old = (run_one(store) for _ in range(3))
    store.run(told).send("And now?")
    for run_id in (told, driven, old):
        age(database, run_id)
    with TicketStore(f"{database}?application_name=one") as one:
        assert one._shared.take(driven) is not None
        archive = tmp_path if with_archive else None
        assert archive_and_prune(store, 86_400, archive) == 1
    assert {run.run_id for run in store.runs()} == {told, driven}


class Refusing:
    """An object store that takes and deletes nothing of one run."""

    def __init__(self, run_id):
        self.refused, self.store = run_id, obstore.store.MemoryStore()

    def put(self, path, file):
        if self.refused in path:
            raise PermissionDeniedError(f"denied: {path}\n\nDebug source: x")
        self.store.put(path, file)

    def delete(self, path):
        if self.refused in path:
            raise PermissionDeniedError(f"denied: {path}\n\nDebug source: x")
        self.store.delete(path)

    def get(self, path):
        return self.store.get(path)

    def list(self, prefix=""):
        return self.store.list(prefix)


def test_a_run_that_is_not_archived_is_not_deleted(store, database):
    runs = [run_one(store) for _ in range(3)]
    for run_id in runs:
        age(database, run_id)
    order = [run.run_id for run in store.runs(status="finished")]
    archive = Refusing(order[1])
    with pytest.raises(StoreError, match=rf"{order[1]} can't be archived.*denied") as caught:
        archive_and_prune(store, 86_400, archive)
    assert "1 runs before it are deleted; call prune again" in str(caught.value)
    assert "Debug" not in str(caught.value)
    assert {run.run_id for run in store.runs()} == set(order[1:])
    archive.refused = "nothing"
    assert archive_and_prune(store, 86_400, archive) == 2
    assert len(archive.list().collect()) == 3


def test_a_run_whose_files_are_not_deleted_is_not_deleted(store, database):
    run_id = run_one(store)
    age(database, run_id)
    place = Refusing("nothing")
    place.put(f"{run_id}/execute_python_code/1-0123456789abcdef.tar.gz", io.BytesIO(b"x"))
    place.refused = run_id
    with pytest.raises(StoreError, match=f"files of the run {run_id} can't be deleted"):
        archive_and_prune(store, 86_400, None, place)
    assert [run.run_id for run in store.runs()] == [run_id]
    place.refused = "nothing"
    assert archive_and_prune(store, 86_400, None, place) == 1
    assert place.list().collect() == []


def test_a_place_that_is_none(store, database, tmp_path, capsys):
    age(database, run_one(store))
    words = ["prune", database, "--older-than", "1d", "--archive"]
    file = tmp_path / "file"
    file.write_text("")
    for place, said in [
        ("", "expected archive as a folder"),
        ("nowhere://x", "archive='nowhere://…' can't be used"),
        (str(file), "can't be archived, so it is not deleted"),
    ]:
        assert main([*words, place]) == 2
        assert said in capsys.readouterr().err
    assert len(store.runs()) == 1


def test_files_of_scripts_are_deleted_with_their_runs(store, database, tmp_path, capsys):
    old, young = run_one(store), run_one(store)
    age(database, old)
    place = FolderStore(tmp_path)
    for run_id in (old, young, "of-another-store"):
        place.put(f"{run_id}/execute_python_code/1-0123456789abcdef.tar.gz", io.BytesIO(b"x"))
    words = ["prune", database, "--older-than", "1d", "--files", str(tmp_path)]
    assert main(words) == 0
    assert capsys.readouterr().out == "1 run was deleted\n"
    assert [run.run_id for run in store.runs()] == [young]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young, "of-another-store"])


@pytest.mark.parametrize("archive", [False, True])
def test_large_results_go_with_the_last_run_that_has_them(store, database, tmp_path, archive):
    """A deletion looks at the results of its own runs, and a prune once at all of them."""
    text = "x" * 100_000

    @tool
    def read() -> str:
        """Read."""
        return text

    agent = Agent(
        lambda messages: finish() if turn_of(messages) else call("read"), tools=[read], store=store
    )
    runs = [agent.run_sync("?").run.id for _ in range(3)]
    age(database, runs[2])

    def large():
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE callslip.blob SET used_at = used_at - interval '2 days'")
            rows = connection.execute("SELECT data FROM callslip.blob").fetchall()
        return sorted(data[:5] for (data,) in rows if data[:1] in (b'"', b"?"))

    with psycopg.connect(database, autocommit=True) as connection:
        stray = "INSERT INTO callslip.blob (hash, data) VALUES ('none', '?left')"
        connection.execute(stray)
    assert large() == [b'"xxxx', b"?left"]
    store.delete(runs[0])
    assert large() == [b'"xxxx', b"?left"]
    store.delete(runs[1])
    assert large() == [b'"xxxx', b"?left"]
    if archive:
        archive_and_prune(store, 1000, archive=str(tmp_path))
    else:
        store.prune(older_than=1000)
    assert large() == []


def answered(store, owner):
    return Agent(lambda messages: FINISH, store=store).run_sync("?", owner=owner).run.id


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_all_that_an_owner_has_is_erased(store, database, tmp_path, kind):
    archive = str(tmp_path / "archive") if kind == "folder" else obstore.store.MemoryStore()
    files = FolderStore(tmp_path / "files")
    pruned, compacted, others = (answered(store, owner) for owner in ("ann", "ann", "bob"))
    store.compact(compacted)
    for run_id in (pruned, compacted, others):
        age(database, run_id)
    assert archive_and_prune(store, 86_400, archive) == 3
    kept = answered(store, "ann")
    for run_id in (pruned, kept, others):
        files.put(f"{run_id}/execute_python_code/1-0123456789abcdef.tar.gz", io.BytesIO(b"x"))
    assert erase_of_owner(store, "ann", archive, str(tmp_path / "files")) == 3
    assert store.runs(owner="ann") == []
    assert [path.name for path in (tmp_path / "files").iterdir()] == [others]
    place = open_file_store(archive)
    assert [key.rpartition("/")[2] for key in place.keys("")] == [f"{others}.jsonl.gz"]
    assert erase_of_owner(store, "ann", archive) == 0


def test_a_damaged_archive_keeps_the_store(store, tmp_path):
    run_id = answered(store, "ann")
    FolderStore(tmp_path).put(f"2026-01-01/{run_id}.jsonl.gz", io.BytesIO(b"no export"))
    with pytest.raises(StoreError, match="the archive of 'ann' can't be deleted.*call erase again"):
        erase_of_owner(store, "ann", str(tmp_path))
    assert [run.run_id for run in store.runs(owner="ann")] == [run_id]


def test_the_command_that_erases(tmp_path, capsys):
    path = str(tmp_path / "runs.sqlite")
    with TicketStore(path) as store:
        answered(store, "ann")
        kept = answered(store, "bob")
    assert main(["erase", path, "--owner", "ann", "--archive", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == "1 run was deleted\n"
    with TicketStore(path) as store:
        assert [run.run_id for run in store.runs()] == [kept]
    assert main(["erase", path, "--owner", ""]) == 2
    assert "expected" in capsys.readouterr().err
