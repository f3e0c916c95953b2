"""A person at a terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from callslip._base import _lazy
from callslip.sandbox._answerers import Attend, Screen
from callslip.sandbox._events import InputRequest, ScriptEvent
from callslip.sandbox._text import prompt_lines

__all__ = ["TerminalAnswerer"]

_LINE = 4096
_PATIENCE = 0.05

_taken = threading.Lock()
"""Held while a question is open: two scripts that ask at once take turns."""


class TerminalAnswerer:
    """A person at the terminal that is this program's standard input.

    A line is read only once it is there, so that Ctrl-C, the script's end and an event loop are
    never held up.

    Args:
        descriptor: The terminal.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._screen = Screen()

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Show the question and wait for a line, in this thread."""
        while not _taken.acquire(timeout=_PATIENCE):
            attend(None)
        try:
            with self._question_mode(request):
                poll = select.poll()
                poll.register(self._descriptor, select.POLLIN)
                while not poll.poll(0):
                    attend(self._descriptor)
                return self._line()
        finally:
            _taken.release()

    async def ask_async(self, request: InputRequest) -> str | None:
        """Show the question and wait for a line, without holding up the event loop."""
        while not _taken.acquire(blocking=False):  # threads wait for it too
            await _lazy.asyncio.sleep(_PATIENCE)
        try:
            with self._question_mode(request):
                loop = _lazy.asyncio.get_running_loop()
                is_there = _lazy.asyncio.Event()
                loop.add_reader(self._descriptor, is_there.set)
                try:
                    await is_there.wait()
                finally:
                    loop.remove_reader(self._descriptor)
                return self._line()
        finally:
            _taken.release()

    def show(self, event: ScriptEvent) -> None:
        """Show output."""
        self._screen.show(event)

    def _line(self) -> str | None:
        line = os.read(self._descriptor, _LINE)
        if not line:
            return None
        text = line.decode(getattr(sys.stdin, "encoding", None) or "utf-8", "replace")
        return text.rstrip("\r\n")

    @contextmanager
    def _question_mode(self, request: InputRequest) -> Iterator[None]:
        if request.asker == "callslip":
            # Drop input that was typed before the question appeared.
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        self._screen.begin_line()
        self._screen.write(prompt_lines(request.prompt, asker=request.asker))
        if not request.secret:
            try:
                yield
            except BaseException:
                # Drop input that was typed after the answer.
                self._screen.write("\n")
                raise
            self._screen.is_mid_line = False  # the answer ends the line
            return
        before = termios.tcgetattr(self._descriptor)
        silent = [*before]
        silent[3] &= ~termios.ECHO
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, silent)
        try:
            yield
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
            self._screen.write("\n")
