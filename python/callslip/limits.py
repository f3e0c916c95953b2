"""The limits of a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_number, check_whole
from callslip.errors import UsageError

__all__ = ["Limits"]

_FIELDS = {"steps": "turns"}
"""The fields of `Limits` that have another name in logs, by that name."""

_ELSEWHERE = {
    "budget": "cost=…",
    "max_calls": "tickets=…",
    "max_cost": "cost=…",
    "max_depth": "depth=…",
    "max_iterations": "turns=…",
    "max_retries": "max_violations=…",
    "max_seconds": "seconds=…",
    "max_steps": "turns=…",
    "max_time": "seconds=…",
    "max_tokens": "tokens=…",
    "max_tool_calls": "tickets=…",
    "max_turns": "turns=…",
    "request_limit": "turns=…",
    "requests": "turns=…",
    "timeout": "seconds=…",
    "tool_calls": "tickets=…",
    "tool_calls_limit": "tickets=…",
    "total_tokens_limit": "tokens=…",
}
"""The names of limits in other libraries, and the options to pass here."""

_DEEPEST = 1024
_MOST = 2**32 - 1


@knows_names_of_class(_ELSEWHERE)
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a run. A count of 0 allows none, and `None`, if accepted, means no limit.

    Tickets, tokens, cost and runs include all child runs: a child run uses up its limits and the
    limits of all its ancestors.

    At a limit the model gets one last turn without tools, to answer from the results so far. With
    `Agent(on_limit="raise")` the run ends with `LimitExceeded` instead.

    Attributes:
        turns: Requests to the model.
        tickets: Tool calls and delegated tasks, in all.
        open_tickets: Concurrent tool calls and delegated tasks.
        runs: Child runs, in all.
        depth: Levels of child runs; with 0 no task can be delegated.
        seconds: Working time in seconds, without the time in which the run is suspended or waits
            for approval or external results. The last turn has the same time once more.
        tokens: Input and output tokens together, as the model client reports them. If the first
            reply doesn't report them, the run ends with `LimitExceeded`.
        cost: Cost in the client's own currency, as the model client reports it, or as `Priced`
            computes it. If the first reply has no cost, the run ends with `LimitExceeded`.
        reply_bytes: Bytes of one reply.
        json_depth: Levels of nesting of the JSON in a reply, at most 1,024.
        json_values: Values in one payload.
        json_digits: Digits of one number.
        json_key_bytes: Bytes of one key.
        json_blanks: Blanks in a row between two tokens.
        json_repairs: Repairs in one payload.
        result_bytes: Bytes of one result in the message to the model. Longer results are truncated
            and marked, and the model can read on in parts; the ticket keeps the whole result.
        max_violations: Allowed violations (invalid replies) in a row; one more ends the run.
        max_repeats: Times that the same call with the same result is made. Further calls are
            refused, and the third refusal in a row ends the run. A user message resets the count.

    Raises:
        UsageError: A limit has a wrong type, or is out of range.
    """

    turns: int | None = 50
    tickets: int | None = 500
    open_tickets: int | None = 32
    runs: int | None = 100
    depth: int | None = 4
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    reply_bytes: int = 16 * 1024 * 1024
    json_depth: int = 128
    json_values: int = 4_000_000
    json_digits: int = 1000
    json_key_bytes: int = 64 * 1024
    json_blanks: int = 256 * 1024
    json_repairs: int = 100_000
    result_bytes: int = 32 * 1024
    max_violations: int = 3
    max_repeats: int = 3

    def __post_init__(self) -> None:
        for one in fields(self):
            name, value, kind = f"Limits({one.name}=…)", getattr(self, one.name), str(one.type)
            none = "no limit" if kind.endswith("None") else None
            if kind.startswith("float"):
                check_number(name, value, none=none)
            else:
                check_whole(name, value, most=_most(one.name), none=none)

    def _to_json(self) -> str:
        """Return the limits as JSON text, with the names that they have in logs."""
        fields = asdict(self)
        for logged, name in _FIELDS.items():
            fields[logged] = fields.pop(name)
        return json.dumps(fields)


def _most(field: str) -> int:
    if field == "json_depth":
        return _DEEPEST
    return 2**63 - 1 if field == "tokens" or field.endswith("_bytes") else _MOST


def check_limits(limits: object) -> Limits:
    """Return the limits of a run.

    Raises:
        UsageError: They are not `Limits`.
    """
    if not isinstance(limits, Limits):
        hint = "turns=…" if isinstance(limits, int) else "…"
        raise UsageError(f"expected limits=Limits(…): got {limits!r}; pass Limits({hint})")
    return limits


def limit_name(logged: str) -> str:
    """Return the field of `Limits` that a log names."""
    return _FIELDS.get(logged, logged)


def limit_message(logged: str) -> str:
    """Return the error of a run that has reached a limit, as the log has it, with our names."""
    # The words of a reply that the message quotes stay as they are.
    message, colon, quoted = logged.partition(": ")
    for word, name in _FIELDS.items():
        message = message.replace(word, name)
    return message + colon + quoted
