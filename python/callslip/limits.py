"""The bounds of a run."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from callslip.errors import UsageError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may go. `None` is no limit; a count of 0 allows none.

    Tickets, tokens, cost and runs are counted with those of all runs below it: a run that was given
    a task draws from its own limits and from those of every run above it.

    At a limit the model gets one last turn without tools, to answer from what there is; with
    `Agent(on_limit="raise")` the run ends with `LimitExceeded`.

    Attributes:
        steps: Turns of the model.
        tickets: Tool calls and tasks given to other runs in all.
        open_tickets: Of those, in progress at once.
        runs: Runs started below it in all.
        depth: Levels of runs below it; with 0 no task can be given to another run.
        seconds: Wall time. The last turn after it is bounded by the same time once more.
        tokens: Input and output tokens together, as the model client reports them.
        cost: As the model client reports it, in its own currency.
        reply_bytes: Bytes of one reply.
        json_depth: Nesting of the JSON in a reply, at most 1,024.
        json_values: Values in one payload.
        json_digits: Digits of one number.
        json_key_bytes: Bytes of one key.
        json_blanks: Blanks in a row between two tokens.
        json_repairs: Repairs in one payload.
        result_bytes: Bytes of one result that the model is shown. Longer ones are cut with a
            visible mark; the ticket keeps the whole.
        max_violations: Replies in a row that may break the protocol; one more ends the run.
        max_repeats: Times that the same call with the same result is made. Further ones are
            refused, and the third refusal in a row ends the run.
    """

    steps: int | None = 50
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
        for name, value in asdict(self).items():
            if value is not None and not 0 <= value < math.inf:
                none = "" if value < 0 else ", or None for no limit"
                raise UsageError(f"expected Limits({name}=…) to be 0 or more{none}: got {value}")

    def to_json(self) -> str:
        """Return the limits as the native module takes them."""
        return json.dumps(asdict(self))
