"""One process of an external runner, which runs scripts one after the other."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from callslip.errors import RunnerProtocolError
from callslip.sandbox._event_checks import TERMINAL, EventChecks
from callslip.sandbox._pipes import (
    CHUNK,
    ErrorOutput,
    LineReader,
    MessageWriter,
    WakePipe,
    read_available,
)

if TYPE_CHECKING:
    from callslip.sandbox._stream import ScriptRequest

__all__ = ["RunnerProcess"]

_UNREAD_TEXT = 1 << 20
"""Characters of unread output. More is dropped, and still part of the result."""

_UNREAD_EVENTS = 10_000
_GRACE = 10.0
"""Seconds beyond the limits of a script until its runner counts as lost."""

_TO_END = 5.0
"""Seconds for a runner to end a cancelled script."""

_TO_LEAVE = 2.0
"""Seconds for a runner to end after its standard input is closed, and again after each signal."""


class CommandStream:
    """A script that an external runner runs: a `ScriptStream`."""

    def __init__(self, inner: _Connection, request: ScriptRequest) -> None:
        self._connection = inner
        self._lock = threading.Lock()
        self._events: deque[dict[str, Any]] = deque()
        self._unread = 0
        self._ended = False
        self._over = False
        self._news = WakePipe()
        limits = request["limits"]
        self.request = request
        self.checks = EventChecks(
            interactive=request["interactive"],
            artifacts=limits["artifacts"],
            artifact_bytes=limits["artifact_bytes"],
        )
        self.longest_line = 2 * limits["artifact_bytes"] + 16 * limits["kept_bytes"] + (1 << 20)
        self.progress = _Progress(request)

    def __del__(self) -> None:
        self._news.close()

    def fileno(self) -> int:
        return self._news.fileno()

    def news(self) -> list[dict[str, Any]]:
        with self._lock:
            self._news.drain()
            events = list(self._events)
            self._events.clear()
            self._unread = 0
            self._over = self._ended
        return events

    def wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._news, select.POLLIN)
        poll.poll(seconds * 1000)

    def answer(self, number: int, text: str | None) -> None:
        self._connection.send(self, {"type": "answer", "id": number, "text": text})

    def cancel(self) -> None:
        self._connection.cancel(self)

    @property
    def over(self) -> bool:
        return self._over

    def put(self, event: dict[str, Any]) -> None:
        """Keep an event for `news`. Events after the last one are dropped."""
        with self._lock:
            if self._ended:
                return
            kind = event["type"]
            if kind in {"stdout", "stderr"}:
                if self._unread + len(event["text"]) > _UNREAD_TEXT:
                    return
                self._unread += len(event["text"])
            elif kind in {"deps", "limit_warning"} and len(self._events) > _UNREAD_EVENTS:
                return
            self._ended = kind in TERMINAL
            self._events.append(event)
            self._news.wake()


class _Progress:
    """How far the runner is with a script, which decides when the next message is due."""

    def __init__(self, request: ScriptRequest) -> None:
        self._limits = request["limits"]
        self.started = False
        self.cancelled = False
        self.questions: set[int] = set()
        self.deadline: float | None = None

    def set_deadline(self, start_seconds: float) -> None:
        """Set the time at which the next message is due."""
        if self.cancelled:
            seconds = _TO_END
        elif not self.started:
            seconds = start_seconds
        elif self.questions:
            seconds = self._limits["idle_seconds"] + _GRACE
        else:
            seconds = self._limits["wall_seconds"] + _GRACE
        self.deadline = time.monotonic() + seconds


class RunnerProcess:
    """The process as a `Place`."""

    def __init__(
        self, process: subprocess.Popen[bytes], name: str, *, start_seconds: float
    ) -> None:
        self._connection = _Connection(process, name, start_seconds)

    def start(self, request: ScriptRequest) -> CommandStream:
        """Start a script, or queue it behind the ones before it."""
        stream = CommandStream(self._connection, request)
        self._connection.begin(stream)
        return stream

    def close(self) -> None:
        """End the process, without waiting for it."""
        self._connection.close()

    def closer(self) -> Callable[[], None]:
        """Return a function that closes the place without a reference to it."""
        return self._connection.close


class _Connection:
    """The connection to the process, in a thread so that no caller waits for it."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, start_seconds: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._name = name
        self._start_seconds = start_seconds
        self._input = MessageWriter(process.stdin)
        self._output = LineReader(process.stdout)
        self._errors = ErrorOutput(process.stderr)
        self._lock = threading.Lock()
        self._waiting: deque[CommandStream] = deque()
        self._stream: CommandStream | None = None
        self._closing = False
        self._gone: str | None = None
        self._news = WakePipe()
        threading.Thread(target=self._work, name="callslip-runner", daemon=True).start()

    # From any thread.

    def begin(self, stream: CommandStream) -> None:
        """Send a script to the process as soon as it is free."""
        with self._lock:
            if self._gone is None and not self._closing:
                self._waiting.append(stream)
                self._news.wake()
                return
            words = self._gone or f"the runner '{self._name}' was closed"
        stream.put(_failed_event("runner_lost", words))

    def send(self, stream: CommandStream, message: dict[str, Any]) -> None:
        """Send a message about a script, if it is still running."""
        with self._lock:
            if stream is self._stream:
                stream.progress.questions.discard(message.get("id", -1))
                self._input.add(message)
                stream.progress.set_deadline(self._start_seconds)
                self._news.wake()

    def cancel(self, stream: CommandStream) -> None:
        """Cancel a script, whether it has started or not."""
        with self._lock:
            if stream.progress.cancelled:
                return
            stream.progress.cancelled = True
            if stream is self._stream:
                self._input.add({"type": "cancel"})
                stream.progress.set_deadline(self._start_seconds)
                self._news.wake()
            elif stream in self._waiting:
                self._waiting.remove(stream)
                stream.put(_CANCELLED)

    def close(self) -> None:
        """End the process. A running script is cancelled."""
        with self._lock:
            if self._gone is None:
                self._closing = True
                self._news.wake()

    # In the thread.

    def _work(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                for pipe in (self._output.pipe, self._errors.pipe, self._news):
                    selector.register(pipe, selectors.EVENT_READ)
                words, error = self._exchange(selector)
        except RunnerProtocolError as problem:
            words, error = str(problem), "runner_protocol"
        except OSError as problem:
            words, error = f"the runner '{self._name}' is lost: {problem}", "runner_lost"
        with self._lock:
            self._gone = words
            left = [*([self._stream] if self._stream else ()), *self._waiting]
            self._waiting.clear()
            self._stream = None
        if error != "closed":
            _kill(self._process, signal.SIGKILL)
        self._shut_down()
        for stream in left:
            stream.put(_failed_event("runner_lost" if error == "closed" else error, words))

    def _exchange(self, selector: selectors.BaseSelector) -> tuple[str, str]:
        """Exchange messages until the process ends. Returns the reason, as a message and a code."""
        while True:
            with self._lock:
                if self._closing:
                    return f"the runner '{self._name}' was closed", "closed"
                if self._stream is None and self._waiting:
                    self._stream = self._waiting.popleft()
                    self._input.add(dict(self._stream.request))
                    self._stream.progress.set_deadline(self._start_seconds)
                deadline = self._stream.progress.deadline if self._stream is not None else None
                has_unsent = self._input.has_unsent
            _watch(selector, self._input.pipe, wanted=has_unsent)
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = {key.fileobj for key, _ in selector.select(timeout)}
            if not ready and deadline is not None and self._is_late():
                return self._describe_delay(), "runner_lost"
            if self._news in ready:
                self._news.drain()
            if self._input.pipe in ready:
                with self._lock:
                    self._input.write()
            if self._errors.pipe in ready and self._errors.read() == b"":
                selector.unregister(self._errors.pipe)
            if self._output.pipe in ready and not self._receive():
                return self._describe_end(), "runner_lost"

    def _is_late(self) -> bool:
        with self._lock:
            deadline = self._stream.progress.deadline if self._stream is not None else None
            return deadline is not None and time.monotonic() >= deadline

    def _describe_delay(self) -> str:
        stream = self._stream
        assert stream is not None
        if stream.progress.cancelled:
            return f"the runner '{self._name}' did not end a script that was cancelled"
        if not stream.progress.started:
            return (
                f"the runner '{self._name}' did not begin within {self._start_seconds:g} "
                f"seconds{self._errors.quote()}"
            )
        wrote = self._errors.quote()
        return f"the runner '{self._name}' did not end a script whose time was over{wrote}"

    def _receive(self) -> bool:
        """Read output of the process. Returns whether there may be more."""
        piece = self._output.read()
        if piece is None:
            return True
        for line in self._output.lines():
            self._handle_line(line)
        longest = CHUNK if self._stream is None else self._stream.longest_line
        if self._output.unfinished > longest:
            raise RunnerProtocolError(
                f"expected a line of at most {longest} bytes from the runner: got a longer one"
            )
        return bool(piece)

    def _handle_line(self, line: bytes) -> None:
        stream = self._stream
        if stream is None:
            raise RunnerProtocolError(
                f"the runner said {line[:200].decode('utf-8', 'replace')!r} while it had no script"
            )
        event = stream.checks.read(line)
        kind = event["type"]
        with self._lock:
            if kind == "started":
                stream.progress.started = True
                stream.progress.set_deadline(self._start_seconds)
            elif kind == "input_request":
                stream.progress.questions.add(event["id"])
                stream.progress.set_deadline(self._start_seconds)
            elif kind == "deps" and not stream.progress.cancelled:
                stream.progress.set_deadline(self._start_seconds)
            elif kind in TERMINAL:
                self._stream = None
        stream.put(event)

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TO_LEAVE)
        for _ in range(64):
            if not self._errors.read():
                break
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return f"the runner '{self._name}' {how} before the script did{self._errors.quote()}"

    def _shut_down(self) -> None:
        """Close everything, and wait for the process."""
        with suppress(OSError):
            self._input.pipe.close()
        # Read until it has ended: a full pipe would block it.
        pipes = (self._output.pipe, self._errors.pipe)
        for step in (None, signal.SIGTERM, signal.SIGKILL):
            if step is not None:
                _kill(self._process, step)
            until = time.monotonic() + _TO_LEAVE
            while self._process.poll() is None and time.monotonic() < until:
                for pipe in pipes:
                    with suppress(OSError, ValueError):
                        read_available(pipe)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.01)
            if self._process.returncode is not None:
                break
        for pipe in pipes:
            pipe.close()
        with self._lock:
            self._news.close()


def _watch(selector: selectors.BaseSelector, pipe: IO[bytes], *, wanted: bool) -> None:
    """Watch a pipe for writing only while there is something to write."""
    is_watched = pipe in {key.fileobj for key in selector.get_map().values()}
    if wanted and not is_watched:
        selector.register(pipe, selectors.EVENT_WRITE)
    elif is_watched and not wanted:
        selector.unregister(pipe)


def _kill(process: subprocess.Popen[bytes], step: signal.Signals) -> None:
    """Send a signal to the process group of the process."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, step)


def _failed_event(error: str, message: str) -> dict[str, Any]:
    return {"type": "failed", "error": error, "message": message}


_CANCELLED = {
    "type": "finished",
    "result": {"status": "cancelled", "exit_code": None, "stdout": "", "stderr": ""},
}
