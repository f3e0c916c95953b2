"""`callslip approve`, `callslip deny` and `callslip answer`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Any

from callslip._options import is_url
from callslip.approval import view
from callslip.cli._files import find_run, open_store
from callslip.cli._output import print_text
from callslip.errors import UsageError
from callslip.runs import Run
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
        if options.command == "approve":
            seal = _seal_of_shown(found, options)
            found.approve(options.ticket, arguments=arguments, seal=seal, by=options.by)
        elif options.command == "answer":
            found.answer(options.ticket, value, error=options.error, by=options.by)
        else:
            found.deny(options.ticket, options.why, by=options.by)
        call = next((one.call for one in found.tickets if one.id == options.ticket), "")
    print_text(f"{_DONE[options.command]} {options.ticket} of run {run_id}: {call}")
    if is_url(options.file):
        print_text("the run continues as soon as a worker has a slot for it")
    else:
        print_text("the run continues when its program resumes it, with agent.resume")
    return 0


def _seal_of_shown(run: Run, options: argparse.Namespace) -> str | None:
    """Return the seal of the call, which a person has seen. The call is shown first.

    Raises:
        UsageError: No seal is given, or that of another call.
    """
    ticket = next((one for one in run.awaiting_approval if one.id == options.ticket), None)
    if ticket is None or ticket.seal is None or ticket.run_id != run.id:
        return None  # the error says why there is nothing to approve
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
    if given not in {short_seal, ticket.seal}:
        raise UsageError(
            f"expected --seal {short_seal}, that of the call which is shown above: got "
            f"{given[:80]!r}; look at the call, and pass its seal"
        )
    return ticket.seal


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
