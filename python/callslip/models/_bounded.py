"""A model with limits on its calls."""

from __future__ import annotations

from dataclasses import replace

from callslip._base.option_names import knows_names_of_class
from callslip._threads.gate import Gate
from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts
from callslip.models._rates import Rates
from callslip.models._reply import Messages
from callslip.models._wrapper import Wrapper

__all__ = ["BoundedModel"]


@knows_names_of_class(
    {
        "limit": "concurrency=…",
        "max_concurrency": "concurrency=…",
        "rpm": "per_minute=…",
        "tpm": "tokens_per_minute=…",
    }
)
class BoundedModel(Wrapper):
    """Limits concurrent calls, calls per minute and tokens per minute of a model.

    The limits apply to all agents and runs that share this object. Runs take turns, so a run with
    many child runs does not delay the others. A call counts from its start until its reply has been
    read. A call that waits for its next attempt (`Retrying`) does not count meanwhile.

    A call over `per_minute` or `tokens_per_minute` waits. Both allow one minute's amount at once,
    and it fills up again evenly. Tokens are estimated from the length of the messages, and
    corrected by the usage that the client reports.

    Only agents apply the limits: calling this object directly just calls the model.

    Args:
        model: Any model. It still receives the keywords of a run (`stop`, `grammar`, …).
        concurrency: The largest number of concurrent calls, 1 or more. Default: 8.
        per_minute: The largest number of calls per minute, above 0. Default: `None`, no limit.
        tokens_per_minute: The largest number of input and output tokens per minute, above 0.
            Default: `None`, no limit.

    Attributes:
        gate: Limits the concurrent calls.

    Raises:
        UsageError: The model cannot be called or is limited already, or a limit is out of its
            range.
    """

    gate: Gate

    def __init__(
        self,
        model: object,
        concurrency: int = 8,
        *,
        per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        super().__init__(model)
        gates = [one.gate for one in self._inside()] + [one.gate for one in self._leaves()]
        if any(gate is not None for gate in gates):
            raise UsageError("the model is bounded already: pass the inner model to BoundedModel")
        self.gate = Gate(concurrency)
        self._rates: Rates | None = None
        if per_minute is not None or tokens_per_minute is not None:
            self._rates = Rates(per_minute, tokens_per_minute)

    def __call__(self, messages: Messages, **options: object) -> object:
        """Call the model, without the limits."""
        return self._calls[0](messages, **options)

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield the attempts of the model, with the limits."""
        return self._calls[0].attempts(replace(attempt, gate=self.gate, rates=self._rates))

    def __repr__(self) -> str:
        return f"BoundedModel({self._inner!r}, concurrency={self.gate.limit})"
