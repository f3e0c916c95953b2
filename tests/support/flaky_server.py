"""A server on loopback that fails as it is told, and then answers."""

import socket
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["flaky_server"]


class FlakyServer(ThreadingHTTPServer):
    """Answers each request with the next item of its script, then with `"ok"`.

    An item is a status, a status with headers, `"reset"` or `"slow"`: no answer before the end.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = []
        self.requests = []
        self.over = threading.Event()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Say nothing: clients go away."""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        self.rfile.read(length)
        self.server.requests.append(f"{self.command} {self.path}")
        item = self.server.script.pop(0) if self.server.script else 200
        if item == "reset":
            # Closed with a reset, not with an end of the stream.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.rfile.close()
            self.wfile.close()
            self.connection.close()
            return
        if item == "slow":
            self.server.over.wait(60)
            return
        status, headers = item if isinstance(item, tuple) else (item, {})
        body = b'"ok"' if status == 200 else b'"busy"'
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815  # named by the library


@contextmanager
def flaky_server():
    server = FlakyServer()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
