"""Fallback models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_seconds, check_whole
from callslip.errors import UsageError
from callslip.models._attempt import Attempt, Attempts
from callslip.models._call import ModelCall
from callslip.models._rest import Rest
from callslip.models._retry_rules import is_for_another_model
from callslip.models._wrapper import Wrapper

__all__ = ["Fallback"]


@knows_names_of_class({"models": "the models one by one: Fallback(first, second)"})
class Fallback(Wrapper):
    """Switches to the next model when a model fails.

    Each turn begins with the first model that is not suspended. The next model gets the same
    messages and the run options it supports. `Fallback` switches after any failure of the client or
    the service, such as a refusal, a full context, a wrong key, exhausted retries (`Retrying`), an
    empty reply or a stream that broke off. Errors in the program, such as a `TypeError` or a
    `UsageError`, end the run. Each failed model is an event of the run (`model_attempt_failed`).
    After the last model, its exception ends the run. Once a call of the reply has started,
    `Fallback` doesn't switch any more.

    After `after` failed requests in a row a model is suspended: all runs that share this object
    skip it for `rest` seconds or as long as its server asks (`Retry-After`). Then one request tries
    it. Each further suspension is twice as long, up to ten minutes. Failures caused by the request,
    such as a refusal or a full context, do not count. If all models are suspended, the request goes
    to the model with the shortest remaining time. A skipped model is a `model_attempt_failed`, too.

    The retries of OpenAI's and Anthropic's clients are turned off: wrap a model in `Retrying`.

    Args:
        *models: Any models, in order of preference; at least one.
        after: Failed requests in a row after which a model is suspended, 1 or more. Default: 3.
        rest: Seconds of the first suspension; 0 turns suspensions off. Default: 30.

    Raises:
        UsageError: There is no model, one cannot be called, or an option is out of its range.
    """

    def __init__(self, *models: object, after: int = 3, rest: float = 30.0) -> None:
        if not models:
            raise UsageError("expected models: got none: pass Fallback(first, second)")
        check_whole("after", after, 1)
        check_seconds("rest", rest)
        super().__init__(*models)
        self._calls = tuple(call.without_retries() for call in self._calls)
        self._rests = tuple(Rest(after, rest) for _ in models)

    def _attempts(self, attempt: Attempt) -> Attempts:
        """Yield the attempts of each model until one succeeds."""
        attempt = replace(attempt, is_retried=True)
        failure: Exception | None = None
        resting: list[tuple[ModelCall, Rest]] = []
        for call, rest, is_probe in self._asked(resting):
            skipped = [(one, why) for one, why in resting if one is not call]
            told = tuple((one.leaves()[0].name, why.words) for one, why in skipped)
            attempt = replace(attempt, skipped=told)
            try:
                yield from self._counted(call.attempts(attempt), rest, is_probe=is_probe)
            except Exception as error:
                if not is_for_another_model(error):
                    raise
                failure = error
                attempt = replace(attempt, wait=0.0)
            else:
                return
        assert failure is not None
        raise failure

    def _asked(
        self, resting: list[tuple[ModelCall, Rest]]
    ) -> Iterator[tuple[ModelCall, Rest, bool]]:
        """Yield the models that do not rest; after them the one whose rest ends first.

        Args:
            resting: Receives those that rest.

        Yields:
            The model, its rest, and whether the request is to try it after a rest.
        """
        for call, rest in zip(self._calls, self._rests, strict=True):
            is_asked = rest.take()
            if is_asked is False:
                resting.append((call, rest))
            else:
                yield call, rest, is_asked is None
        if resting:
            yield *min(resting, key=lambda one: one[1].until), False

    def _counted(self, attempts: Attempts, rest: Rest, *, is_probe: bool) -> Attempts:
        """Yield the attempts of one model, and record what becomes of each."""
        attempt = next(attempts)
        try:
            while True:
                try:
                    yield attempt
                except Exception as error:
                    rest.failed(error, is_probe=is_probe)
                    if is_probe and len(self._calls) > 1:
                        # Others answer meanwhile.
                        raise
                    is_probe = False
                    attempt = attempts.throw(error)
                else:
                    rest.succeeded()
                    return
        finally:
            if is_probe:
                rest.release()
            attempts.close()

    def __repr__(self) -> str:
        return f"Fallback({', '.join(repr(call.model) for call in self._calls)})"
