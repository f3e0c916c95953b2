"""Stores of runs: list, read, delete, export and replay runs and their tickets."""

from __future__ import annotations

from callslip.runs._result import RunStatus
from callslip.runs._stored import StoredRun, StoredRuns
from callslip.store._store import Durability, TicketStore, replay

__all__ = ["Durability", "RunStatus", "StoredRun", "StoredRuns", "TicketStore", "replay"]
