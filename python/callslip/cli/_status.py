"""`callslip status`: what goes on in a store."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from callslip._base import _lazy
from callslip._base.options import is_url
from callslip.cli._files import open_store
from callslip.cli._output import print_json, print_text
from callslip.errors import UsageError
from callslip.fleet import FleetStatus, SilentRun, status
from callslip.fleet._silent import silent_runs
from callslip.store import TicketStore
from callslip.store._file import StoreFile

__all__ = ["run"]


@dataclass(frozen=True, slots=True)
class _FileStatus:
    """What goes on in the file of a store.

    Attributes:
        running: Runs that have begun and not ended.
        finished: Runs that have ended.
        awaiting_approval: Calls that are awaiting approval.
        owner: The process that has the file open; `None` if there is none.
        silent: As for a fleet; without an owner, runs that nothing works on.
    """

    running: int
    finished: int
    awaiting_approval: int
    owner: str | None
    silent: list[SilentRun]

    def metric(self, name: str) -> float:
        """Return one number.

        Raises:
            UsageError: There is no such number.
        """
        if name == "silent":
            return float(len(self.silent))
        value = getattr(self, name, None)
        if isinstance(value, int):
            return float(value)
        raise UsageError(
            "expected silent, running, finished or awaiting_approval of a file: got "
            f"{name!r}; pass the URL of a database for the numbers of a fleet"
        )


def run(options: argparse.Namespace) -> int:
    """Carry out the command."""
    now: FleetStatus | _FileStatus
    if is_url(options.store):
        with TicketStore(options.store) as store:
            now = status(store, silent=options.silent)
    else:
        file = open_store(options.store)
        assert isinstance(file, StoreFile)
        with file:
            now = _status_of_file(file, options.silent)
    if options.metric is not None:
        print_text(f"{now.metric(options.metric):g}")
    elif options.json:
        print_json(asdict(now))
    else:
        print_text("\n".join(_lines(now) if isinstance(now, FleetStatus) else _file_lines(now)))
    return 0


def _status_of_file(file: StoreFile, silent: float) -> _FileStatus:
    (counts,) = file._rows(
        "SELECT count(*) FILTER (WHERE finished_at IS NULL) AS running, "
        "count(finished_at) AS finished FROM runs"
    )
    now = time.time()
    query = (
        "SELECT run_id, agent, ?1 - updated_at AS seconds FROM runs "
        "WHERE finished_at IS NULL AND updated_at < ?1 - ?2 ORDER BY updated_at LIMIT 100"
    )
    return _FileStatus(
        running=counts["running"],
        finished=counts["finished"],
        awaiting_approval=sum(map(len, file.waiting().values())),
        owner=_owner(file.path),
        silent=silent_runs(
            lambda query, run_id: list(map(dict, file._rows(query.format(of="", id="?1"), run_id))),
            list(map(dict, file._rows(query, now, silent))),
        ),
    )


def _owner(path: Path) -> str | None:
    """Return the process that has the file of a store open; `None` if there is none."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        with lock.open() as file:
            text = file.read()
            # A process that was killed has left its name.
            if not text or _is_free(file):
                return None
    except OSError:
        return None
    pid, since, program = [*text.split("\n"), "", ""][:3]
    return f"process {pid} ({program}), since {since}"


def _is_free(file: TextIO) -> bool:
    """Whether no process holds the lock of an open file, as far as the system tells."""
    if sys.platform == "win32":
        return False
    try:
        _lazy.fcntl.flock(file, _lazy.fcntl.LOCK_SH | _lazy.fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    _lazy.fcntl.flock(file, _lazy.fcntl.LOCK_UN)
    return True


def _file_lines(now: _FileStatus) -> list[str]:
    lines = [
        f"{now.running} runs running, {now.finished} finished",
        f"{now.awaiting_approval} calls await approval",
    ]
    if now.owner is not None:
        lines.append(f"the file is open in {now.owner}")
        hint = "; if no program works on it, call agent.resume({!r})"
        return [*lines, *(_silent_line(run) + hint.format(run.run_id) for run in now.silent)]
    if now.running:
        lines.append(
            "no process has the file open: its runs go on when a program with their agents calls "
            "agent.resume_all()"
        )
    return lines


def _silent_line(run: SilentRun) -> str:
    """Return what is known of a silent run, and what to do."""
    doing = "the model is asked" if run.asks_model else "nothing is in progress"
    timeout = "Retrying(model, timeout=…) gives up such requests"
    if run.calls:
        doing = f"{', '.join(run.calls)} in progress"
        timeout = "timeout= of the tool gives up such calls"
    return (
        f"silent: run {run.run_id} of {run.agent!r} for {run.seconds:.0f} s, {doing}: if that "
        f"hangs, call store.run({run.run_id!r}).cancel(); {timeout}"
    )


def _lines(now: FleetStatus) -> list[str]:
    resting = f"{now.resting} at rest"
    if now.waiting_below:
        resting += f", {now.waiting_below} wait for others"
    lines = [
        f"{now.queued} runs queued, {now.running} running ({resting}), {now.finished} finished",
        f"{now.awaiting_approval} calls await approval, {now.messages} messages wait",
    ]
    for queue in now.queues:
        tenants = ", ".join(f"{name or 'no tenant'} {n}" for name, n in queue.tenants.items())
        lines.append(
            f"queue {queue.name}: {queue.waiting} waiting, the first for {queue.oldest:.1f} s; "
            f"{queue.in_progress} in progress or later" + (f"; {tenants}" if tenants else "")
        )
    lines += [
        f"worker {worker.id}: {worker.busy} of {worker.slots} slots, "
        f"agents {', '.join(worker.agents)}, queues {', '.join(worker.queues)}, "
        f"lost {worker.lost}, refused {worker.refused}, version {worker.version}, "
        f"seen {worker.seen:.0f} s ago"
        for worker in now.workers
    ]
    lines += [
        f"no worker for {runs} runs of {agent!r}: start one with that agent and their queue, "
        "and of their shape if they have begun"
        for agent, runs in now.without_worker.items()
    ]
    lines += [
        f"no worker can go on with run {run_id}: {why}; start one with the agents that it had"
        for run_id, why in now.misfits.items()
    ]
    lines += map(_silent_line, now.silent)
    if now.shapes:
        lines.append("begun: " + ", ".join(f"{shape} {n}" for shape, n in now.shapes.items()))
    lines.append(
        f"database: {now.dead_rows} dead rows in queues, oldest transaction "
        f"{now.oldest_transaction:.0f} s, oldest row that is kept {now.oldest_xmin} transactions, "
        + (", ".join(_standby(now, name) for name in now.standbys) or "no standby")
        + f", commits wait for {'a standby' if now.is_synchronous else 'no standby'}"
    )
    return lines


def _standby(now: FleetStatus, name: str) -> str:
    lag = now.standby_lag[name]
    behind = "" if lag is None else f", {lag} bytes behind"
    return f"standby {name} {now.standbys[name]}{behind}"
