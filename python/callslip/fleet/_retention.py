"""Deleting old runs of a store, after they were archived, and all runs of an owner."""

from __future__ import annotations

import gzip
import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from callslip._base.log import GuardedLogger
from callslip._base.options import check_known, check_text
from callslip.errors import StoreError
from callslip.sandbox._file_stores import first_line, open_file_store
from callslip.sandbox._run_files import delete_files

if TYPE_CHECKING:
    from callslip.sandbox._file_stores import FileStore, SharedFiles
    from callslip.store import StoredRun, TicketStore

__all__ = ["archive_and_prune", "erase_of_owner"]

_log = GuardedLogger("callslip.fleet")

_ENDING = ".jsonl.gz"


def archive_and_prune(
    store: TicketStore,
    older_than: float,
    archive: SharedFiles | None,
    files: SharedFiles | None = None,
) -> int:
    """Delete finished runs with their child runs, after they were written to an archive.

    Args:
        store: The store.
        older_than: Delete only runs that ended longer ago than this, in seconds.
        archive: A folder, the URL of an object store or a store object of obstore. Each run is
            written to `DAY/RUN.jsonl.gz` there, by the day of its start, with its child runs beside
            it: exports that `import_run` reads. Default: no archive.
        files: The place where scripts of these runs have left files, as `PythonRunner(files=…)`
            takes it. Those of deleted runs are deleted before them. Default: no such place.

    Returns:
        The number of deleted runs.

    Raises:
        StoreError: The store cannot be read, a run cannot be archived, or its files cannot be
            deleted. That run is still there, and the runs before it are deleted. A run that cannot
            be deleted, because somebody goes on with it, is logged and passed over.
        UsageError: `archive` or `files` is no place of files.
    """
    kept = None if archive is None else open_file_store(archive, "archive")
    place = None if files is None else open_file_store(files)
    if kept is None and place is None:
        return store.prune(older_than=older_than)
    before = time.time() - older_than
    deleted = 0
    for run in store.runs(status="finished", until=before):
        if run.parent_run is not None or run.finished_at is None or run.finished_at >= before:
            continue
        if store._shared is not None and store._shared.inbox(run.run_id):
            # It goes on with what it was told.
            continue
        before_it = f"{deleted} runs before it are deleted; call prune again"
        if kept is not None:
            what = f"the run {run.run_id} can't be archived, so it is not deleted"
            with _told(what, before_it):
                _write(store, run, kept)
        if place is not None:
            what = f"the files of the run {run.run_id} can't be deleted, so it is not deleted"
            with _told(what, before_it):
                delete_files(place, _tree(store, run.run_id))
        try:
            deleted += store.delete(run.run_id)
        except StoreError as error:
            # Somebody goes on with it just now, for example.
            _log.warning("run %s is not deleted: %s", run.run_id, error)
    store._native.sweep()
    return deleted


@contextmanager
def _told(what: str, then: str) -> Iterator[None]:
    """Say what is not deleted and what to do, whatever a client or a damaged file raises."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{what}: {first_line(error)}. {then} once this is mended") from error


def _tree(store: TicketStore, run_id: str) -> list[str]:
    """Return the ids of a run and all runs below it."""
    children = [_tree(store, child.run_id) for child in store.runs(parent=run_id)]
    return [run_id, *chain.from_iterable(children)]


def _write(store: TicketStore, run: StoredRun, archive: FileStore) -> None:
    day = datetime.fromtimestamp(run.started_at, UTC).date().isoformat()
    export = gzip.compress(store.run(run.run_id).export().encode(), mtime=0)
    archive.put(f"{day}/{run.run_id}{_ENDING}", io.BytesIO(export))
    for child in store.runs(parent=run.run_id):
        _write(store, child, archive)


def erase_of_owner(
    store: TicketStore,
    owner: str,
    archive: SharedFiles | None = None,
    files: SharedFiles | None = None,
) -> int:
    """Delete all runs of an owner from a store, from an archive and from the files of scripts.

    The store comes last: what it fails at can be repeated.

    Args:
        store: The store.
        owner: The owner, as for `TicketStore.erase`.
        archive: The place that `archive_and_prune` has written to. Each export in it is looked at.
            Default: no archive.
        files: The place where scripts of these runs have left files. Default: no such place.

    Returns:
        The number of runs that were deleted from the store, and of those that only the archive had.

    Raises:
        StoreError: As for `TicketStore.erase`, or the archive or the files cannot be read or
            deleted.
        UsageError: `owner` is not the name of an owner, or `archive` or `files` is no place of
            files.
    """
    kept = None if archive is None else open_file_store(archive, "archive")
    place = None if files is None else open_file_store(files)
    check_text("owner", owner)
    check_known("owner", owner)
    runs = [run.run_id for run in store.runs(owner=owner)]
    then = "The runs are still in the store; call erase again"
    archived: dict[str, str] = {}
    if kept is not None:
        with _told(f"the archive of '{owner}' can't be deleted", then):
            archived = {
                key: _run_of(key) for key in kept.keys(_ENDING) if _owner(kept, key) == owner
            }
    if place is not None:
        with _told(f"the files of '{owner}' can't be deleted", then):
            delete_files(place, [*runs, *archived.values()])
    if kept is not None:
        with _told(f"the archive of '{owner}' can't be deleted", then):
            kept.delete(archived)
    return store.erase(owner=owner) + len(set(archived.values()) - set(runs))


def _run_of(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(_ENDING)


def _owner(archive: FileStore, key: str) -> str | None:
    """Return the owner of an export, which its first line names."""
    with archive.get(key) as file, gzip.open(file) as export:
        ((kind, told),) = json.loads(export.readline())["event"].items()
    owner: str | None = (told["start"] if kind == "compacted" else told).get("owner")
    return owner
