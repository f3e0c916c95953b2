"""Runs, their tickets and their results."""

from __future__ import annotations

from callslip._base.usage import Usage
from callslip.runs._result import RunResult, StopReason
from callslip.runs._run import Run
from callslip.runs._ticket import Ticket, TicketKind, TicketStatus
from callslip.runs._waiting import Waiting

__all__ = [
    "Run",
    "RunResult",
    "StopReason",
    "Ticket",
    "TicketKind",
    "TicketStatus",
    "Usage",
    "Waiting",
]
