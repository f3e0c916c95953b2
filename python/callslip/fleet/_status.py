"""What a fleet is doing, for people and for alarms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callslip._base.options import check_seconds
from callslip.errors import UsageError
from callslip.fleet._silent import SilentRun, silent_runs

if TYPE_CHECKING:
    from callslip.store import TicketStore

__all__ = ["SILENT", "FleetStatus", "QueueStatus", "WorkerStatus", "status"]

SILENT = 600.0
"""Seconds without an event after which a run is called silent."""

_PRESENT = 30.0
"""Seconds since its last word for which a worker is taken to be there."""


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue.

    Attributes:
        name: The name; `"later"` for runs that begin later or were given back.
        waiting: Runs that a worker may take now.
        in_progress: Runs that are driven.
        oldest: Seconds for which the run that has waited longest has done so: since it had
            something to do, or since the worker that drove it has left it; 0 if none waits.
        tenants: Waiting runs by the name of their tenant; `""` for none.
        oldest_of: The same for each tenant that has waiting runs.
    """

    name: str
    waiting: int
    in_progress: int
    oldest: float
    tenants: dict[str, int]
    oldest_of: dict[str, float]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker, by its last report.

    Attributes:
        id: Its machine, process and number.
        version: Its version of callslip.
        agents: The names of its agents, and `"call render of painter"` for a tool with a queue.
        queues: The names of its queues.
        slots: Runs that it drives at once, at most.
        busy: Runs that it drives.
        lost: Runs that others have taken over from it.
        refused: Runs that it gave back, because none of its agents can go on with them.
        seen: Seconds since this report.
    """

    id: str
    version: str
    agents: list[str]
    queues: list[str]
    slots: int
    busy: int
    lost: int
    refused: int
    seen: float


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The state of a fleet at one moment.

    Attributes:
        queues: The queues of its database.
        workers: The workers that were seen within the last hour.
        queued: Runs that have not begun.
        running: Runs that have begun and not ended, at rest or not.
        resting: Running ones that rest: no worker has them until a decision or a message comes.
        waiting_below: Running ones that wait for a child run, or for a call, of another worker.
        finished: Runs that have ended.
        awaiting_approval: Calls that are awaiting approval.
        messages: Messages and decisions that are not in a log yet.
        dead_rows: Rows of the queues that are still to be vacuumed.
        oldest_transaction: Seconds for which the oldest transaction of the database is open. A long
            one keeps dead rows, and makes claims slow.
        oldest_xmin: Transactions since the oldest one whose rows vacuum must keep, for a
            transaction that is open or prepared, or for a standby.
        standbys: For each standby of the database, its name and how it is synchronized.
        is_synchronous: Whether commits wait for a standby. If not, a failover may lose the last
            commits, and calls that they recorded as done may be made again.
        standby_lag: For each standby, the bytes that it has not replayed; `None` where the user of
            this store may not see it.
        without_worker: How many runs and calls wait, by the name of the agent, for which no worker
            of the last 30 seconds has both the agent and the queue. Begun runs count too if all
            those workers have refused their shape, or the run itself.
        misfits: Why those runs were refused, by their ids: each is offered to the workers again
            after ten seconds. At most 100.
        shapes: How many runs have begun and not ended, by the name of the agent and the first
            characters of the shape. A shape is a protocol with its tools. Once the shape of an
            earlier version is missing here, no run needs that version any more.
        silent: Runs that a process has and that wait for nobody, without an event for long; the
            longest first. One whose lease has run out is in its queue again.
    """

    queues: list[QueueStatus]
    workers: list[WorkerStatus]
    queued: int
    running: int
    resting: int
    waiting_below: int
    finished: int
    awaiting_approval: int
    messages: int
    dead_rows: int
    oldest_transaction: float
    oldest_xmin: int
    standbys: dict[str, str]
    is_synchronous: bool
    standby_lag: dict[str, int | None]
    without_worker: dict[str, int]
    misfits: dict[str, str]
    shapes: dict[str, int]
    silent: list[SilentRun]

    def metric(self, name: str) -> float:
        """Return one number, for alarms and for scaling.

        Args:
            name: `"queue_age"`, the longest wait of any run in a queue, in seconds;
                `"queue_length"`; `"busy"`, the part of the slots of all workers of the last 30
                seconds that are used; `"without_worker"`, the sum of them; `"silent"`, how many
                there are; or the name of an attribute that is a number.

        Raises:
            UsageError: There is no such number.
        """
        due = [queue for queue in self.queues if queue.name != "later"]
        if name == "queue_age":
            return max((queue.oldest for queue in due), default=0.0)
        if name == "queue_length":
            return float(sum(queue.waiting for queue in due))
        if name == "busy":
            present = [worker for worker in self.workers if worker.seen <= _PRESENT]
            slots = sum(worker.slots for worker in present)
            return sum(worker.busy for worker in present) / slots if slots else 0.0
        if name == "without_worker":
            return float(sum(self.without_worker.values()))
        if name == "silent":
            return float(len(self.silent))
        value = getattr(self, name, None)
        if isinstance(value, int | float):
            return float(value)
        raise UsageError(
            "expected queue_age, queue_length, busy, without_worker, silent or a number of "
            f"FleetStatus: got {name!r}"
        )


