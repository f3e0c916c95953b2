"""`callslip show`."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from callslip.cli._files import (
    find_run,
    import_export,
    is_store,
    open_store,
    pick_run,
    read_export,
)
from callslip.cli._output import print_json, print_text
from callslip.errors import UsageError
from callslip.look import to_html
from callslip.look._terminal import messages_of, run_lines, turn_lines
from callslip.runs import Run
from callslip.store import StoredRun, TicketStore
from callslip.trace import Trace, Turn

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Show the trace of a run."""
    trace = _read(options).trace()
    turn = None if options.turn is None else _find_turn(trace, options.turn)
    if options.html or options.open:
        _write_page(trace, options)
    elif options.messages:
        _show_messages(trace, options)
    elif options.json:
        print_json(trace.to_dict() if turn is None else _turn_json(trace, turn))
    else:
        for line in run_lines(trace) if turn is None else turn_lines(turn, whole=True):
            print_text(line)
    return 0


def _write_page(trace: Trace, options: argparse.Namespace) -> None:
    if options.turn is not None or options.messages or options.json:
        raise UsageError(
            "expected --html alone: got --turn, --messages or --json too; call show once for each"
        )
    path = Path(options.html or Path(tempfile.mkdtemp(prefix="callslip-")) / "trace.html")
    try:
        to_html(trace, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    print_text(str(path))
    if options.open and not webbrowser.open(path.absolute().as_uri()):
        raise UsageError(f"no browser can be opened here: open {path} yourself")


def _read(options: argparse.Namespace) -> Run[Any]:
    if is_store(options.file):
        with open_store(options.file) as file:
            if options.run is not None:
                return file.run(find_run(file, options.run))
            return file.run(_latest(list(file.runs()), file.path))
    store = TicketStore()
    for lines in read_export(options.file):
        import_export(store, lines, options.file)
    if options.run is None:
        return store.run(_latest(store.runs(), options.file))
    ids = [one.run_id for one in store.runs() if one.run_id.startswith(options.run)]
    if options.run in ids:
        ids = [options.run]
    return store.run(pick_run(ids, options.run, options.file))


def _latest(runs: list[StoredRun], place: object) -> str:
    """Return the id of the run that was started last, among those that are not below another."""
    runs = [one for one in runs if one.protocol is not None]
    known = {one.run_id for one in runs}
    top = [one for one in runs if one.parent_run not in known]
    if not top:
        raise UsageError(f"there is no run in {place}: pass another store")
    return max(top, key=lambda one: one.started_at).run_id


def _find_turn(trace: Trace, number: int) -> Turn:
    for turn in trace.turns:
        if turn.number == number:
            return turn
    raise UsageError(f"expected --turn from 1 to {len(trace.turns)}: got {number}")


def _turn_json(trace: Trace, turn: Turn) -> object:
    return trace.to_dict()["turns"][trace.turns.index(turn)]


def _show_messages(trace: Trace, options: argparse.Namespace) -> None:
    messages = messages_of(trace, options.turn)
    if options.json:
        print_json([{"role": one.role, "content": one.content} for one in messages])
        return
    for one in messages:
        print_text(f"{one.role}:")
        for line in one.content.split("\n"):
            print_text(f"  {line}")
