"""The way of one process to its database, which ends or stops at a message that was chosen before.

The proxy knows as much of PostgreSQL's protocol as it needs to count: after a simple query, and
after the Sync of an extended query, the server does something and says that it is done. These
messages are counted over all connections. At the chosen one nothing is passed on any more, in no
direction, so that the process can be killed or frozen between two statements.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
_SSL_REQUEST = 80877103
_CANCEL_REQUEST = 80877102
_RELEASE = b"r"
_CLOSE = b"c"


class Point(NamedTuple):
    """Where a process stops.

    Attributes:
        number: The message, counted from 1 over all connections.
        is_before: Whether the message is held back; else it is carried out, and its answer is held.
    """

    number: int
    is_before: bool

    def __str__(self) -> str:
        return f"{'before' if self.is_before else 'after'} message {self.number}"


class _Way:
    """One connection of the process.

    Attributes:
        said: What the process has sent after its last whole frame.
        group: Whole frames since the last message that counts.
        to_server: What is held back.
        heard: What the server has sent after its last whole frame.
        to_client: Answers that are held back.
        unanswered: Numbers of the messages that the server has not answered; 0 for its greeting.
    """

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.said = self.group = self.to_server = b""
        self.heard = self.to_client = b""
        self.is_started = False
        self.unanswered: deque[int] = deque()
        self.statements: dict[bytes, str] = {}
        self.text = ""


class PointProxy:
    """Passes on what a process and its database say to each other, up to a point.

    Args:
        url: The database. Its address through the proxy is `url` of this object.
        point: Where it stops; default nowhere.
        on_reached: Called on the proxy's thread when it has stopped, and every other message that
            was sent is answered.
    """

    def __init__(
        self,
        url: str,
        point: Point | None = None,
        *,
        on_reached: Callable[[], object] = lambda: None,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._server = parts.hostname, parts.port
        self._listening = socket.create_server((HOST, 0))
        place = f"{HOST}:{self._listening.getsockname()[1]}"
        self.url = f"postgresql://{parts.username}@{place}{parts.path}?sslmode=disable"
        self._point = point
        self._on_reached = on_reached
        self._is_holding = self._is_reached = False
        self.messages: list[str] = []
        """What each message was, for those who read a failure."""
        self._ways: list[_Way] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ, None)
        self._awake, self._waker = socket.socketpair()
        self._selector.register(self._awake, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Pass on what was held back, and all that comes."""
        self._waker.send(_RELEASE)

    def close(self) -> None:
        """Drop what was held back, and wait until the server has ended all connections."""
        # The thread ends its side of the pair when it has been told, or when it has failed.
        with suppress(OSError):
            self._waker.send(_CLOSE)
        self._thread.join(30)
        self._waker.close()
        if self._thread.is_alive():
            raise TimeoutError("the server did not end the connections of a process that is gone")

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            for way in self._ways:
                way.client.close()
                way.server.close()
            self._selector.close()
            for one in (self._listening, self._awake):
                one.close()

    def _turn(self) -> bool:
        orders = b""
        for key, _ in self._selector.select():
            if key.fileobj is self._listening:
                self._accept()
            elif key.fileobj is self._awake:
                orders = self._awake.recv(100)
            else:
                way, is_client = key.data
                self._pass_on(way, is_client=is_client)
        if _RELEASE in orders:
            self._release()
        if _CLOSE in orders:
            self._end_all()
            return False
        self._look()
        return True

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        server = socket.create_connection(self._server, timeout=10)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.settimeout(10)
        way = _Way(client, server)
        self._ways.append(way)
        self._selector.register(client, selectors.EVENT_READ, (way, True))
        self._selector.register(server, selectors.EVENT_READ, (way, False))

    def _pass_on(self, way: _Way, *, is_client: bool) -> None:
        one = way.client if is_client else way.server
        try:
            data = one.recv(1 << 16)
            if data and is_client:
                self._hear_client(way, data)
            elif data:
                self._hear_server(way, data)
        except OSError:
            data = b""
        if not data:
            self._end(way)

    def _end(self, way: _Way) -> None:
        """End a connection whose one end is gone, and wait for the server to notice."""
        if way not in self._ways:
            return
        self._ways.remove(way)
        for one in (way.client, way.server):
            self._selector.unregister(one)
        _end_of_server(way.server)
        way.client.close()
        way.server.close()

    def _end_all(self) -> None:
        for way in list(self._ways):
            self._end(way)

    def _release(self) -> None:
        self._point, self._is_holding = None, False
        for way in self._ways:
            to_server, way.to_server = way.to_server, b""
            to_client, way.to_client = way.to_client, b""
            with suppress(OSError):
                way.server.sendall(to_server)
                way.client.sendall(to_client)

    def _look(self) -> None:
        if self._is_holding and not self._is_reached and not any(w.unanswered for w in self._ways):
            self._is_reached = True
            self._on_reached()

    def _hear_client(self, way: _Way, data: bytes) -> None:
        way.said += data
        while (frame := self._next_frame(way)) is not None:
            way.group += frame
            kind = frame[:1] if way.is_started else b""
            if not way.is_started:
                self._start(way, frame)
            self._note(way, kind, frame)
            if kind in (b"Q", b"S"):
                self._count(way)
            elif kind in (b"", b"X"):
                self._send(way)

    def _next_frame(self, way: _Way) -> bytes | None:
        # The first one has no type.
        at = 1 if way.is_started else 0
        if len(way.said) < at + 4:
            return None
        end = at + int.from_bytes(way.said[at : at + 4])
        if len(way.said) < end:
            return None
        frame, way.said = way.said[:end], way.said[end:]
        return frame

    def _start(self, way: _Way, frame: bytes) -> None:
        code = int.from_bytes(frame[4:8])
        if code == _SSL_REQUEST:
            raise AssertionError("expected a process that does not ask for TLS")
        way.is_started = True
        if code != _CANCEL_REQUEST and not self._is_holding:
            way.unanswered.append(0)

    def _note(self, way: _Way, kind: bytes, frame: bytes) -> None:
        if kind == b"P":
            name, sql = frame[5:].split(b"\0")[:2]
            way.text = way.statements[name] = sql.decode(errors="replace")
            way.text = f"prepare {way.text}"
        elif kind == b"B":
            way.text = way.statements.get(frame[5:].split(b"\0")[1], "?")
        elif kind == b"Q":
            way.text = frame[5:-1].decode(errors="replace")
        elif kind == b"C" and not way.group[: -len(frame)]:
            way.text = "close a statement"

    def _count(self, way: _Way) -> None:
        text = re.sub("--.*", "", way.text)
        self.messages.append(" ".join(text.split())[:300])
        if self._is_holding:
            # It was sent together with the one that is held.
            self._send(way)
            return
        number = len(self.messages)
        is_point = self._point is not None and self._point.number == number
        if is_point and self._point is not None and self._point.is_before:
            self._is_holding = True
            self._send(way)
            return
        way.unanswered.append(number)
        self._send(way)
        self._is_holding = is_point

    def _send(self, way: _Way) -> None:
        group, way.group = way.group, b""
        if self._is_holding:
            way.to_server += group
        else:
            way.server.sendall(group)

    def _hear_server(self, way: _Way, data: bytes) -> None:
        way.heard += data
        passed = 0
        while len(way.heard) >= passed + 5:
            end = passed + 1 + int.from_bytes(way.heard[passed + 1 : passed + 5])
            if len(way.heard) < end:
                break
            if way.heard[passed : passed + 1] == b"Z" and way.unanswered:
                way.unanswered.popleft()
            passed = end
        frames, way.heard = way.heard[:passed], way.heard[passed:]
        if self._is_holding:
            way.to_client += frames
        else:
            way.client.sendall(frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_of_server(server: socket.socket) -> None:
    """Say that nothing more comes, and read on until the server has ended its side of the work."""
    try:
        server.shutdown(socket.SHUT_WR)
        while server.recv(1 << 16):
            pass
    except OSError:
        return
