"""What people and other systems tell a run: decisions on calls, and results from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from callslip._base.options import check_text
from callslip._core import Outcome
from callslip.errors import UsageError
from callslip.runs._answered import answered, outcome_to_text
from callslip.runs._conversation import (
    check_seal,
    checked_person,
    decide,
    edited_arguments,
    find_ticket,
)
from callslip.runs._elsewhere import Told, check_answer
from callslip.runs._refused import naming_ticket

if TYPE_CHECKING:
    from callslip.runs._run import Run
    from callslip.runs._ticket import Ticket

__all__ = ["RunDecisions"]


class RunDecisions:
    """The part of a `Run` by which its calls are decided on and answered."""

    __slots__ = ()

    @property
    def _run(self) -> Run[Any]:
        return cast("Run[Any]", self)

    def approve(
        self,
        ticket: Ticket | str,
        *,
        arguments: Mapping[str, Any] | None = None,
        seal: str | None = None,
        by: str | None = None,
    ) -> None:
        """Approve a call that is awaiting approval.

        Args:
            ticket: A ticket of this run or of a child run; or the id of a ticket of this run, such
                as `"T1"`.
            arguments: All arguments of the call, to replace those of the model. They are checked as
                those, and the model is told about them with the result. They cannot refer to other
                calls. Default: the call is made as it is.
            seal: The seal of the call that the person was shown, `Ticket.seal`. Default: none, and
                whatever call the ticket has is approved.
            by: The name of the person, which the log keeps. The model is not told. Default: none.

        Raises:
            UnknownTicket: The run has no such ticket.
            Outdated: The ticket is not awaiting approval, because somebody has decided already,
                for example; or its call is not the one with this seal. Nothing changes then.
            UsageError: The tool does not take these arguments, of which `problems` has each; or
                `by` is not a name. Nothing changes then.
            StoreError: The decision cannot be written down.
        """
        edited = None if arguments is None else edited_arguments(arguments)
        run, number = find_ticket(self._run, ticket)
        person = checked_person(by)
        if seal is not None:
            check_seal(run, number, seal)
        told = Told("approve", number, edited, person)
        decide(run, told, lambda core, now: core.approve(number, now, edited, person))

    def deny(self, ticket: Ticket | str, why: str = "", *, by: str | None = None) -> None:
        """Deny a call that is awaiting approval.

        Args:
            ticket: As for `approve`.
            why: The reason, which the model reads.
            by: As for `approve`.

        Raises:
            UnknownTicket: The run has no such ticket.
            Outdated: The ticket is not awaiting approval, because somebody has decided already, for
                example.
            UsageError: The reason is not text, or `by` is not a name.
            StoreError: The decision cannot be written down.
        """
        if not isinstance(why, str):
            raise UsageError(f"expected the reason as a string: got {type(why).__name__}")
        check_text("the reason", why)
        run, number = find_ticket(self._run, ticket)
        person = checked_person(by)
        told = Told("deny", number, why, person)
        decide(run, told, lambda core, now: core.deny(number, why, now, person))

    def answer(
        self,
        ticket: Ticket | str,
        value: object = None,
        *,
        error: str | None = None,
        by: str | None = None,
    ) -> None:
        """Answer a call whose result comes from outside, because its tool is `external`.

        The first answer counts, from any process.

        Args:
            ticket: As for `approve`.
            value: The result: a value of the type in `Ticket.answers`, which is checked, or its
                JSON.
            error: Why there is no result, in the words that the model reads; in place of a value.
                Default: there is a result.
            by: The name of the person or the system, which the log keeps. Default: none.

        Raises:
            UnknownTicket: The run has no such ticket.
            Outdated: The ticket awaits no result, because somebody has answered it already, for
                example.
            UsageError: The value is of another type, with every problem; or `by` is not a name.
                Nothing changes then, and a ticket that waits still waits.
            StoreError: The answer cannot be written down.
        """
        if error is None:
            outcome = answered(value)
        else:
            check_text("error", error)
            if value is not None or not error.strip():
                raise UsageError(
                    "expected a value, or the reason why there is none: got "
                    f"{'both' if error.strip() else 'a blank reason'}; pass one of them"
                )
            outcome = Outcome.Error(error)
        run, number = find_ticket(self._run, ticket)
        person = checked_person(by)
        if run._told_by is not None:
            with naming_ticket(run, number, awaits="result"):
                check_answer(run, number, outcome)
        told = Told("answer", number, outcome_to_text(outcome), person)
        decide(run, told, lambda core, now: core.answer(number, outcome, now, person))