def status(store: TicketStore, *, silent: float = SILENT) -> FleetStatus:
    """Return what the fleet of a store is doing now.

    Args:
        store: The store, in a database.
        silent: Seconds without an event after which a run is called silent. Default: 600.

    Raises:
        UsageError: The store is not in a database.
        StoreError: The database cannot be read.
    """
    check_seconds("silent", silent)
    if store._shared is None:
        raise UsageError(
            f'expected the store of a database: got {store!r}; pass TicketStore("postgresql://…")'
        )
    names = [
        row["queue_name"]
        for row in store.query(
            "SELECT queue_name FROM pgmq.meta WHERE queue_name LIKE 'callslip\\_%' ORDER BY 1"
        )
    ]
    counts = store.query(_COUNTS)[0]
    standbys = store.query(_STANDBYS)
    return FleetStatus(
        queues=[_queue(store, name) for name in names],
        workers=[WorkerStatus(**row) for row in store.query(_WORKERS)],
        standbys={row["name"]: row["sync_state"] for row in standbys},
        standby_lag={row["name"]: row["lag"] for row in standbys},
        without_worker=_without_worker(store, names),
        misfits={row["run_id"]: row["reason"] for row in store.query(_MISFITS)},
        shapes={row["shape"]: row["runs"] for row in store.query(_SHAPES)},
        silent=_silent(store, names, silent),
        **counts,
    )


def _queue(store: TicketStore, name: str) -> QueueStatus:
    # The name is one of pgmq's own list, so it needs no quoting.
    row: dict[str, Any] = store.query(_QUEUE.format(table=f"pgmq.q_{name}", since=_SINCE))[0]
    tenants = store.query(_TENANTS.format(table=f"pgmq.q_{name}", since=_SINCE))
    return QueueStatus(
        name=name.removeprefix("callslip_"),
        tenants={one["tenant"]: one["waiting"] for one in tenants},
        oldest_of={one["tenant"]: one["oldest"] for one in tenants},
        **row,
    )


def _without_worker(store: TicketStore, queues: list[str]) -> dict[str, int]:
    runs: Counter[str] = Counter()
    for name in queues:
        rows = store.query(_WITHOUT_WORKER.format(table=f"pgmq.q_{name}"))
        runs.update({row["agent"]: row["runs"] for row in rows})
    return dict(runs)


def _silent(store: TicketStore, queues: list[str], seconds: float) -> list[SilentRun]:
    found = [
        row
        for name in queues
        for row in store.query(_LEASED.format(table=f"pgmq.q_{name}"), [seconds])
    ]
    found.sort(key=lambda row: row["seconds"], reverse=True)
    return silent_runs(
        lambda query, run_id: store.query(query.format(of="callslip.", id="$1"), [run_id]), found
    )


# A claim says when it reads a message, and whoever leaves the run makes it visible from then on.
# `due` does so too with those that nobody has read, which wait as before.
_SINCE = "CASE WHEN q.last_read_at IS NULL THEN q.enqueued_at ELSE q.vt END"

_QUEUE = """
SELECT count(*) FILTER (WHERE vt <= clock_timestamp()) AS waiting,
    count(*) FILTER (WHERE vt > clock_timestamp()) AS in_progress,
    coalesce(extract(epoch FROM clock_timestamp() - min({since})
        FILTER (WHERE vt <= clock_timestamp())), 0)::double precision AS oldest
FROM {table} AS q
"""

_TENANTS = """
SELECT coalesce(run.tenant, '') AS tenant, count(*) AS waiting,
    extract(epoch FROM clock_timestamp() - min({since}))::double precision AS oldest
FROM {table} AS q JOIN callslip.run ON run.id = q.message ->> 'run'
WHERE q.vt <= clock_timestamp() GROUP BY 1
"""

