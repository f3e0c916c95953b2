"""Deleting old runs of a store, after they were archived."""

from __future__ import annotations

import gzip
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callslip.store import StoredRun, TicketStore

__all__ = ["archive_and_prune"]


def archive_and_prune(
    store: TicketStore, older_than: float, archive: str | os.PathLike[str] | None
) -> int:
    """Delete finished runs with their child runs, after they were written to an archive.

    Args:
        store: The store.
        older_than: Delete only runs that ended longer ago than this, in seconds.
        archive: A folder. Each run is written to `DAY/RUN.jsonl.gz` in it, by the day of its start,
            with its child runs beside it: exports that `import_run` reads. Default: no archive.

    Returns:
        The number of deleted runs.

    Raises:
        StoreError: The store cannot be read or written.
        OSError: A file cannot be written. The runs that were written before are deleted.
    """
    if archive is None:
        return store.prune(older_than=older_than)
    before = time.time() - older_than
    deleted = 0
    for run in store.runs(status="finished", until=before):
        if run.parent_run is not None or run.finished_at is None or run.finished_at >= before:
            continue
        _write(store, run, Path(archive))
        deleted += store.delete(run.run_id)
    return deleted


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
