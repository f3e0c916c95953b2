"""Events of a run's log, and progress, which is not logged.

The set of events is closed: each is an object of one of the classes below `Event`.
"""

from __future__ import annotations

from callslip._base.json import from_json
from callslip._base.options import shown
from callslip._core import Delta
from callslip.errors import UsageError
from callslip.events._delta_copies import register_deltas
from callslip.events._event import Event, EventKind, common_fields
from callslip.events._of_replies import (
    AnswerOffered,
    HistoryShortened,
    ModelAsked,
    ModelAttemptFailed,
    ModelReplied,
    Moved,
    Violated,
)
from callslip.events._of_runs import Compacted, Noted, RunFinished, RunStarted, UserSaid
from callslip.events._of_tickets import (
    ApprovalChecked,
    Approved,
    ArgumentsFilled,
    TicketCompleted,
    TicketOpened,
    TicketPending,
    ToolAttemptFailed,
)
from callslip.events._progress import Progress

__all__ = [
    "AnswerOffered",
    "ApprovalChecked",
    "Approved",
    "ArgumentsFilled",
    "Compacted",
    "Delta",
    "Event",
    "EventKind",
    "HistoryShortened",
    "ModelAsked",
    "ModelAttemptFailed",
    "ModelReplied",
    "Moved",
    "Noted",
    "Progress",
    "RunFinished",
    "RunStarted",
    "TicketCompleted",
    "TicketOpened",
    "TicketPending",
    "ToolAttemptFailed",
    "UserSaid",
    "Violated",
    "read_event",
]

_CLASSES: dict[str, type[Event]] = {
    own.kind: own
    for own in (
        RunStarted,
        ModelAsked,
        ModelAttemptFailed,
        HistoryShortened,
        ModelReplied,
        Violated,
        AnswerOffered,
        Moved,
        UserSaid,
        TicketOpened,
        ArgumentsFilled,
        ApprovalChecked,
        Approved,
        TicketPending,
        ToolAttemptFailed,
        TicketCompleted,
        Noted,
        RunFinished,
        Compacted,
    )
}

register_deltas()


def read_event(text: str, run_id: str = "") -> Event:
    """Return the event of one line of a log, as `Run.export` returns them.

    Args:
        text: The line.
        run_id: The id of the run, which only the event `run_started` has.

    Raises:
        UsageError: The line has the bytes of an image or a file, and no event; or it is no line
            of a log that this version can read.
    """
    try:
        return _read_event(text, run_id)
    except UsageError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"expected the line of an event: got {shown(text)}; pass a line of run.export()"
        ) from error


def _read_event(text: str, run_id: str) -> Event:
    record = from_json(text)
    if "content" in record:
        raise UsageError(
            "expected the line of an event: got the bytes of an image or a file; pass the other "
            "lines, and call replay(…).parts for the bytes"
        )
    ((kind, data),) = record["event"].items()
    own = _CLASSES[kind]
    place = {"seq": record["seq"], "at": record["at"], "run_id": run_id}
    texts = record.get("texts", {})
    return own(**{**place, **own._fields(common_fields(data)), **texts})
