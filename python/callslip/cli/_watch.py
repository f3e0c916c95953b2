"""`callslip watch`."""

from __future__ import annotations

import argparse
import sys
import time

from callslip.cli._files import find_run, open_store
from callslip.cli._output import print_text
from callslip.events import Event, RunFinished, read_event
from callslip.look._event_lines import event_line

__all__ = ["run"]

_POLL = 0.25
"""Seconds between two looks at the file."""


def run(options: argparse.Namespace) -> int:
    """Print the events of a run until it ends, also while another process works on it."""
    with open_store(options.file) as file:
        run_id = find_run(file, options.run)
        last: Event | None = None
        while True:
            for line in file.events(run_id, after=-1 if last is None else last.seq):
                last = read_event(line, run_id)
                _print(last, line, options)
            sys.stdout.flush()
            # A finished run may have continued: its last event decides.
            if isinstance(last, RunFinished):
                return 0 if last.reason == "finished" else 1
            time.sleep(_POLL)


def _print(event: Event, line: str, options: argparse.Namespace) -> None:
    if options.json:
        print_text(line)
    elif (text := event_line(event)) is not None:
        print_text(f"{time.strftime('%H:%M:%S', time.gmtime(event.at))}  {text}")
