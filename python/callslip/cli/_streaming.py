"""A run at the terminal: its answer as it comes, its calls, and the approval of a person."""

from __future__ import annotations

import sys
from typing import Any

from callslip import approval
from callslip._runtime.sync_stream import SyncStream
from callslip.approval._ask import is_wanted
from callslip.cli._output import print_json, print_piece, print_text
from callslip.errors import UsageError
from callslip.events import (
    Delta,
    Event,
    ModelAsked,
    ModelReplied,
    Moved,
    Progress,
    RunFinished,
    RunStarted,
    UserSaid,
)
from callslip.look._event_lines import event_line
from callslip.runs import Run, Ticket
from callslip.tools import Fail

__all__ = ["print_answer"]


def print_answer(stream: SyncStream[Any]) -> None:
    """Print the answer of a run to standard output, and its calls to standard error.

    At a terminal the text is printed as it comes, and otherwise the answer at the end. Leaving it
    early, as by Ctrl-C, cancels the run.

    Raises:
        RunFailed: The run has failed.
    """
    screen = _Screen()
    with stream:
        for item in stream:
            screen.show(item, stream.run.id)
            # Those come before the event that shows the call.
            if isinstance(item, Event) and not isinstance(item, ModelReplied | Moved):
                for ticket in stream.run.awaiting_approval:
                    screen.end_line()
                    _decide(stream.run, ticket)
                for ticket in stream.run.awaiting_result:
                    screen.end_line()
                    _answer(stream.run, ticket)
    screen.finish(stream.result.value)


class _Screen:
    """The text that was printed since the last request to the model."""

    def __init__(self) -> None:
        self._streams = sys.stdout.isatty()
        self._text = ""

    def show(self, item: Event | Delta | Progress, run_id: str) -> None:
        """Print an item of the stream; of the runs below, only their calls."""
        match item:
            case Delta.Answer(text=text) | Delta.Text(text=text):
                if self._streams:
                    print_piece(text)
                    self._text += text
            case Event() if item.run_id != run_id:
                if hasattr(item, "ticket_id"):
                    self._print_line(item, f"{item.run_id} ")
            case ModelAsked():
                self.end_line()
            case RunStarted() | RunFinished() | UserSaid():
                pass
            case Event():
                self._print_line(item)
            case _:
                pass

    def _print_line(self, event: Event, before: str = "") -> None:
        line = event_line(event)
        if line is not None:
            self.end_line()
            print_text(f"{before}{line}", sys.stderr)

    def end_line(self) -> None:
        """End the line of the text, and forget the text: it was not the answer."""
        if self._text and not self._text.endswith("\n"):
            print_piece("\n")
        self._text = ""

    def finish(self, value: object) -> None:
        """Print the answer, unless it is there already."""
        shown = self._text.strip()
        self.end_line()
        if not isinstance(value, str):
            print_json(value)
        elif value.strip() != shown:
            print_text(value)


def _decide(run: Run[Any], ticket: Ticket) -> None:
    """Ask for approval of a call. Without an interactive terminal, the call is denied."""
    problem: str | None = None
    mark = is_wanted.set(lambda: _is_in(run.awaiting_approval, ticket))
    try:
        while _is_in(run.awaiting_approval, ticket):
            decision = approval.at_terminal(ticket, problem)
            try:
                if decision is True:
                    run.approve(ticket)
                elif decision is False or isinstance(decision, str):
                    run.deny(ticket, decision or "")
                else:
                    run.approve(ticket, arguments=decision)
            except UsageError as error:
                # Of arguments that the tool does not take; or somebody else has decided.
                problem = str(error)
    finally:
        is_wanted.reset(mark)


def _answer(run: Run[Any], ticket: Ticket) -> None:
    """Ask for the result of a call. Without an interactive terminal, the call fails."""
    problem: str | None = None
    mark = is_wanted.set(lambda: _is_in(run.awaiting_result, ticket))
    try:
        while _is_in(run.awaiting_result, ticket):
            try:
                run.answer(ticket, approval.at_terminal(ticket, problem))
            except Fail as failure:
                run.answer(ticket, error=failure.text_for_model())
            except UsageError as error:
                # Of a value of another type; or somebody else has answered.
                problem = str(error)
    finally:
        is_wanted.reset(mark)


def _is_in(waiting: list[Ticket], ticket: Ticket) -> bool:
    return any((one.run_id, one.id) == (ticket.run_id, ticket.id) for one in waiting)
