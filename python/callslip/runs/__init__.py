"""Runs and their tickets: an agent's work, to be looked at while it goes on and afterwards."""

from __future__ import annotations

from callslip.runs._result import RunResult
from callslip.runs._run import Run, StopReason
from callslip.runs._ticket import Ticket, TicketKind, TicketStatus
from callslip.runs._usage import Usage

__all__ = ["Run", "RunResult", "StopReason", "Ticket", "TicketKind", "TicketStatus", "Usage"]
