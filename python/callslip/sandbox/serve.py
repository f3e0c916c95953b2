"""An external runner of scripts, which needs only Python 3.8 on Linux or macOS.

    docker run --rm -i … python -I -u serve.py

It reads JSON lines on its standard input and writes JSON lines on its standard output. Each line
`run` contains a script. The script runs in a process of its own, under limits, but **without a
sandbox**: the place of this file is expected to be one. It therefore reports `unconfined`. When its
input ends, the running script is killed and this process ends. All scripts of one process share a
working directory.

This is one file, however long, because it is copied alone to the place where the scripts run.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
import mimetypes
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator

CHUNK = 1 << 16
POLL = 0.05

# What runs before the script, in its own process: limits, and how it asks.
PRELUDE = r"""
import builtins, getpass, io, json, linecache, os, resource, signal, socket, sys, traceback, types

def _stand_between():
    # A script that kills its parent is to kill this process, and not the runner.
    _end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    script = os.fork()
    if not script:
        return
    os.closerange(0, 256)
    status = os.waitpid(script, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))

def _end_with_parent():
    if sys.platform == "linux":
        try:
            import ctypes
            ctypes.CDLL(None).prctl(1, 9)
        except Exception:
            pass

def _prepare():
    path, control, limits = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    interactive = sys.argv[4] == "1"
    _end_with_parent()
    def limit(name, value, spare=0):
        kind = getattr(resource, name, None)
        if kind is None:
            return
        hard = resource.getrlimit(kind)[1]
        top = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
        try:
            resource.setrlimit(kind, (min(value, top), top))
        except (ValueError, OSError):
            pass
    limit("RLIMIT_CORE", 0)
    limit("RLIMIT_CPU", max(1, int(-(-limits["cpu_seconds"] // 1))), 1)
    limit("RLIMIT_DATA", limits["memory_bytes"])
    limit("RLIMIT_FSIZE", limits["disk_bytes"])
    limit("RLIMIT_NOFILE", limits["files"])
    channel = socket.socket(fileno=control)
    lines = channel.makefile("r", encoding="utf-8", newline="\n")
    numbers = [0]
    def tell(message):
        channel.sendall(json.dumps(message).encode() + b"\n")
    def ask(prompt="", secret=False):
        sys.stdout.flush()
        sys.stderr.flush()
        if not interactive:
            raise EOFError("this script is not interactive: nobody can answer")
        numbers[0] += 1
        tell({"ask": numbers[0], "prompt": str(prompt), "secret": secret})
        line = lines.readline()
        text = json.loads(line)["text"] if line else None
        if text is None:
            raise EOFError("there is no more input")
        return text
    class Lines(io.TextIOBase):
        def readable(self):
            return True
        def readline(self, size=-1):
            try:
                return ask() + "\n"
            except EOFError:
                return ""
        def read(self, size=-1):
            parts = []
            while True:
                line = self.readline()
                if not line:
                    return "".join(parts)
                parts.append(line)
    def secret(prompt="Password: ", stream=None, **more):
        return ask(prompt, True)
    # What a pipe can't hold is written all the same.
    sys.stdout.reconfigure(errors="backslashreplace")
    builtins.input = lambda prompt="", /: ask(prompt)
    getpass.getpass = secret
    sys.stdin = Lines() if interactive else open(os.devnull)
    with open(path, encoding="utf-8", newline="") as file:
        code = file.read()
    linecache.cache["script.py"] = (len(code), None, code.splitlines(True), "script.py")
    sys.argv[:] = ["script.py"]
    return code, tell

def _run():
    _stand_between()
    code, tell = _prepare()
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = "script.py"
    try:
        exec(compile(code, "script.py", "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, MemoryError):
            tell({"memory": True})
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != "script.py":
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        sys.exit(1)

_run()
"""


class HostGoneError(Exception):
    """The standard input has ended."""


class Host:
    """The program that sends the scripts, on the standard input and output."""

    def __init__(self) -> None:
        self.waiting: list[dict[str, Any]] = []
        self._line = bytearray()

    def send(self, **event: object) -> None:
        """Write an event."""
        os_write(1, json.dumps(event).encode() + b"\n")

    def receive(self) -> None:
        """Read what is there.

        Raises:
            HostGoneError: There will be no more.
        """
        piece = os.read(0, CHUNK)
        if not piece:
            raise HostGoneError
        self._line += piece
        # A line with files is long, and comes in many pieces.
        if b"\n" not in piece:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        self.waiting += [json.loads(line) for line in lines if line.strip()]

    def next_message(self, *kinds: str) -> dict[str, Any] | None:
        """Return the next message of one of these kinds, and drop others before it."""
        while self.waiting:
            message = self.waiting.pop(0)
            if message.get("type") in kinds:
                return message
        return None


class BoundedOutput:
    """The beginning and the end of an output stream; the rest is only counted."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.total: int = 0

    def add(self, piece: bytes) -> None:
        """Add a piece of the stream."""
        self.total += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[max(room, 0) :]
        del self._tail[: -self._half]

    @property
    def left_out(self) -> int:
        """The number of bytes that are left out."""
        return self.total - len(self._head) - len(self._tail)

    def text(self) -> str:
        """Return the kept bytes as text."""
        if not self.left_out:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        head = bytes(self._head).decode("utf-8", "replace")
        tail = bytes(self._tail).decode("utf-8", "replace")
        return "%s\n… %d bytes left out …\n%s" % (head, self.left_out, tail)


class Artifacts:
    """The files that a script leaves in `out/`."""

    def __init__(self, path: str) -> None:
        self._path = path
        # All scripts share the folder.
        self._before = dict(self._files())

    def _files(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Yield the regular files of `out/`, each with values that change when the file does."""
        for directory, folders, names in os.walk(self._path):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(directory, name)
                about = os.lstat(path)
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
                    yield path, (about.st_mtime_ns, about.st_size, about.st_ino)

    def send(self, host: Host, limits: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
        """Send the new files. Returns what the result says of them, and hints."""
        found: list[dict[str, Any]] = []
        hints: list[str] = []
        total = 0
        if os.path.islink(self._path) or not os.path.isdir(self._path):
            return found, hints
        taken: set[str] = set()
        for path, mark in self._files():
            if self._before.get(path) == mark:
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            size = mark[1]
            if len(found) == limits["artifacts"] or total + size > limits["artifact_bytes"]:
                os.close(descriptor)
                hints.append("some files of out/ were left: they are too many or too large")
                break
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(size)
            total += len(data)
            name = _safe(os.path.relpath(path, self._path), taken)
            about = {
                "path": name,
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "mime": mimetypes.guess_type(name)[0] or "application/octet-stream",
            }
            found.append(dict(about, file=None))
            host.send(type="artifact", data=base64.b64encode(data).decode(), **about)
        return found, hints


class Answers:
    """The questions of a script, and the time that it has waited for their answers."""

    def __init__(self) -> None:
        self.asked = 0
        self._asked_at: float | None = None
        self._waited = 0.0

    def ask(self) -> None:
        """Wait for the answer to a new question."""
        self._asked_at = time.monotonic()

    def is_awaited(self, number: int) -> bool:
        """Whether the answer to this question is awaited."""
        return number == self.asked and self._asked_at is not None

    def receive(self) -> None:
        """End the waiting for an answer."""
        self._waited += self.idle(time.monotonic())
        self._asked_at = None

    def idle(self, now: float) -> float:
        """Return the seconds since the question that is not answered; 0 without one."""
        return now - self._asked_at if self._asked_at is not None else 0.0

    def waited(self, now: float) -> float:
        """Return the seconds that the script has waited for answers."""
        return self._waited + self.idle(now)


class Output:
    """The output of a script, sent to the host as it comes."""

    def __init__(self, process: subprocess.Popen[bytes], kept_bytes: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._pipes = (process.stdout, process.stderr)
        self._streams: dict[int, tuple[str, BoundedOutput, codecs.IncrementalDecoder]] = {}
        for name, pipe in zip(("stdout", "stderr"), self._pipes):
            os.set_blocking(pipe.fileno(), False)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._streams[pipe.fileno()] = (name, BoundedOutput(kept_bytes), decoder)
        self.kept: dict[str, BoundedOutput] = {
            name: kept for name, kept, _ in self._streams.values()
        }
        self.open: set[int] = set(self._streams)

    @property
    def total(self) -> int:
        """The number of bytes so far."""
        return sum(one.total for one in self.kept.values())

    def read(self, descriptor: int, host: Host) -> bool:
        """Read a piece of one stream. Returns whether there was one."""
        name, kept, decoder = self._streams[descriptor]
        try:
            piece = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not piece:
            self.open.discard(descriptor)
        kept.add(piece)
        text = decoder.decode(piece, not piece)
        if text:
            host.send(type=name, text=text)
        return bool(piece)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes:
            pipe.close()


class Control:
    """The channel on which a script asks, and is answered."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self._line = bytearray()

    def fileno(self) -> int:
        """Return the descriptor; -1 after the end."""
        return self._socket.fileno()

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that are complete."""
        try:
            piece = self._socket.recv(CHUNK)
        except OSError:
            piece = b""
        if not piece or len(self._line) > CHUNK * 16:
            self._socket.close()
            return
        self._line += piece
        while b"\n" in self._line:
            line, _, rest = bytes(self._line).partition(b"\n")
            self._line = bytearray(rest)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            yield message

    def answer(self, text: str | None) -> None:
        """Answer a question; `None` for no answer."""
        try:
            self._socket.sendall(json.dumps({"text": text}).encode() + b"\n")
        except OSError:
            pass

    def close(self) -> None:
        """Close the channel."""
        self._socket.close()


class Script:
    """A running script."""

    def __init__(self, host: Host, request: dict[str, Any], directory: str) -> None:
        self._host = host
        self._limits = request["limits"]
        self._interactive = bool(request["interactive"])
        work = os.path.join(directory, "work")
        os.makedirs(work, exist_ok=True)
        _bring_files(request.get("files", []), directory, os.path.join(work, "in"))
        self._artifacts = Artifacts(os.path.join(work, "out"))
        path = os.path.join(directory, "script.py")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(request["code"].encode("utf-8", "replace").decode())
        own, theirs = socket.socketpair()
        self._control = Control(own)
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-B", "-X", "utf8", "-c", PRELUDE, path),
                *(str(theirs.fileno()), json.dumps(self._limits)),
                "1" if self._interactive else "0",
            ],
            cwd=work,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": work,
                "TMPDIR": work,
                "LANG": "C.UTF-8",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._output = Output(self._process, self._limits["kept_bytes"])
        self._answers = Answers()
        self._ended: str | None = None
        self._by_memory = False
        # The status and the usage of its process, as `os.wait4` returns them.
        self._exit: tuple[int, Any] | None = None

    def run(self) -> None:
        """Follow the script to its end, and send the result."""
        self._host.send(type="started", profile="unconfined", layers=[])
        try:
            while self._exit is None or self._output.open:
                self._step()
        except BaseException:
            self._kill()
            raise
        finally:
            self._control.close()
            self._output.close()
        self._send_result()

    def _step(self) -> None:
        wanted = [0, *self._output.open] + (
            [self._control.fileno()] if self._control.fileno() >= 0 else []
        )
        ready = select.select(wanted, [], [], POLL)[0]
        if 0 in ready:
            self._host.receive()
            self._handle_messages()
        for descriptor in [one for one in ready if one in self._output.open]:
            self._read(descriptor)
        if self._control.fileno() in ready:
            self._receive_question()
        now = time.monotonic()
        if self._answers.idle(now) > self._limits["idle_seconds"]:
            self._end("idle_timeout")
        if now - self._begun - self._answers.waited(now) > self._limits["wall_seconds"]:
            self._end("timeout")
        if self._exit is None:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._exit = status, usage
                self._process.returncode = 0
                self._kill()

    def _handle_messages(self) -> None:
        """Handle the messages of the host."""
        while True:
            message = self._host.next_message("answer", "cancel")
            if message is None:
                return
            if message["type"] == "cancel":
                self._end("cancelled")
            elif self._answers.is_awaited(message["id"]):
                self._answers.receive()
                self._control.answer(message["text"])

    def _read(self, descriptor: int) -> bool:
        """Read a piece of the output. Returns whether there was one."""
        was_there = self._output.read(descriptor, self._host)
        if self._output.total > self._limits["output_bytes"]:
            self._end("output_limit")
        return was_there

    def _receive_question(self) -> None:
        for said in self._control.receive():
            if said.get("memory"):
                self._by_memory = True
            elif self._interactive:
                self._ask(said)

    def _ask(self, said: dict[str, Any]) -> None:
        # The script has written all that comes before its question.
        for descriptor in list(self._output.open):
            while self._read(descriptor):
                pass
        self._answers.asked += 1
        if self._answers.asked > self._limits["prompts"]:
            self._end("prompt_limit")
            return
        self._answers.ask()
        prompt = str(said.get("prompt", ""))
        secret = bool(said.get("secret"))
        number = self._answers.asked
        self._host.send(type="input_request", id=number, prompt=prompt, secret=secret)

    def _end(self, status: str) -> None:
        if self._ended is None:
            self._ended = status
            self._kill()

    def _kill(self) -> None:
        """Kill all processes of the script."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        # Processes that left its group become children of this one when their parents end.
        for _ in range(20):
            children = [pid for pid in _children() if pid != self._process.pid]
            if not children:
                break
            for pid in children:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError, PermissionError):
                    pass

    def _send_result(self) -> None:
        assert self._exit is not None
        how, usage = self._exit
        code = os.WEXITSTATUS(how) if os.WIFEXITED(how) else None
        number = os.WTERMSIG(how) if os.WIFSIGNALED(how) else None
        if self._ended is not None:
            status = self._ended
        elif number == signal.SIGXCPU:
            status = "cpu_limit"
        elif number is not None:
            status = "killed"
        elif code and self._by_memory:
            status = "memory_limit"
        else:
            status = "error" if code else "ok"
        artifacts, hints = self._artifacts.send(self._host, self._limits)
        rss = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        result = {
            "status": status,
            "exit_code": code,
            "signal": number,
            "duration_ms": round((time.monotonic() - self._begun) * 1000),
            "cpu_ms": round((usage.ru_utime + usage.ru_stime) * 1000),
            "max_rss": rss,
            "artifacts": artifacts,
            "isolation": {"profile": "unconfined", "layers": []},
            "hints": hints,
        }
        for name, kept in self._output.kept.items():
            result[name] = kept.text()
            result[name + "_bytes"] = kept.total
            result[name + "_truncated"] = bool(kept.left_out)
        self._host.send(type="finished", result=result)


def _bring_files(files: list[dict[str, Any]], directory: str, target: str) -> None:
    """Write the files for a script outside of its working directory, with a link to them.

    It gets new copies, whatever an earlier script has done to the last ones.
    """
    if not files:
        return
    folder = os.path.join(directory, "in")
    os.chmod(os.path.dirname(target), 0o700)
    for path in (folder, target):
        if not os.path.lexists(path):
            continue
        if not os.path.islink(path):
            os.chmod(path, 0o700)
        # It may hold what cannot be removed, but it can be moved.
        old = tempfile.mkdtemp(dir=directory)
        os.rename(path, os.path.join(old, "in"))
        shutil.rmtree(old, ignore_errors=True)
    os.mkdir(folder, 0o700)
    for file in files:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        path = os.path.join(folder, os.path.basename(file["name"]))
        with os.fdopen(os.open(path, flags, 0o400), "wb") as out:
            out.write(base64.b64decode(file["data"]))
    os.symlink(folder, target)


def _safe(path: str, taken: set[str]) -> str:
    """Return a path that is valid on any machine, and unique."""
    allowed = "._- ()+,=@"
    parts = []
    for part in path.encode("utf-8", "replace").decode("utf-8", "replace").split(os.sep):
        kept = "".join(one if one.isalnum() or one in allowed else "_" for one in part)
        parts.append(kept.strip(". ")[:60] or "_")
    name, number = "/".join(parts), 1
    while name in taken:
        number += 1
        name = "%d_%s" % (number, parts[-1])
    taken.add(name)
    return name


def _children() -> list[int]:
    """Return the child processes of this one."""
    own = os.getpid()
    found: list[int] = []
    if not os.path.isdir("/proc/self"):
        return found
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
            except (OSError, IndexError):
                continue
            if int(parent) == own:
                found.append(int(name))
    return found


def os_write(descriptor: int, data: bytes) -> None:
    """Write all bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _missing_packages(dependencies: list[str]) -> list[str]:
    """Return the names of the packages that are not installed."""
    from importlib import metadata

    missing = []
    for requirement in dependencies:
        name = ""
        for character in requirement:
            if not (character.isalnum() or character in "._-"):
                break
            name += character
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
    return missing


def serve(directory: str) -> None:
    """Run scripts until the standard input ends."""
    host = Host()
    while True:
        request = host.next_message("run")
        if request is None:
            host.receive()
            continue
        missing = _missing_packages(request.get("dependencies", []))
        if request.get("version") != 1:
            message = "expected version 1 of the protocol: got %r" % request.get("version")
            host.send(type="failed", error="runner_protocol", message=message)
        elif missing:
            message = "this runner installs no packages, and has no %s" % ", ".join(missing)
            host.send(type="refused", code="dependency_install_failed", message=message)
        else:
            Script(host, request, directory).run()


def main() -> None:
    """Serve the standard input until it ends."""
    if sys.platform == "linux":
        # Orphaned processes of a script become children of this one, which kills them.
        try:
            import ctypes

            ctypes.CDLL(None).prctl(36, 1)
        except (ImportError, OSError, AttributeError):
            pass
    # Remove all files also if the host ends this process by SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    directory = tempfile.mkdtemp(prefix="script-")
    try:
        serve(directory)
    except (HostGoneError, BrokenPipeError, KeyboardInterrupt):
        pass
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
