"""One process of an external runner, which runs scripts one after the other."""

from __future__ import annotations

import json
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
from typing import TYPE_CHECKING, Any

from callslip.errors import RunnerProtocolError
from callslip.sandbox._event_checks import TERMINAL, EventChecks

if TYPE_CHECKING:
    from callslip.sandbox._stream import ScriptRequest

__all__ = ["RunnerProcess"]

_CHUNK = 1 << 16
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
        self._readable, self._writable = _wake_pipe()
        limits = request["limits"]
        self.request = request
        self.limits = limits
        self.checks = EventChecks(
            interactive=request["interactive"],
            artifacts=limits["artifacts"],
            artifact_bytes=limits["artifact_bytes"],
        )
        self.longest_line = 2 * limits["artifact_bytes"] + 16 * limits["kept_bytes"] + (1 << 20)
        # The progress of the runner, which decides the time limit.
        self.started = False
        self.cancelled = False
        self.questions: set[int] = set()

    def __del__(self) -> None:
        os.close(self._readable)
        os.close(self._writable)

    def fileno(self) -> int:
        return self._readable

    def news(self) -> list[dict[str, Any]]:
        with self._lock:
            with suppress(BlockingIOError):
                while os.read(self._readable, 512):
                    pass
            events = list(self._events)
            self._events.clear()
            self._unread = 0
            self._over = self._ended
        return events

    def wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._readable, select.POLLIN)
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
            with suppress(BlockingIOError):
                os.write(self._writable, b"!")


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
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._lock = threading.Lock()
        self._waiting: deque[CommandStream] = deque()
        self._stream: CommandStream | None = None
        self._unsent = bytearray()
        self._line = bytearray()
        self._searched = 0
        self._errors = bytearray()
        self._closing = False
        self._gone: str | None = None
        self._deadline: float | None = None
        self._readable, self._writable = _wake_pipe()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        threading.Thread(target=self._work, name="callslip-runner", daemon=True).start()

    # From any thread.

    def begin(self, stream: CommandStream) -> None:
        """Send a script to the process as soon as it is free."""
        with self._lock:
            if self._gone is None and not self._closing:
                self._waiting.append(stream)
                self._wake()
                return
            words = self._gone or f"the runner '{self._name}' was closed"
        stream.put(_failed_event("runner_lost", words))

    def send(self, stream: CommandStream, message: dict[str, Any]) -> None:
        """Send a message about a script, if it is still running."""
        with self._lock:
            if stream is self._stream:
                stream.questions.discard(message.get("id", -1))
                self._unsent += _line(message)
                self._set_deadline(stream)
                self._wake()

    def cancel(self, stream: CommandStream) -> None:
        """Cancel a script, whether it has started or not."""
        with self._lock:
            if stream.cancelled:
                return
            stream.cancelled = True
            if stream is self._stream:
                self._unsent += _line({"type": "cancel"})
                self._set_deadline(stream)
                self._wake()
            elif stream in self._waiting:
                self._waiting.remove(stream)
                stream.put(_CANCELLED)

    def close(self) -> None:
        """End the process. A running script is cancelled."""
        with self._lock:
            if self._gone is None:
                self._closing = True
                self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            os.write(self._writable, b"!")

    # In the thread.

    def _work(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                for pipe in (self._stdout, self._stderr, self._readable):
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
            _kill(self._process)
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
                    self._unsent += _line(dict(self._stream.request))
                    self._set_deadline(self._stream)
                deadline = self._deadline if self._stream is not None else None
                unsent = bool(self._unsent)
            _watch(selector, self._stdin, wanted=unsent)
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = {key.fileobj for key, _ in selector.select(timeout)}
            if not ready and deadline is not None and self._is_late():
                return self._describe_delay(), "runner_lost"
            if self._readable in ready:
                with suppress(BlockingIOError):
                    os.read(self._readable, 512)
            if self._stdin in ready:
                self._send()
            if self._stderr in ready and not self._receive_stderr():
                selector.unregister(self._stderr)
            if self._stdout in ready and not self._receive():
                return self._describe_end(), "runner_lost"

    def _set_deadline(self, stream: CommandStream) -> None:
        """Set the time at which the next message about a script is due."""
        if stream.cancelled:
            seconds = _TO_END
        elif not stream.started:
            seconds = self._start_seconds
        elif stream.questions:
            seconds = stream.limits["idle_seconds"] + _GRACE
        else:
            seconds = stream.limits["wall_seconds"] + _GRACE
        self._deadline = time.monotonic() + seconds

    def _is_late(self) -> bool:
        with self._lock:
            return self._deadline is not None and time.monotonic() >= self._deadline

    def _describe_delay(self) -> str:
        stream = self._stream
        assert stream is not None
        if stream.cancelled:
            return f"the runner '{self._name}' did not end a script that was cancelled"
        if not stream.started:
            return (
                f"the runner '{self._name}' did not begin within {self._start_seconds:g} "
                f"seconds{self._quoted_stderr()}"
            )
        wrote = self._quoted_stderr()
        return f"the runner '{self._name}' did not end a script whose time was over{wrote}"

    def _send(self) -> None:
        with self._lock:
            try:
                sent = os.write(self._stdin.fileno(), self._unsent[:_CHUNK])
            except BlockingIOError:
                return
            except BrokenPipeError:
                # Its last words may still be on their way.
                self._unsent.clear()
                return
            del self._unsent[:sent]

    def _receive_stderr(self) -> bool:
        piece = _read(self._stderr.fileno())
        if piece is not None:
            self._errors = (self._errors + piece)[-2000:]
        return piece != b""

    def _receive(self) -> bool:
        """Read output of the process. Returns whether there may be more."""
        piece = _read(self._stdout.fileno())
        if piece is None:
            return True
        self._line += piece
        while (at := self._line.find(b"\n", self._searched)) >= 0:
            line = bytes(self._line[:at])
            del self._line[: at + 1]
            self._searched = 0
            self._handle_line(line)
        self._searched = len(self._line)
        longest = _CHUNK if self._stream is None else self._stream.longest_line
        if len(self._line) > longest:
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
                stream.started = True
                self._set_deadline(stream)
            elif kind == "input_request":
                stream.questions.add(event["id"])
                self._set_deadline(stream)
            elif kind == "deps" and not stream.cancelled:
                self._set_deadline(stream)
            elif kind in TERMINAL:
                self._stream = None
        stream.put(event)

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TO_LEAVE)
        for _ in range(64):
            piece = _read(self._stderr.fileno())
            if not piece:
                break
            self._errors = (self._errors + piece)[-2000:]
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return f"the runner '{self._name}' {how} before the script did{self._quoted_stderr()}"

    def _quoted_stderr(self) -> str:
        words = " ".join(self._errors.decode("utf-8", "replace").split())
        return f": it wrote {words[-500:]!r}" if words else ""

    def _shut_down(self) -> None:
        """Close everything, and wait for the process."""
        with suppress(OSError):
            self._stdin.close()
        # Read until it has ended: a full pipe would block it.
        for pipe in (self._stdout, self._stderr):
            with suppress(OSError):
                os.set_blocking(pipe.fileno(), False)
        for step in (None, signal.SIGTERM, signal.SIGKILL):
            if step is not None:
                _kill(self._process, step)
            until = time.monotonic() + _TO_LEAVE
            while self._process.poll() is None and time.monotonic() < until:
                for pipe in (self._stdout, self._stderr):
                    with suppress(OSError, ValueError):
                        _read(pipe.fileno())
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.01)
            if self._process.returncode is not None:
                break
        for pipe in (self._stdout, self._stderr):
            pipe.close()
        with self._lock:
            os.close(self._readable)
            os.close(self._writable)
            self._writable = -1


def _wake_pipe() -> tuple[int, int]:
    """Return a non-blocking pipe with which one thread wakes another."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _watch(selector: selectors.BaseSelector, pipe: Any, *, wanted: bool) -> None:
    """Watch a pipe for writing only while there is something to write."""
    is_watched = pipe in {key.fileobj for key in selector.get_map().values()}
    if wanted and not is_watched:
        selector.register(pipe, selectors.EVENT_WRITE)
    elif is_watched and not wanted:
        selector.unregister(pipe)


def _read(descriptor: int) -> bytes | None:
    """Return the available bytes; `None` if there are none yet, and `b""` at the end."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None


def _kill(process: subprocess.Popen[bytes], step: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to the process group of the process."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, step)


def _line(message: dict[str, Any]) -> bytes:
    # Without raw surrogates, which UTF-8 does not have.
    return json.dumps(message).encode() + b"\n"


def _failed_event(error: str, message: str) -> dict[str, Any]:
    return {"type": "failed", "error": error, "message": message}


_CANCELLED = {
    "type": "finished",
    "result": {"status": "cancelled", "exit_code": None, "stdout": "", "stderr": ""},
}