_NO_WORKER = """NOT EXISTS (
    SELECT FROM callslip.worker WHERE seen > clock_timestamp() - interval '30 seconds'
        AND coalesce(run.known_as, run.agent) = ANY (agents) AND run.queue = ANY (queues)
        AND NOT (run.next > 0 AND run.agent || ' ' || coalesce(run.shape, '') = ANY (refuses))
        AND NOT jsonb_exists(misfits, run.id))
"""

_WITHOUT_WORKER = f"""
SELECT coalesce(run.known_as, run.agent) AS agent, count(*) AS runs
FROM {{table}} AS q JOIN callslip.run ON run.id = q.message ->> 'run' AND run.msg = q.msg_id
WHERE (q.vt <= clock_timestamp() OR run.is_later) AND {_NO_WORKER}
GROUP BY 1
"""  # noqa: S608  # of constants

_MISFITS = f"""
SELECT run.id AS run_id, max(given.reason) AS reason FROM callslip.worker AS one
CROSS JOIN LATERAL jsonb_each_text(one.misfits) AS given (id, reason)
JOIN callslip.run ON run.id = given.id
WHERE one.seen > clock_timestamp() - interval '30 seconds' AND run.is_later
    AND run.finished_at IS NULL AND {_NO_WORKER}
GROUP BY 1 ORDER BY 1 LIMIT 100
"""  # noqa: S608  # of constants

_LEASED = """
SELECT run.id AS run_id, run.agent,
    extract(epoch FROM clock_timestamp())::double precision - run.updated_at AS seconds
FROM {table} AS q
JOIN callslip.run AS root ON root.msg = q.msg_id AND root.id = q.message ->> 'run'
JOIN callslip.run ON coalesce(run.holder, run.id) = root.id
WHERE q.vt > clock_timestamp() AND NOT root.is_later AND run.next > 0 AND run.finished_at IS NULL
    AND run.updated_at < extract(epoch FROM clock_timestamp()) - $1
ORDER BY run.updated_at LIMIT 100
"""

_SHAPES = """
SELECT agent || ' ' || left(coalesce(shape, ''), 8) AS shape, count(*) AS runs FROM callslip.run
WHERE next > 0 AND finished_at IS NULL GROUP BY 1 ORDER BY 1
"""

_STANDBYS = """
SELECT application_name AS name, sync_state,
    pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(replay_lsn, flush_lsn))::bigint AS lag
FROM pg_stat_replication
"""

_COUNTS = """
WITH below AS MATERIALIZED (
    SELECT DISTINCT coalesce(above.holder, above.id) AS top
    FROM callslip.run AS child JOIN callslip.run AS above ON above.id = child.parent
    WHERE child.finished_at IS NULL AND child.tells_parent
), at_rest AS MATERIALIZED (
    SELECT run.id IN (SELECT top FROM below) AS waits_below FROM callslip.run
    WHERE next > 0 AND finished_at IS NULL AND holder IS NULL AND (msg IS NULL OR is_later)
)
SELECT
    (SELECT count(*) FROM callslip.run WHERE next = 0 AND NOT is_call) AS queued,
    (SELECT count(*) FROM callslip.run WHERE next > 0 AND finished_at IS NULL) AS running,
    (SELECT count(*) FROM at_rest WHERE NOT waits_below) AS resting,
    (SELECT count(*) FROM at_rest WHERE waits_below) AS waiting_below,
    (SELECT count(*) FROM callslip.run WHERE finished_at IS NOT NULL) AS finished,
    (SELECT count(*) FROM callslip.ticket WHERE parked) AS awaiting_approval,
    (SELECT count(*) FROM callslip.inbox) AS messages,
    (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
        WHERE schemaname = 'pgmq') AS dead_rows,
    (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::double precision
        FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL
    ) AS oldest_transaction,
    current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local') AS is_synchronous,
    (SELECT coalesce(max(age(xmin)), 0) FROM (
        SELECT backend_xmin AS xmin FROM pg_stat_activity
            WHERE datname = current_database() OR datname IS NULL
        UNION ALL SELECT xmin FROM pg_replication_slots
        UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
    ) AS held WHERE xmin IS NOT NULL) AS oldest_xmin
"""

_WORKERS = """
SELECT id, version, agents, queues, slots, busy, taken_over AS lost, refused,
    extract(epoch FROM clock_timestamp() - seen)::double precision AS seen
FROM callslip.worker WHERE seen > clock_timestamp() - interval '1 hour' ORDER BY id
"""
