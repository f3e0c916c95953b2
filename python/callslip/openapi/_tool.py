"""Operations of a document as tools that send requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from callslip._core import Document
from callslip._failure import Passing
from callslip._threads.timeout import awaited_within
from callslip.openapi._response import again
from callslip.tools import Context, Effect, Outcome, Tool

if TYPE_CHECKING:
    from callslip.openapi._client import Client

__all__ = ["OperationTool"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class OperationTool(Tool[..., Any]):
    """An operation that is carried out by a request."""

    def __init__(
        self,
        name: str,
        document: Document,
        client: Client,
        *,
        timeout: float,
        asks: bool,
        repeats: bool,
    ) -> None:
        method = name.partition(" ")[0]
        effect: Effect = "pure" if method in _SAFE else "once"
        if method in {"PUT", "DELETE"}:
            effect = "idempotent"
        self._document = document
        self._client = client
        super().__init__(
            self._perform,
            name=name,
            readonly=method in _SAFE,
            effect=effect,
            timeout=timeout,
            needs_approval=asks,
            repeatable=repeats,
        )

    async def _perform(self, **arguments: Any) -> Outcome:
        """Carry it out."""
        return await self._client.call(self.name, arguments)

    @cached_property
    def _described(self) -> dict[str, Any]:
        described: dict[str, Any] = json.loads(self._document.spec(self.name))
        return described

    @property
    def description(self) -> str:
        """What the operation does, for the model."""
        return str(self._described["description"])

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        parameters: dict[str, Any] = self._described["parameters"]
        return parameters

    @property
    def wants_context(self) -> bool:
        """Never."""
        return False

    @property
    def _direct(self) -> None:
        """Never the function itself: its outcome is no plain value."""
        return

    def _failed(self, error: Exception) -> Outcome:
        """Return the outcome of a call that raised this."""
        kind, told = super()._failed(error)
        if isinstance(told, Passing):
            told = Passing(f"{told} {again(self.name)}")
        return kind, told

    async def acall(self, arguments: Mapping[str, Any], context: Context | None) -> Outcome:
        """Call with checked arguments and wait for the outcome."""
        del context
        try:
            calling = self._client.call(self.name, arguments)
            outcome: Outcome = await awaited_within(self.timeout or 0, calling)
        except Exception as error:  # noqa: BLE001  # what a tool raises is told to the model
            return self._failed(error)
        return outcome
