"""Who answers the questions of interactive scripts: a person, a function, or a list."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast

from callslip._runtime.session import current_call
from callslip._threads.pool import in_thread
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._display import live_kernel
from callslip.sandbox._events import InputRequest, ScriptEvent
from callslip.sandbox._perform import awaited_sync
from callslip.sandbox._text import Labelled, prompt_lines, visible, whole_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

__all__ = ["Answerer", "Ask", "Attend", "Scripted", "check_ask", "find_answerer", "find_person"]

T = TypeVar("T")

Ask: TypeAlias = (
    "Literal['auto'] | Callable[[InputRequest], str | Awaitable[str | None] | None] | None"
)
"""Who is asked: a person where there is one, a function, or nobody."""

Attend: TypeAlias = "Callable[[int | None], None]"
"""Looks after the script until a descriptor may be readable. Raises where the script is over."""

NOBODY = (
    "an interactive script needs somebody to answer it, and there is neither a terminal nor a "
    "notebook that takes input: write it without input()"
)


class Answerer(Protocol):
    """Answers questions, on the thread or the event loop that the script is run from."""

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Return the answer, without a line end; `None` for the end of input."""

    async def ask_async(self, request: InputRequest) -> str | None:
        """Return the answer. As `ask`."""

    def show(self, event: ScriptEvent) -> None:
        """Show what the script writes, before what it asks."""


class Scripted:
    """Answers from a list.

    Attributes:
        ran_out: Whether there was a question after the last answer.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        if isinstance(answers, str) or not all(isinstance(answer, str) for answer in answers):
            raise UsageError("expected answers as a list of strings, one for each question")
        for number, answer in enumerate(answers):
            if whole_text(answer) != answer:
                raise UsageError(
                    f"expected answers[{number}] to be text: got half of a surrogate pair in it, "
                    "which no UTF-8 can hold"
                )
        self.given = len(answers)
        self._answers: Iterator[str] = iter(list(answers))
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
        """What to say where there were more questions than answers."""
        answers = "1 answer was" if self.given == 1 else f"{self.given} answers were"
        return f"the script asked more often than it was answered: {answers} given"


class Called:
    """Answers by a function, sync or async."""

    def __init__(self, function: Callable[[InputRequest], Any]) -> None:
        self._function = function

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Call it in this thread; what is async is awaited on the private loop."""
        try:
            answer = self._function(request)
            if hasattr(answer, "__await__"):
                answer = awaited_sync(answer, lambda: attend(None))
        except EOFError:
            return None
        return _checked(answer)

    async def ask_async(self, request: InputRequest) -> str | None:
        """Call it in a thread of the pool; what is async is awaited here."""
        try:
            answer: Any = await in_thread(self._function, request)
            if hasattr(answer, "__await__"):
                answer = await cast("Awaitable[Any]", answer)
        except EOFError:
            return None
        return _checked(answer)

    def show(self, event: ScriptEvent) -> None:
        """Show nothing: what there is to show is told to `on_event`."""


class Notebook:
    """A person at a notebook, by the input field of the running cell."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._screen = Screen()

    def ask(self, request: InputRequest, attend: Attend) -> str | None:
        """Show the field and wait. Ctrl-C is the notebook's interrupt."""
        if _is_main_thread():
            return self._read(request)
        # A call beside others has a thread of its own, while the cell's waits for all of them.
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
            raise ScriptRefused(NOBODY, "interactive_unavailable") from None

    async def ask_async(self, request: InputRequest) -> str | None:
        """Show the field and wait: nothing else goes on in a kernel that waits for input."""
        return self._read(request)

    def show(self, event: ScriptEvent) -> None:
        """Show output in the cell."""
        self._screen.show(event)


class Screen:
    """What a person sees of a script: this program's own standard output and error.

    Attributes:
        is_mid_line: Whether what was written last has not ended its line.
    """

    def __init__(self) -> None:
        self.is_mid_line = False
        self._output = Labelled("script")

    def show(self, event: ScriptEvent) -> None:
        """Show a piece of output without what could move, colour or hide anything.

        Each of its lines says whose it is, as those of questions do.
        """
        text = visible(event.data["text"]) if event.kind in {"stdout", "stderr"} else ""
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
        """See that what is written next begins a line: the label of a question is not to be hid."""
        if self.is_mid_line:
            self.write("\n")


def find_person() -> Answerer | None:
    """Return the person at the terminal or the notebook; `None` where there is none."""
    kernel = live_kernel()
    if kernel is not None:
        return Notebook(kernel) if getattr(kernel, "_allow_stdin", True) else None
    try:
        is_terminal = sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        # It was closed.
        is_terminal = False
    if not is_terminal:
        return None
    try:
        from callslip.sandbox._terminal import Terminal
    except ImportError:
        # A system without `termios`.
        return None
    return Terminal(sys.stdin.fileno())


def check_ask(ask: Ask) -> None:
    """Raise `UsageError` where nobody can be asked by this."""
    if ask is not None and ask != "auto" and not callable(ask):
        raise UsageError(f"expected ask='auto', a function or None: got {ask!r}")


def find_answerer(ask: Ask, answers: Sequence[str] | None) -> Answerer:
    """Return who answers.

    Raises:
        ScriptRefused: Nobody does.
    """
    if answers is not None:
        return Scripted(answers)
    if callable(ask):
        return Called(ask)
    person = find_person() if ask == "auto" else None
    if person is None:
        raise ScriptRefused(NOBODY, "interactive_unavailable")
    return person


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_thread_of_run(function: Callable[[], T]) -> Future[T]:
    """Have a function called by the thread that drives the run of this call."""
    call = current_call()
    driver = None if call is None else call.session.run._driver
    here = getattr(driver, "here", None)
    if here is None:
        raise _off_main_thread()
    future: Future[T] = here(function)
    return future


def _off_main_thread() -> ScriptRefused:
    return ScriptRefused(
        "an interactive script can be answered in a notebook only where its agent is run by the "
        "cell itself: write it without input()",
        "interactive_unavailable",
    )


def _checked(answer: object) -> str | None:
    if answer is None or (isinstance(answer, str) and whole_text(answer) == answer):
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
