"""`callslip ask`."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from callslip.cli._agents import agent_of
from callslip.cli._files import new_store, read_text
from callslip.cli._output import print_text, report
from callslip.cli._streaming import print_answer
from callslip.errors import RunFailed, UsageError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run one task."""
    task = _task(options.task)
    if not task.strip():
        raise UsageError("expected the task: got blank text; pass it, or - to read it from input")
    store = None if options.store is None else new_store(options.store)
    with store or nullcontext():
        stream = agent_of(options, store).stream_sync(task, children=True)
        try:
            print_answer(stream)
        except RunFailed as error:
            report(str(error))
            return 1
        finally:
            if store is not None:
                print_text(f"run {stream.run.id}", sys.stderr)
    return 0


def _task(given: str | None) -> str:
    if given is not None and given != "-":
        return given
    if given is None and sys.stdin.isatty():
        raise UsageError("expected a question: pass it, or - to read it from input")
    return read_text("-")
