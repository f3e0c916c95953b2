"""People at a terminal or a notebook, who are asked for decisions and answers."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

try:
    import termios
except ImportError:  # not on Windows
    termios = None  # type: ignore[assignment]

from callslip._base.options import shown
from callslip._base.unseen import named
from callslip.approval._view import view
from callslip.errors import UsageError
from callslip.tools import Fail

if TYPE_CHECKING:
    from callslip.runs import Ticket

__all__ = ["at_terminal", "in_notebook", "is_wanted"]

_QUESTION = "Approve? [y]es, [n]o, [e]dit the arguments, or a reason to deny: "
_EDIT = "The arguments, as a JSON object in one line: "
_ENDED = "nobody has decided: the input of the person has ended"

_ANSWER = "Your answer, as text or JSON: "
_NO_ANSWER = "nobody has answered: the input of the person has ended"

_WIDTH = 80
_NOTEBOOK = 72
"""Columns of a line below a cell."""

_POLL = 0.2
"""Seconds between two looks at whether a decision is still wanted."""

_one_at_a_time = threading.Lock()

is_wanted: ContextVar[Callable[[], bool]] = ContextVar("callslip_is_wanted", default=lambda: True)
"""Whether the decision that a person is asked for is still wanted; set by the run that asks."""


class _Unwanted(Exception):  # noqa: N818  # a signal
    """Somebody else has decided, or the run is over."""


def at_terminal(ticket: Ticket, problem: str | None = None) -> Any:
    """Ask at the terminal: for `run(task, approve=at_terminal, answer=at_terminal)`.

    For a call with an external result, it asks for the result, as text or JSON.

    It prints the whole call and asks for `y`, `n`, `e` and other arguments as JSON, or a reason to
    deny the call. If there is no interactive terminal, the call is denied immediately, and the
    model receives the reason: standard input must be a terminal, standard error or output too, and
    the program must run in the foreground. Ctrl-C cancels the run.

    Args:
        ticket: The call.
        problem: The problems of the arguments that were entered before.

    Raises:
        UsageError: `ticket` is not a ticket.
    """
    _check_ticket(ticket, "at_terminal")
    with _one_at_a_time:
        screen = _screen()
        if screen is None:
            return _unattended(ticket, "terminal")

        def write(text: str) -> None:
            screen.write(text)
            screen.flush()

        def read(prompt: str) -> str:
            write(prompt)
            _wait_for_line()
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line

        _drop_typed_ahead()
        width = _columns_of(screen)
        *above, short = view(ticket).lines(width, screen.encoding or "utf-8")
        if problem is None:
            write("\n" + "".join(f"{line}\n" for line in above))
        # Directly above the question, whatever has been said before.
        return _ask(ticket, lambda: write(f"{short}\n"), problem, write, read)


def in_notebook(ticket: Ticket, problem: str | None = None) -> Any:
    """Ask in a Jupyter notebook. As `at_terminal`.

    The question appears below the cell. If there is no notebook, or its front end doesn't support
    input, for example when a program executes the notebook, the call is denied immediately.

    Args:
        ticket: The call.
        problem: The problems of the arguments that were entered before.

    Raises:
        UsageError: `ticket` is not a ticket.
    """
    _check_ticket(ticket, "in_notebook")
    with _one_at_a_time:
        shell = _shell()
        kernel = getattr(shell, "kernel", None)
        if kernel is None or not getattr(kernel, "_allow_stdin", True):
            return _unattended(ticket, "notebook")
        call = view(ticket)
        # A front end wraps lines of text where it likes, and keeps each value of markup in its own
        # field.
        # Pages take long to import, and are only drawn where somebody sees them.
        html = import_module("callslip.approval._box").call_output(call)
        bundle = {"text/html": html, "text/plain": "\n".join(call.lines(_NOTEBOOK))}

        def show() -> None:
            shell.display_pub.publish(bundle)

        return _ask(ticket, show, problem, sys.stdout.write, kernel.raw_input)


def _check_ticket(ticket: object, name: str) -> None:
    if not hasattr(ticket, "run_id"):
        raise UsageError(
            f"expected a Ticket: got {shown(ticket)}; pass the function itself, approve={name}"
        )


def _ask(
    ticket: Ticket,
    show: Callable[[], object],
    problem: str | None,
    write: Callable[[str], object],
    read: Callable[[str], str],
) -> Any:
    """Ask a person. `show` is called before each question, and shows what it is about."""
    if problem is not None:
        write(f"{_printable(problem)}\n")
    if ticket.awaiting == "result":
        show()
        return _result(ticket, write, read)
    return _decision(show, write, read)


def _decision(
    show: Callable[[], object], write: Callable[[str], object], read: Callable[[str], str]
) -> bool | str | dict[str, Any]:
    try:
        while True:
            show()
            answer = read(_QUESTION).strip()
            if answer.lower() in {"y", "yes"}:
                return True
            if answer.lower() in {"n", "no"}:
                return False
            if answer.lower() not in {"e", "edit", ""}:
                return _without_surrogates(answer)
            if answer:
                arguments = _edited(read(_EDIT), write)
                if arguments is not None:
                    return arguments
    except EOFError:
        write("\n")
        return _ENDED
    except _Unwanted:
        write("\n(it is decided already, or the run is over)\n")
        return False


def _unattended(ticket: Ticket, place: str) -> str:
    """Return the reason of a denial.

    Raises:
        Fail: The call is to be answered, and not approved.
    """
    if ticket.awaiting == "result":
        raise Fail(f"nobody sits at a {place} to answer this")
    return f"nobody sits at a {place} to approve this call, so it cannot be made in this run"


def _result(ticket: Ticket, write: Callable[[str], object], read: Callable[[str], str]) -> Any:
    """Ask for the result of a call.

    Raises:
        Fail: The input of the person has ended.
    """
    if ticket.answers is not None:
        write(f"  The answer: {_printable(json.dumps(ticket.answers, ensure_ascii=False))}\n")
    try:
        text = _without_surrogates(read(_ANSWER).strip())
    except EOFError:
        write("\n")
        raise Fail(_NO_ANSWER) from None
    except _Unwanted:
        write("\n(it is answered already, or the run is over)\n")
        return None
    if ticket.answers == {"type": "string"}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _edited(text: str, write: Callable[[str], object]) -> dict[str, Any] | None:
    """Return the arguments that a person has written; `None` if they are not an object."""
    try:
        arguments = json.loads(text)
    except ValueError as error:
        write(f"expected a JSON object: {_printable(str(error))}\n")
        return None
    if not isinstance(arguments, dict):
        write(f"expected a JSON object: got {type(arguments).__name__}\n")
        return None
    return arguments


def _printable(text: str) -> str:
    """Return a text in one line, with invisible characters as code points."""
    return named(text).replace("\n", " ")


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _screen() -> TextIO | None:
    """Return the stream for output; `None` if there is no interactive terminal."""
    if not _is_terminal(sys.stdin) or not _is_in_foreground():
        return None
    return next((one for one in (sys.stderr, sys.stdout) if _is_terminal(one)), None)


def _columns_of(screen: TextIO) -> int:
    try:
        width = os.get_terminal_size(screen.fileno()).columns
    except (OSError, ValueError):
        width = 0
    return width or _WIDTH


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _is_in_foreground() -> bool:
    """Whether the program may read from its terminal. In the background it would be stopped."""
    if sys.platform == "win32":
        return True
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False


def _wait_for_line() -> None:
    """Wait until a line can be read, without keeping it from others once it is not wanted."""
    if sys.platform == "win32":
        return
    while not select.select([sys.stdin], [], [], _POLL)[0]:
        if not is_wanted.get()():
            raise _Unwanted


def _drop_typed_ahead() -> None:
    """Forget what was typed before the question: it does not answer it."""
    if sys.platform == "win32" or termios is None:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _shell() -> Any:
    """Return the IPython that this code runs in, which has a kernel in a notebook; or `None`."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()
