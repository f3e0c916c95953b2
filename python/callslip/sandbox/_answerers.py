"""Answerers of interactive scripts: a person, a function, or a list."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast

from callslip._base.options import check_called_with, checked_texts
from callslip._runtime.calls import enclosing_session
from callslip._threads.pool import in_thread
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._display import live_kernel
from callslip.sandbox._events import InputRequest, ScriptEvent
from callslip.sandbox._steps import awaited_sync
from callslip.sandbox._text import LabelledText, prompt_lines, replace_surrogates, strip_invisible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

__all__ = ["Answerer", "Ask", "Attend", "ListAnswerer", "check_ask", "find_answerer", "find_person"]

T = TypeVar("T")

Ask: TypeAlias = (
    "Literal['auto'] | Callable[[InputRequest], str | Awaitable[str | None] | None] | None"
)
"""`"auto"` for a person, a function, or `None` for no answers."""

Attend: TypeAlias = "Callable[[int | None], None]"
"""Attends to the script until a descriptor may be readable. Raises once the script is over."""

NO_ANSWERER = (
    "an interactive script needs somebody to answer it, and there is neither a terminal nor a "
    "notebook that takes input: write it without input()"
)


class Answerer(Protocol):
    """Answers questions, on the thread or the event loop that the script is run from."""

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Return the answer, without a line end; `None` for the end of input."""

    async def ask_async(self, request: InputRequest) -> str | None:
        """Return the answer, like `ask`."""

    def show(self, event: ScriptEvent) -> None:
        """Show output of the script, before its questions."""


class ListAnswerer:
    """Answers from a list.

    Attributes:
        ran_out: Whether there was a question after the last answer.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        texts = checked_texts("answers", answers)
        for number, answer in enumerate(texts):
            if replace_surrogates(answer) != answer:
                raise UsageError(
                    f"expected answers[{number}] to be text: got half of a surrogate pair in it, "
                    "which no UTF-8 can hold"
                )
        self.count = len(texts)
        self._answers: Iterator[str] = iter(texts)
        self.ran_out = False

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Return the next one."""
        del request, attend
        answer = next(self._answers, None)
        self.ran_out = self.ran_out or answer is None
        return answer

    async def ask_async(self, request: InputRequest) -> str | None:
        """Return the next one."""
        return self.ask(request, lambda _: None)

    def show(self, event: ScriptEvent) -> None:
        """Show nothing."""

    @property
    def hint(self) -> str:
        """A hint for a script that asked more questions than there were answers."""
        answers = "1 answer was" if self.count == 1 else f"{self.count} answers were"
        return f"the script asked more often than it was answered: {answers} given"


class FunctionAnswerer:
    """Answers by a function, sync or async."""

    def __init__(self, function: Callable[[InputRequest], Any]) -> None:
        self._function = function

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Call the function in this thread. An awaitable is awaited on the private loop."""
        try:
            answer = self._function(request)
            if hasattr(answer, "__await__"):
                answer = awaited_sync(answer, lambda: attend(None))
        except EOFError:
            return None
        return _check_answer(answer)

    async def ask_async(self, request: InputRequest) -> str | None:
        """Call the function in a thread of the pool. An awaitable is awaited here."""
        try:
            answer: Any = await in_thread(self._function, request)
            if hasattr(answer, "__await__"):
                answer = await cast("Awaitable[Any]", answer)
        except EOFError:
            return None
        return _check_answer(answer)

    def show(self, event: ScriptEvent) -> None:
        """Show nothing: events go to `on_event`."""


class NotebookAnswerer:
    """A person at a notebook, by the input field of the running cell."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._screen = Screen()

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Show the field and wait. Ctrl-C is the notebook's interrupt."""
        if _is_main_thread():
            return self._read(request)
        # Concurrent calls have threads of their own, but only the cell's thread can ask.
        asking = _in_thread_of_run(lambda: self._read(request))
        while not asking.done():
            attend(None)
        return asking.result()

    def _read(self, request: InputRequest) -> str | None:
        if not _is_main_thread():
            raise _off_main_thread()
        prompt = prompt_lines(request.prompt, asker=request.asker)
        self._screen.begin_line()
        try:
            read = self._kernel.getpass if request.secret else self._kernel.raw_input
            return str(read(prompt))
        except EOFError:
            return None
        except RuntimeError as error:
            # Its own class of ipykernel, which is not imported for this.
            if type(error).__name__ != "StdinNotImplementedError":
                raise
            raise ScriptRefused(NO_ANSWERER, "interactive_unavailable") from None

    async def ask_async(self, request: InputRequest) -> str | None:
        """Show the field and wait: a kernel that waits for input does nothing else."""
        return self._read(request)

    def show(self, event: ScriptEvent) -> None:
        """Show output in the cell."""
        self._screen.show(event)


