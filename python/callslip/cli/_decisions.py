"""`callslip approve`, `callslip deny` and `callslip answer`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from callslip._options import is_url
from callslip.cli._files import find_run, open_store
from callslip.cli._output import print_text
from callslip.errors import UsageError
from callslip.store import TicketStore

__all__ = ["run"]

_DONE = {"approve": "approved", "deny": "denied", "answer": "answered"}


def run(options: argparse.Namespace) -> int:
    """Write a decision into the store. If another process owns it, the error names the process."""
    arguments, value = _arguments(options), _value(options)
    with open_store(options.file) as file:
        run_id = find_run(file, options.run)
    with TicketStore(options.file) as store:
        found = store.run(run_id)
        if options.command == "approve":
            found.approve(options.ticket, arguments=arguments, by=options.by)
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


def _arguments(options: argparse.Namespace) -> dict[str, Any] | None:
    text = getattr(options, "arguments", None)
    if text is None:
        return None
    try:
        arguments = json.loads(text)
    except ValueError as error:
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
    except ValueError as error:
        raise UsageError(
            f"expected the result as JSON: {error}; pass text in quotes, such as '\"yes\"'"
        ) from error
