"""A person's decision on a call, as a page sends it."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import Any, Literal, Self

from callslip.console._access import Denied
from callslip.console._seal import seal_of
from callslip.errors import StoreError, UsageError
from callslip.runs import Run
from callslip.store import TicketStore

__all__ = ["LONGEST", "Decision"]

LONGEST = 100_000
"""Bytes of a decision."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a person.

    Attributes:
        do: `"approve"` or `"deny"`.
        ticket: The id of the ticket.
        seal: The seal of the call that was shown.
        why: The reason of a denial, which the model reads.
    """

    do: Literal["approve", "deny"]
    ticket: str
    seal: str
    why: str

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Return the decision that a page has sent.

        Raises:
            Denied: It is none.
        """
        try:
            fields: Any = json.loads(body)
            said = {name: fields[name] for name in ("do", "ticket", "seal", "why")}
        except (ValueError, KeyError, TypeError, RecursionError):
            said = {}
        is_text = said and all(isinstance(one, str) for one in said.values())
        if not is_text or said["do"] not in {"approve", "deny"}:
            raise Denied(
                400,
                'expected {"do": "approve" or "deny", "ticket": …, "seal": …, "why": …} as JSON',
            )
        decision = cls(**said)
        if decision.do == "approve" and decision.why.strip():
            raise Denied(400, "a reason is for a denial: deny the call, or leave the reason out")
        return decision

    def make(self, store: TicketStore, run_id: str, by: str) -> None:
        """Write the decision down.

        Raises:
            Denied: The call is not awaiting approval, or is not the one that was shown.
            StoreError: It cannot be written down.
        """
        run = self._run(store, run_id)
        found = [ticket for ticket in run.tickets if ticket.id == self.ticket]
        if not found:
            raise Denied(404, f"run {run_id} has no ticket {self.ticket}")
        (ticket,) = found
        seal = seal_of(run_id, ticket.id, ticket.tool, ticket.arguments)
        if not hmac.compare_digest(seal.encode(), self.seal.encode(errors="replace")):
            raise Denied(409, "the call is not the one that was shown: load the page again")
        try:
            if self.do == "approve":
                run.approve(ticket.id, by=by)
            else:
                run.deny(ticket.id, self.why, by=by)
        except UsageError as error:
            raise Denied(409, str(error)) from error

    @staticmethod
    def _run(store: TicketStore, run_id: str) -> Run:
        try:
            return store.run(run_id)
        except StoreError as error:
            raise Denied(404, str(error)) from error
