"""Models that stand in for one another."""

from __future__ import annotations

from dataclasses import replace

from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts
from callslip.models._retry_rules import is_for_another_model
from callslip.models._wrapper import Wrapper

__all__ = ["Fallback"]


class Fallback(Wrapper):
    """Models of which the next one is asked if one fails.

    Each turn begins with the first model. The next one gets the same messages, and those options of
    the run that it accepts itself. It is asked after any failure of the client or the service, such
    as a refusal, a full context, a wrong key or retries that have not helped (`Retrying`), and also
    after an empty reply or a stream that broke off. Faults of the program, such as a `TypeError` or
    a `UsageError`, end the run. Each model that fails is an event of the run
    (`model_attempt_failed`). After the last model its exception ends the run. No other model is
    asked once a call of the reply has been started.

    Args:
        *models: Any models, in the order in which they are asked; at least one.

    Raises:
        UsageError: There is no model, or one cannot be called.
    """

    def __init__(self, *models: object) -> None:
        if not models:
            raise UsageError("expected models: got none: pass Fallback(first, second)")
        super().__init__(*models)

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield the attempts of each model until one succeeds."""
        attempt = replace(attempt, is_retried=True)
        last = len(self._calls) - 1
        for position, call in enumerate(self._calls):
            try:
                yield from call.attempts(attempt)
            except Exception as error:
                if position == last or not is_for_another_model(error):
                    raise
                attempt = replace(attempt, wait=0.0)
            else:
                return

    def __repr__(self) -> str:
        return f"Fallback({', '.join(repr(call.model) for call in self._calls)})"
