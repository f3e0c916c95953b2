"""A person's decision on a call, as a page sends it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from callslip.console._access import Denied
from callslip.errors import UnknownTicket
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
        arguments: The arguments that a person has put in the place of the call's own; `None` for
            those that were shown.
    """

    do: Literal["approve", "deny"]
    ticket: str
    seal: str
    why: str
    arguments: Mapping[str, Any] | None = None

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
        arguments = fields.get("arguments")
        if arguments is not None and (said["do"] != "approve" or not isinstance(arguments, dict)):
            raise Denied(400, "expected arguments as a JSON object, of a call that is approved")
        decision = cls(**said, arguments=arguments)
        if decision.do == "approve" and decision.why.strip():
            raise Denied(400, "a reason is for a denial: deny the call, or leave the reason out")
        return decision

    def make(self, store: TicketStore, run_id: str, by: str) -> None:
        """Write the decision down.

        Raises:
            Denied: The call is not the one that was shown.
            UsageError: It cannot be decided so: see `Run.approve` and `Run.deny`.
            StoreError: There is no such run, or the decision cannot be written down.
        """
        run = store.run(run_id)
        ticket = next((one for one in run.tickets if one.id == self.ticket), None)
        if ticket is None:
            raise UnknownTicket(f"run {run_id} has no ticket {self.ticket}")
        # One that is decided has no seal any more, and the error says how it was.
        given = self.seal.encode(errors="replace")
        if ticket.seal is not None and not hmac.compare_digest(ticket.seal.encode(), given):
            raise Denied(409, "the call is not the one that was shown: load the page again")
        if self.do == "approve":
            run.approve(ticket.id, arguments=self.arguments, seal=ticket.seal, by=by)
        else:
            run.deny(ticket.id, self.why, by=by)
