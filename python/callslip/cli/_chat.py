"""`callslip chat`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from callslip.agent import Agent
from callslip.cli._agents import agent_of
from callslip.cli._files import find_run, new_store, open_store
from callslip.cli._output import print_text, report
from callslip.cli._streaming import print_answer
from callslip.errors import RunFailed, UsageError
from callslip.store import TicketStore

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Have a conversation, one turn a line, until the input ends."""
    run_id = None if options.resume is None else _kept_run(options)
    # Without a file, the store is in memory and lasts as long as the conversation.
    with TicketStore() if options.store is None else new_store(options.store) as store:
        agent = agent_of(options, store)
        while (message := _read_message()) is not None:
            if message.strip():
                run_id = _turn(agent, run_id, message)
    if run_id is not None and options.store is not None:
        print_text(f"run {run_id}", sys.stderr)
    return 0


def _kept_run(options: argparse.Namespace) -> str:
    if options.store is None:
        raise UsageError("expected --resume with --store: got no file; pass the file of the store")
    with open_store(options.store) as file:
        run_id = find_run(file, options.resume)
        kept = next(one for one in file.runs() if one.run_id == run_id)
    # A run keeps its protocol.
    options.protocol = options.protocol or kept.protocol
    return run_id


def _read_message() -> str | None:
    """Return the next line; `None` at the end of the input."""
    at_terminal = sys.stdin.isatty()
    while True:
        try:
            return input("> " if at_terminal else "")
        except EOFError:
            if at_terminal:
                print_text("")
            return None
        except KeyboardInterrupt:
            # It drops the line; Ctrl-D is the way out.
            print_text("")


def _turn(agent: Agent[Any], run_id: str | None, message: str) -> str | None:
    """Print the answer to a message, and return the id of the run.

    A turn that fails or is cancelled does not end the conversation.
    """
    try:
        if run_id is None:
            stream = agent.stream_sync(message, children=True)
            run_id = stream.run.id
        else:
            stream = agent.stream_sync(run=run_id, say=message, children=True)
        print_answer(stream)
    except RunFailed as error:
        report(str(error))
    except KeyboardInterrupt:
        report("the turn was cancelled")
    return run_id
