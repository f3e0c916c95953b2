"""`callslip approve`, `callslip deny` and `callslip answer`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Any

from callslip._base.options import is_url
from callslip.approval import view
from callslip.cli._files import find_run, open_store
from callslip.cli._output import print_text
from callslip.errors import UsageError
from callslip.runs import Run, Ticket
from callslip.store import TicketStore

__all__ = ["run"]

SEAL_DIGITS = 16
"""As many digits of a seal name it; a person copies them."""

_YES = frozenset({"y", "yes"})
_DONE = {"approve": "approved", "deny": "denied", "answer": "answered"}


def run(options: argparse.Namespace) -> int:
    """Write a decision into the store. If another process owns it, the error names the process."""
    arguments, value = _arguments(options), _value(options)
    with open_store(options.file) as file:
        run_id = find_run(file, options.run)
    with TicketStore(options.file) as store:
        found = store.run(run_id)
        decided = run_id
        if options.command == "approve":
            ticket = _shown(found, options)
            seal = None if ticket is None else ticket.seal
            found.approve(ticket or options.ticket, arguments=arguments, seal=seal, by=options.by)
            decided = run_id if ticket is None else ticket.run_id
        elif options.command == "answer":
            found.answer(options.ticket, value, error=options.error, by=options.by)
        else:
            found.deny(options.ticket, options.why, by=options.by)
        tickets = store.run(decided).tickets
        call = next((one.call for one in tickets if one.id == options.ticket), "")
    print_text(f"{_DONE[options.command]} {options.ticket} of run {decided}: {call}")
    if is_url(options.file):
        print_text("the run continues as soon as a worker has a slot for it")
    else:
        print_text("the run continues when its program resumes it, with agent.resume")
    return 0


def _chosen(run: Run, options: argparse.Namespace) -> Ticket | None:
    """Return the ticket that waits: of the run itself, or else of a child run.

    Raises:
        UsageError: Tickets of several child runs have this id, and no seal says which.
    """
    found = [one for one in run.awaiting_approval if one.id == options.ticket]
    if own := [one for one in found if one.run_id == run.id]:
        return own[0]
    if len(found) > 1:
        named = [one for one in found if _is_seal_of(one, options.seal)]
        if not named:
            runs = ", ".join(one.run_id for one in found)
            raise UsageError(
                f"expected one ticket {options.ticket} that waits: got those of the child runs "
                f"{runs}; pass the id of one of these runs, or the seal of the call"
            )
        found = named
    return found[0] if found else None


def _is_seal_of(ticket: Ticket, given: str | None) -> bool:
    return ticket.seal is not None and given in {ticket.seal[:SEAL_DIGITS], ticket.seal}


def _shown(run: Run, options: argparse.Namespace) -> Ticket | None:
    """Show the call, and return its ticket once a person has named the call by its seal.

    `None` if no such ticket waits: the error of the decision says why.

    Raises:
        UsageError: No seal is given, or that of another call.
    """
    ticket = _chosen(run, options)
    if ticket is None or ticket.seal is None:
        return None
    *lines, short = view(ticket).lines(_columns(), sys.stdout.encoding or "utf-8")
    # Nothing in them is to be escaped any more.
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, short)))
    short_seal = ticket.seal[:SEAL_DIGITS]
    given = options.seal
    if given is None and _is_attended():
        sys.stdout.write("Approve? [y]es or [n]o: ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in _YES:
            raise UsageError("nothing is approved: call deny to deny the call")
        given = ticket.seal
    if given is None:
        raise UsageError(
            "expected the seal of the call that is shown above: got none; look at the call, and "
            f"pass --seal {short_seal}"
        )
    if not _is_seal_of(ticket, given):
        raise UsageError(
            f"expected --seal {short_seal}, that of the call which is shown above: got "
            f"{given[:80]!r}; look at the call, and pass its seal"
        )
    return ticket


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _is_attended() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _arguments(options: argparse.Namespace) -> dict[str, Any] | None:
    text = getattr(options, "arguments", None)
    if text is None:
        return None
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected --arguments to be a JSON object: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError(
            f"expected --arguments to be a JSON object: got {type(arguments).__name__}"
        )
    return arguments


def _value(options: argparse.Namespace) -> Any:
    text = getattr(options, "value", None)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"expected the result as JSON: {error}; pass text in quotes, such as '\"yes\"'"
        ) from error
