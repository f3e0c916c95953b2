"""Traces: a run as it is shown, with its turns, its tickets and the runs below them."""

from __future__ import annotations

from callslip.trace._tickets import Approval, TicketSpan, ToolAttempt, UsedPlace
from callslip.trace._trace import NoteKind, Trace, TraceEnding, TraceMessage, TraceNote
from callslip.trace._turns import (
    Mark,
    MarkKind,
    ModelAttempt,
    ShortenedHistory,
    TraceViolation,
    Turn,
)

__all__ = [
    "Approval",
    "Mark",
    "MarkKind",
    "ModelAttempt",
    "NoteKind",
    "ShortenedHistory",
    "TicketSpan",
    "ToolAttempt",
    "Trace",
    "TraceEnding",
    "TraceMessage",
    "TraceNote",
    "TraceViolation",
    "Turn",
    "UsedPlace",
]