class Screen:
    """Shows output of a script to a person, on this program's standard output and error.

    Attributes:
        is_mid_line: Whether what was written last has not ended its line.
    """

    def __init__(self) -> None:
        self.is_mid_line = False
        self._output = LabelledText("script")

    def show(self, event: ScriptEvent) -> None:
        """Show a piece of output, without control and invisible characters.

        Each line begins with a label, as those of questions do.
        """
        text = strip_invisible(event.data["text"]) if event.kind in {"stdout", "stderr"} else ""
        if text:
            if not self.is_mid_line:
                self._output.begin_line()
            self.write(self._output.add(text), error=event.kind == "stderr")

    def write(self, text: str, *, error: bool = False) -> None:
        """Write a text as it is."""
        if not text:
            return
        stream = sys.stderr if error else sys.stdout
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
        self.is_mid_line = not text.endswith("\n")

    def begin_line(self) -> None:
        """Begin a new line if necessary, so that the label of a question is visible."""
        if self.is_mid_line:
            self.write("\n")


def find_person() -> Answerer | None:
    """Return an answerer for the person at the terminal or notebook; `None` without one."""
    kernel = live_kernel()
    if kernel is not None:
        return NotebookAnswerer(kernel) if getattr(kernel, "_allow_stdin", True) else None
    try:
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        # It was closed.
        is_terminal = False
    if not is_terminal:
        return None
    try:
        from callslip.sandbox._terminal import TerminalAnswerer
    except ImportError:
        # A system without `termios`.
        return None
    return TerminalAnswerer(sys.stdin.fileno())


def check_ask(ask: Ask) -> None:
    """Raise `UsageError` if this option is invalid."""
    if ask is None or ask == "auto":
        return
    if not callable(ask):
        raise UsageError(f"expected ask='auto', a function or None: got {ask!r}")
    check_called_with("ask", ask, "the question")


def find_answerer(ask: Ask, answers: Sequence[str] | None) -> Answerer:
    """Return the answerer.

    Raises:
        ScriptRefused: There is none.
    """
    if answers is not None:
        return ListAnswerer(answers)
    if callable(ask):
        return FunctionAnswerer(ask)
    person = find_person() if ask == "auto" else None
    if person is None:
        raise ScriptRefused(NO_ANSWERER, "interactive_unavailable")
    return person


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_thread_of_run(function: Callable[[], T]) -> Future[T]:
    """Call a function in the thread that drives the run of this call."""
    enclosing = enclosing_session()
    driver = None if enclosing is None else enclosing[0].run._driver
    submit = getattr(driver, "submit", None)
    if submit is None:
        raise _off_main_thread()
    future: Future[T] = submit(function)
    return future


def _off_main_thread() -> ScriptRefused:
    return ScriptRefused(
        "an interactive script can be answered in a notebook only where its agent is run by the "
        "cell itself: write it without input()",
        "interactive_unavailable",
    )


def _check_answer(answer: object) -> str | None:
    if answer is None or (isinstance(answer, str) and replace_surrogates(answer) == answer):
        return answer
    if isinstance(answer, str):
        raise UsageError(
            "expected ask(request) to return text: got half of a surrogate pair in it, which no "
            "UTF-8 can hold"
        )
    raise UsageError(
        f"expected ask(request) to return a string, or None for the end of input: got "
        f"{type(answer).__name__}"
    )
