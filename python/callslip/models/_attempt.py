"""Attempts at one reply: the requests that a model and its wrappers lead to, in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from callslip._threads.gate import Gate
    from callslip.models._call import ModelCall
    from callslip.models._prices import Prices
    from callslip.models._rates import Rates

__all__ = ["Attempt", "Attempts", "HasAttempts", "report_reply"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to one model, and the way to make it.

    Attributes:
        call: The model.
        wait: Seconds to wait before the request. No gate is held meanwhile.
        timeout: Seconds for a whole reply, for the beginning of a stream and for each next piece of
            it; `None` for no limit.
        is_retried: Whether a wrapper handles the failure. Such a failure is logged, and an empty
            reply or a stream that broke off is one too.
        gate: The gate to hold from the request to the end of the reply; `None` for no gate.
        rates: The rates to keep to; `None` for no rates.
        prices: The prices of the tokens; `None` if the client's own report stands.
        skipped: The names of models that were not asked, each with the reason.
    """

    call: ModelCall
    wait: float = 0.0
    timeout: float | None = None
    is_retried: bool = False
    gate: Gate | None = None
    rates: Rates | None = None
    prices: Prices | None = None
    skipped: tuple[tuple[str, str], ...] = ()


Attempts: TypeAlias = Generator[Attempt, None, None]
"""The attempts at one reply. The exception of an attempt that failed is thrown in: it comes out
again if there is no further attempt. After a reply `report_reply` ends the generator; one that is
closed was given up."""


def report_reply(attempts: Attempts) -> None:
    """Tell the attempts that the last one has led to a reply."""
    next(attempts, None)


class HasAttempts(ABC):
    """A wrapper of models, which decides about the attempts at a reply."""

    @abstractmethod
    def _attempts(self, attempt: Attempt) -> Attempts:
        """Return the attempts at one reply.

        Args:
            attempt: The terms that the wrappers around this one have set.
        """

    @abstractmethod
    def _leaves(self) -> list[ModelCall]:
        """Return the models inside, without their wrappers."""

    @abstractmethod
    def without_retries(self) -> HasAttempts:
        """Return this wrapper around models whose clients do not retry by themselves."""
