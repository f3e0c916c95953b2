"""A server on loopback that keeps every request as it came and answers with what it got."""

import contextlib
import http.server
import json
import threading
from dataclasses import dataclass, field
from urllib.parse import parse_qsl


@dataclass
class Received:
    """A request as it was on the wire: the target is not decoded, headers are as they stood."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self):
        return self.target.partition("?")[0]

    @property
    def query(self):
        return self.target.partition("?")[2]

    @property
    def pairs(self):
        """The query as a form reader sees it."""
        return parse_qsl(self.query, keep_blank_values=True, strict_parsing=bool(self.query))

    def header(self, name):
        """The values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class Answer:
    """What the server says. `body` may be an iterator of chunks, sent as long as one reads them."""

    body: object = b""
    status: int = 200
    content_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def echo(received):
    """The answer that tells what came."""
    return Answer(
        json.dumps(
            {
                "method": received.method,
                "target": received.target,
                "headers": received.headers,
                "body": received.body.decode("latin-1"),
            }
        ).encode()
    )


class Server(http.server.ThreadingHTTPServer):
    """Keeps what it received in `received`, and answers as `answer(received)` says."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received = []
        self.answer = echo
        # Set once a stream that the server sent was given up by whoever read it.
        self.hung_up = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def last(self):
        return self.received[-1]

    def handle_error(self, request, client_address):
        """Whoever hangs up early is no fault of the server."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self._chunks() if self.headers.get("transfer-encoding") else self.rfile.read(length)
        # Not `self.path`, which joins slashes at its beginning.
        target = self.requestline.split(" ")[1]
        received = Received(self.command, target, list(self.headers.items()), body)
        self.server.received.append(received)
        answer = self.server.answer(received)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.content_type is not None:
            self.send_header("content-type", answer.content_type)
        if isinstance(answer.body, bytes):
            if answer.status not in (204, 304):
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            return
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for chunk in answer.body:
                self.wfile.write(chunk)
        except OSError:
            self.server.hung_up.set()
        self.close_connection = True

    def _chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY"):
    setattr(_Handler, f"do_{method}", _Handler.answer)


@contextlib.contextmanager
def serving():
    """A running server; it stops with the block."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
