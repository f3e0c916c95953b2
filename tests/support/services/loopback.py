"""A service of a model on this machine, with scripted answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The items of a scripted reply, in order: ("text", words), ("think", words), ("redacted", words),
# ("call", id, name, arguments), ("refusal", words), ("cut",) and ("broken",). A cut reply ends at
# the limit on its tokens. A broken stream ends without an event for it.
Item = tuple[str, ...]
Reply = list[Item]
Event = dict[str, Any]


class RefusedError(Exception):
    """The request is not admitted: a 400."""


class Loopback(ThreadingHTTPServer):
    """The service.

    Attributes:
        script: The replies, one for each request that is admitted; the last one stays.
        split: The characters of a piece of streamed text.
        mixed: Whether the pieces of several calls come in turn.
        bodies: The requests so far.
        keeps_open: Whether a client may send its next request in the same connection.
    """

    daemon_threads = True
    keeps_open = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.begin()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self, *script: Reply, split: int = 3, mixed: bool = False) -> None:
        """Forget all requests, and reply by this script."""
        self.script, self.split, self.mixed = list(script), split, mixed
        self.bodies: list[dict[str, Any]] = []
        self._answered = 0

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + self.split] for at in range(0, len(text), self.split)]

    def take(self) -> Reply:
        self._answered += 1
        return self.script[min(self._answered, len(self.script)) - 1]

    def check(self, body: dict[str, Any]) -> None:
        """Refuse a request that the service refuses."""
        raise NotImplementedError

    def whole(self, reply: Reply) -> Event:
        raise NotImplementedError

    def events(self, reply: Reply) -> list[Event]:
        raise NotImplementedError

    def error(self, words: str) -> Event:
        raise NotImplementedError

    def in_turn(self, tracks: list[list[Event]]) -> list[Event]:
        """Return the events of several calls: one call after the other, or in turn."""
        if not self.mixed:
            return [event for track in tracks for event in track]
        longest = max(map(len, tracks), default=0)
        return [track[at] for at in range(longest) for track in tracks if at < len(track)]


@contextmanager
def running(service: Loopback) -> Iterator[Loopback]:
    """Run a service in a thread."""
    with service:
        thread = threading.Thread(target=service.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Loopback

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        try:
            self.server.check(body)
        except RefusedError as error:
            self._send(400, "application/json", json.dumps(self.server.error(str(error))))
            return
        reply = self.server.take()
        if not body.get("stream"):
            self._send(200, "application/json", json.dumps(self.server.whole(reply)))
            return
        events = self.server.events(reply)
        lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        self._send(200, "text/event-stream", "".join(lines))

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if not self.server.keeps_open:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
