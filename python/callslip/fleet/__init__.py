"""Runs on many processes: a queue in a database, and the workers that take runs from it.

`Fleet(store, agents)` gives workers runs (`submit`), waits for their results (`result`), and is a
worker itself (`work`). `migrate` makes a database ready, and `status` says what a fleet is doing.
"""

from callslip.fleet._fleet import Fleet
from callslip.fleet._migrate import migrate
from callslip.fleet._silent import SilentRun
from callslip.fleet._status import FleetStatus, QueueStatus, WorkerStatus, status

__all__ = [
    "Fleet",
    "FleetStatus",
    "QueueStatus",
    "SilentRun",
    "WorkerStatus",
    "migrate",
    "status",
]
