"""Progress, which is not logged."""

from __future__ import annotations

from dataclasses import dataclass

from callslip._base.json import to_json
from callslip.events._json import fields_of

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a tool call, as its tool reports it. It is streamed, and not logged.

    Attributes:
        run_id: The id of the run.
        ticket_id: The id of the call's ticket, such as `"T1"`.
        tool: The name of the tool.
        done: The amount of work done, in the tool's own unit.
        total: The whole amount of work; `None` if it is not known.
        message: The step that the tool is at; `None` if it does not report one.
    """

    run_id: str
    ticket_id: str
    tool: str
    done: float
    total: float | None = None
    message: str | None = None

    def to_json(self) -> str:
        """Return the report as a JSON object: `kind`, which is `"progress"`, and the fields."""
        return to_json({"kind": "progress", **fields_of(self)})
