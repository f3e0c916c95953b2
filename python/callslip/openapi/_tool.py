"""Operations of a document as tools that send requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from callslip._core import Document
from callslip._threads.timeout import awaited_within
from callslip.openapi._response import retry_hint
from callslip.tools import Context, Effect, NeedsApproval, Outcome, Tool
from callslip.tools._retries import retries_by_effect

if TYPE_CHECKING:
    from callslip.openapi._client import Client

__all__ = ["OperationTool", "retries_of"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})


def retries_of(specification: Mapping[str, Any], most: int) -> int:
    """Return how many further attempts a failed call of an operation gets."""
    effect, readonly = specification.get("effect", "once"), specification.get("readonly", False)
    return retries_by_effect(effect, readonly=readonly, most=most)


class OperationTool(Tool[..., Any]):
    """An operation that is performed by a request."""

    def __init__(
        self,
        name: str,
        document: Document,
        client: Client,
        *,
        asks: NeedsApproval,
        repeats: bool,
        retries: int,
    ) -> None:
        method = name.partition(" ")[0]
        effect: Effect = "pure" if method in _SAFE else "once"
        if method in {"PUT", "DELETE"} or (repeats and method not in _SAFE):
            effect = "idempotent"
        self._document = document
        self._client = client
        self._most_retries = retries
        super().__init__(
            self._perform,
            name=name,
            readonly=method in _SAFE,
            effect=effect,
            timeout=client.responses.timeout,
            needs_approval=asks,
            repeatable=repeats,
            untrusted=json.loads(document.spec(name)).get("untrusted", False),
        )

    async def _perform(self, **arguments: Any) -> Outcome:
        """Send the request."""
        return await self._client.call(self.name, arguments)

    @cached_property
    def _specification(self) -> dict[str, Any]:
        described: dict[str, Any] = json.loads(self._document.spec(self.name))
        return described

    @property
    def retries(self) -> int:
        """How many further attempts a failed call gets, by the effect of the operation."""
        return retries_of(self._specification, self._most_retries)

    @property
    def description(self) -> str:
        """The description of the operation, for the model."""
        return str(self._specification["description"])

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        parameters: dict[str, Any] = self._specification["parameters"]
        return parameters

    @property
    def wants_context(self) -> bool:
        """Whether calls receive the context: never."""
        return False

    @property
    def _direct(self) -> None:
        """Always `None`: the function returns an outcome, not a value."""
        return

    def _outcome_of_error(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised `error`."""
        outcome = super()._outcome_of_error(error)
        if isinstance(outcome, Outcome.Error) and outcome.transient:
            told = f"{outcome.message} {retry_hint(self.name)}"
            return Outcome.Error(told, transient=True, again=outcome.again, wait=outcome.wait)
        return outcome

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Send the request for checked arguments, and await the outcome."""
        del context
        try:
            calling = self._client.call(self.name, arguments)
            outcome: Outcome = await awaited_within(self.timeout or 0, calling)
        except Exception as error:  # noqa: BLE001  # the model reads every failure of a tool
            return self._outcome_of_error(error)
        return outcome
