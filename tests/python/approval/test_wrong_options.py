"""Approvers that are called by a program, and not passed."""

import pytest

from callslip import UsageError
from callslip.approval import at_terminal, in_notebook


@pytest.mark.parametrize("approver", [at_terminal, in_notebook])
@pytest.mark.parametrize("ticket", [3, None, "T1"])
def test_what_is_no_ticket(approver, ticket):
    hint = f"pass the function itself, approve={approver.__name__}"
    with pytest.raises(UsageError) as wrong:
        approver(ticket)
    assert str(wrong.value) == f"expected a Ticket: got {ticket!r}; {hint}"
