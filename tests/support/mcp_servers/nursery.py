"""Starts MCP servers in milliseconds: forks of one process that has imported the SDK and them.

`python -m mcp_servers.nursery FOLDER` is that process. It listens on a socket in the folder. Who
connects sends the server's name and arguments, and perhaps descriptors for its standard streams;
the answer is the server's process id, and, when it has ended, its exit code. A server ends with the
connection, and all of them end with the standard input of the nursery.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parents[1]
RELAY = Path(__file__).with_name("relay.py")
SOCKET = "socket"
SERVERS = ("agent", "everything", "guarded", "handwritten", "library", "rude")
# They import these when they run.
LATER = ("uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.auto")


@functools.cache
def nursery() -> Path:
    """Start the nursery of this process, unless it is there, and return the path of its socket."""
    folder = tempfile.TemporaryDirectory(prefix="callslip-mcp-")
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_servers.nursery", folder.name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    owner = os.getpid()

    def close() -> None:
        if os.getpid() == owner:
            process.communicate()
            folder.cleanup()

    atexit.register(close)
    assert process.stdout is not None
    assert process.stdout.readline(), "the nursery has not started"
    return Path(folder.name) / SOCKET


class Forked:
    """A server that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, name: str, *arguments: str) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(nursery()))
        environment = dict(os.environ)
        order = {"name": name, "arguments": arguments, "env": environment, "cwd": str(Path.cwd())}
        self._connection.sendall(json.dumps(order).encode() + b"\n")
        with self._connection.makefile() as answers:
            self.pid = int(answers.readline())
        self._is_over = False

    def kill(self) -> None:
        if not self._is_over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until the process has ended and is gone."""
        if not self._is_over:
            while self._connection.recv(64):
                pass
            self._connection.close()
            self._is_over = True

    def has_ended(self) -> bool:
        """Whether the process has ended."""
        try:
            self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True


class _Orders:
    """What the nursery process does."""

    def __init__(self, folder: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(Path(folder) / SOCKET))
        self._listening.listen()
        self._children: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._waking = socket.socketpair()
        for one in (self._woken, self._waking):
            one.setblocking(False)
        signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._selector.register(self._woken, selectors.EVENT_READ, self._reap)
        self._selector.register(0, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until the standard input ends."""
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    for pid in self._children:
                        os.kill(pid, signal.SIGKILL)
                    return
                key.data()

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        data, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        while data and not data.endswith(b"\n"):
            data += connection.recv(1 << 16)
        if not data:
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            self._close()
            connection.close()
            _live(json.loads(data), streams)
        for one in streams:
            os.close(one)
        self._children[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._end(pid))
        self._tell(pid, pid)

    def _end(self, pid: int) -> None:
        """End a server whose connection has ended."""
        # It may have ended by itself a moment ago.
        if pid in self._children:
            self._selector.unregister(self._children[pid])
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        self._woken.recv(1 << 16)
        for pid in list(self._children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._tell(pid, os.waitstatus_to_exitcode(status))
                connection = self._children.pop(pid)
                with contextlib.suppress(KeyError):
                    self._selector.unregister(connection)
                connection.close()

    def _tell(self, pid: int, number: int) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._children[pid].sendall(b"%d\n" % number)

    def _close(self) -> None:
        """Give up, in a child, what is the nursery's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._listening, self._woken, self._waking, *self._children.values()):
            one.close()


def _live(order: dict[str, Any], streams: list[int]) -> None:
    """Be a server in this process, which has just been forked, and end it."""
    code = 1
    try:
        os.setsid()
        if not streams:
            streams = [os.open(os.devnull, os.O_RDWR)] * 3
        for number, one in enumerate(streams):
            os.dup2(one, number)
        for one in set(streams):
            os.close(one)
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        importlib.import_module(f"mcp_servers.{order['name']}").main(order["arguments"])
        code = 0
    except BaseException:
        # Whatever it is, the process must not go on as its parent.
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def main() -> None:
    for name in (*(f"mcp_servers.{name}" for name in SERVERS), *LATER):
        importlib.import_module(name)
    orders = _Orders(sys.argv[1])
    gc.collect()
    gc.freeze()
    os.write(1, b"ready\n")
    orders.serve()


if __name__ == "__main__":
    main()
