"""Deleting old runs of a store, after they were archived."""

from __future__ import annotations

import gzip
import os
import time
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from callslip.sandbox._file_stores import open_file_store
from callslip.sandbox._run_files import delete_files

if TYPE_CHECKING:
    from callslip.store import StoredRun, TicketStore

__all__ = ["archive_and_prune"]


def archive_and_prune(
    store: TicketStore,
    older_than: float,
    archive: str | os.PathLike[str] | None,
    files: str | None = None,
) -> int:
    """Delete finished runs with their child runs, after they were written to an archive.

    Args:
        store: The store.
        older_than: Delete only runs that ended longer ago than this, in seconds.
        archive: A folder. Each run is written to `DAY/RUN.jsonl.gz` in it, by the day of its start,
            with its child runs beside it: exports that `import_run` reads. Default: no archive.
        files: The place where scripts of these runs have left files, as `PythonRunner(files=…)`
            takes it. Those of deleted runs are deleted too. Default: no such place.

    Returns:
        The number of deleted runs.

    Raises:
        StoreError: The store cannot be read or written.
        UsageError: `files` is no place of files.
        OSError: A file cannot be written or deleted. The runs before are deleted.
    """
    place = None if files is None else open_file_store(files)
    if archive is None and place is None:
        return store.prune(older_than=older_than)
    before = time.time() - older_than
    deleted = 0
    for run in store.runs(status="finished", until=before):
        if run.parent_run is not None or run.finished_at is None or run.finished_at >= before:
            continue
        if archive is not None:
            _write(store, run, Path(archive))
        tree = [] if place is None else _tree(store, run.run_id)
        deleted += store.delete(run.run_id)
        if place is not None:
            delete_files(place, tree)
    return deleted


def _tree(store: TicketStore, run_id: str) -> list[str]:
    """Return the ids of a run and all runs below it."""
    children = [_tree(store, child.run_id) for child in store.runs(parent=run_id)]
    return [run_id, *chain.from_iterable(children)]


def _write(store: TicketStore, run: StoredRun, archive: Path) -> None:
    day = datetime.fromtimestamp(run.started_at, UTC).date().isoformat()
    folder = archive / day
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run.run_id}.jsonl.gz"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(gzip.compress(store.run(run.run_id).export().encode(), mtime=0))
    unfinished.replace(path)
    for child in store.runs(parent=run.run_id):
        _write(store, child, archive)
