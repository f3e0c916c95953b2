"""Tickets: the records of tool calls and delegated tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from callslip._base.attribute_names import knows_attributes
from callslip._base.call_line import call_line
from callslip._base.json import from_json, to_json
from callslip.events._json import fields_of
from callslip.origins import Origin
from callslip.origins._traced import TracedOrigins
from callslip.parts import File, Image
from callslip.runs._view_imports import import_views

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callslip import _core

__all__ = ["Outcome", "Ticket", "TicketKind", "TicketStatus"]

TicketStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED"]
TicketKind: TypeAlias = Literal["tool_call", "task"]
Outcome: TypeAlias = Literal["ok", "error", "retry", "in_doubt", "denied", "cancelled"]


_ELSEWHERE = {
    "args input parameters tool_input": "ticket.arguments",
    "function name tool_name": "ticket.tool",
    "content output response value": "ticket.result",
    "state": "ticket.status, or ticket.outcome",
    "ticket_id tool_call_id": "ticket.id",
}
"""Replacements for attributes of other libraries."""


@knows_attributes(_ELSEWHERE)
@dataclass(frozen=True, slots=True)
class Ticket:
    """The record of one tool call, or of one delegated task.

    Attributes:
        id: `T1`, `T2`, … in the order of opening.
        run_id: The run that made the call.
        kind: `"tool_call"` or `"task"`.
        description: The purpose of the call in the model's words, which need not be true; without
            such words, the call, truncated to fit into a prompt. The real call is `call`.
        status: `"IN_PROGRESS"` or `"COMPLETED"`.
        tool: The name of the tool; `DELEGATE` for that move.
        arguments: The arguments of the call, checked and complete; if it needs approval, with the
            defaults of the tool. An argument that refers to
            another call (chatty) is the reference until that call has ended, and then its result;
            approval is only requested for final arguments. `None` if a version before 0.2 has
            compacted the run.
        call_id: The model's own id for the call (chatty).
        awaiting_approval: Whether the call waits until a person approves or denies it.
        awaiting: What the call waits for from people or other systems: `"approval"`, `"result"` for
            `Run.answer`, or `None`.
        answers: JSON Schema of the result of a call that is answered from outside; `None` for other
            calls, and if any JSON value is a result.
        approval_reason: The reason why the call needs approval, if a function in
            `needs_approval` has returned one; else `None`.
        outcome: `"ok"`, `"error"`, `"retry"` (the tool asked for another try), `"in_doubt"` (the
            process ended during the call), `"denied"` (by a person), `"cancelled"`, or `None` while
            the call is in progress.
        result: The whole result as JSON values, with each of its images and files as an `Image`
            or a `File`; `None` without one.
        error: The error, as the model reads it; `None` without one.
        turn: The number of the turn whose reply made the call, from 1.
        opened_at: Unix seconds.
        completed_at: Unix seconds.
        seal: Names the call with its arguments while it awaits approval, for `Run.approve`: 64
            hexadecimal digits, which nobody can make without the log of the run. `None` otherwise,
            and in a list of `TicketStore.tickets`.
        tool_spec: The tool of a call that awaits a decision, as the run was set up: `name`,
            `description`, `parameters` (JSON Schema) and more. `None` otherwise, and in a list of
            `TicketStore.tickets`.
        untrusted: Whether the result comes from others, so that its text may be meant to mislead a
            model: of a tool with `untrusted=True`, an MCP server or an OpenAPI operation. The
            result of a child run or of a script is untrusted if it has read such a result, or if
            the model that wrote its task or code had.
        origins: Where the values of the arguments come from, by the JSON pointers of the arguments.
            They are traced before the call is made if its agent or tool asks for more than `"any"`
            (see `ValueLevel`) or the call needs approval, and otherwise when you read them. Empty
            in a list of `TicketStore.tickets`, and for calls of logs from before version 9.
        influenced: The ids of the untrusted results that the model had read when it wrote the call;
            `T0` stands for what its run began with. Empty in a list of `TicketStore.tickets`.
        attempts: How many attempts were made: 1, or more if failed attempts were followed by
            others. An attempt that the run waits for is counted.
    """

    id: str
    run_id: str
    kind: TicketKind
    description: str
    status: TicketStatus
    tool: str
    call_id: str | None
    awaiting_approval: bool
    outcome: Outcome | None
    result: Any
    error: str | None
    turn: int
    opened_at: float
    completed_at: float | None
    arguments: dict[str, Any] | None = None
    attempts: int = 1
    approval_reason: str | None = None
    awaiting: Literal["approval", "result"] | None = None
    answers: dict[str, Any] | None = None
    seal: str | None = None
    untrusted: bool = False
    tool_spec: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    origins: Mapping[str, Origin] = field(default_factory=dict, repr=False, compare=False)
    influenced: tuple[str, ...] = ()

    @property
    def call(self) -> str:
        """The call in one line, as the runtime writes it: the tool and all its arguments.

        For an operation of an OpenAPI document: the method, the path with its values, and the other
        arguments. Characters that are not printable are escaped.
        """
        return call_line(self.tool, self.arguments)

    @property
    def seconds(self) -> float | None:
        """Seconds from the call to its outcome, with the time that it awaited approval.

        `None` while it is in progress.
        """
        return None if self.completed_at is None else self.completed_at - self.opened_at

    def to_json(self) -> str:
        """Return the ticket as a JSON object: its fields, with the names that they have in events.

        `id` is `ticket_id` and `kind` is `ticket_kind`. Images and files in the result are their
        lines, and `parts` describes each of them. `tool_spec` is left out.
        """
        return to_json(self._json_fields())

    def _json_fields(self) -> dict[str, Any]:
        own = fields_of(self)
        del own["tool_spec"]
        files: list[File] = []
        own["result"] = _with_lines(self.result, files)
        parts = [_part_fields(file) for file in files]
        return {"ticket_id": own.pop("id"), "ticket_kind": own.pop("kind"), **own, "parts": parts}

    @property
    def _ends_children(self) -> bool:
        """Whether the runs that it has started end, if no driver works on them.

        A task in progress continues with them. A call in progress is repeated or in doubt when its
        run is resumed. A call with an outcome of its own may have left runs behind that go on.
        """
        if self.kind == "task":
            return self.status == "COMPLETED"
        return self.outcome in (None, "cancelled", "in_doubt")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = import_views().bundle_of_ticket(self)
        return bundle

    @classmethod
    def from_row(
        cls,
        row: _core.TicketRow,
        spec: str | None = None,
        trace: Callable[[], str] | None = None,
    ) -> Ticket:
        """Return the ticket of a row of the core.

        Args:
            row: The row.
            spec: Its tool as JSON.
            trace: Returns its origins as JSON; `None` in a list of a store.
        """
        outcome, text, arguments = row.outcome, row.text, row.arguments
        is_ok = outcome == "ok" and text is not None
        return cls(
            id=row.id,
            run_id=row.run_id,
            kind=row.kind,
            description=row.description,
            status=row.status,
            tool=row.tool,
            call_id=row.call_id,
            awaiting_approval=row.parked,
            outcome=outcome,
            result=_result(text, row.parts) if is_ok and text is not None else None,
            error=None if is_ok else text,
            turn=row.turn,
            opened_at=row.opened_at,
            completed_at=row.completed_at,
            arguments=None if arguments is None else from_json(arguments),
            attempts=row.attempts,
            approval_reason=row.approval_reason,
            awaiting="approval" if row.parked else "result" if row.awaits_result else None,
            answers=None if row.answers is None else from_json(row.answers),
            seal=row.seal,
            untrusted=row.untrusted,
            tool_spec=None if spec is None else from_json(spec),
            origins={} if trace is None else TracedOrigins(trace),
            influenced=tuple(row.influenced),
        )


def _result(text: str, parts: list[_core.Part]) -> Any:
    value = from_json(text)
    return _with_parts(value, {part.line: File._of(part) for part in parts}) if parts else value


def _part_fields(file: File) -> dict[str, Any]:
    """Describe an image or a file as events do."""
    size = {"width": file.width, "height": file.height} if isinstance(file, Image) else {}
    known = {"name": file.name, **size}
    return {
        "label": file.label,
        "media_type": file.media_type,
        "bytes": file.size,
        "sha256": file.sha256,
        **{name: value for name, value in known.items() if value is not None},
    }


def _with_lines(value: Any, files: list[File]) -> Any:
    """Put lines in the place of images and files, which are added to a list."""
    if isinstance(value, File):
        files.append(value)
        return value._part.line
    if isinstance(value, list):
        return [_with_lines(item, files) for item in value]
    if isinstance(value, dict):
        return {name: _with_lines(item, files) for name, item in value.items()}
    return value


def _with_parts(value: Any, files: dict[str, File]) -> Any:
    """Put images and files in the place of their lines."""
    if isinstance(value, str):
        return files.get(value, value)
    if isinstance(value, list):
        return [_with_parts(item, files) for item in value]
    if isinstance(value, dict):
        return {name: _with_parts(item, files) for name, item in value.items()}
    return value
