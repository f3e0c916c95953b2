"""A server of the handshake era without the SDK, as bad as each call wants it.

`python rude.py [PAGES]` speaks over stdio, `python rude.py http PORT` over HTTP. `PAGES` maps each
cursor of the list of tools (`""` for the first page) to names of tools and the next cursor.
"""

import base64
import json
import os
import sys

from mcp_servers import handwritten

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "count", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": OBJECT},
    {"name": "die", "inputSchema": OBJECT},
    {"name": "refuse", "inputSchema": OBJECT},
    {"name": "busy", "inputSchema": OBJECT},
    {"name": "busy_read", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "busy_set", "inputSchema": OBJECT, "annotations": {"idempotentHint": True}},
]
pages = {}
counted = [0]
attempts = {}


def reply_to(message):
    """Return the answer, or bytes to write in its place."""
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if number is None or method is None:
        # A notification, or an answer to what this server wrote.
        return None
    if method == "tools/list":
        return answer(number, page_at(params.get("cursor", "")))
    if method != "tools/call":
        return handwritten.reply_to(message)
    arguments = params.get("arguments", {})
    if params["name"] == "count":
        counted[0] += 1
        return answer(number, text(f"{os.getpid()} {counted[0]}"))
    if params["name"] == "refuse":
        return {"jsonrpc": "2.0", "id": number, "error": arguments}
    if params["name"] in ("write", "die"):
        raw = base64.b64decode(arguments["base64"])
        return raw.replace(b"<id>", json.dumps(number).encode())
    return answer(number, text(f"attempt {attempts[arguments['key']]}"))


def page_at(cursor):
    if not pages:
        return {"tools": TOOLS}
    names, following = pages[cursor]
    page = {"tools": [{"name": name, "inputSchema": OBJECT} for name in names]}
    return page if following is None else {**page, "nextCursor": following}


def answer(number, result):
    return {"jsonrpc": "2.0", "id": number, "result": result}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def speak_stdio():
    for line in sys.stdin:
        message = json.loads(line)
        reply = reply_to(message)
        if isinstance(reply, dict):
            reply = json.dumps(reply).encode() + b"\n"
        while reply:
            reply = reply[os.write(1, reply) :]
        if (message.get("params") or {}).get("name") == "die":
            os._exit(3)


class Handler(handwritten.Handler):
    """Refuses calls of `busy` with a status as often as they ask for."""

    def do_POST(self):  # noqa: N802  # the library calls it so
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        params = message.get("params") or {}
        arguments = params.get("arguments") or {}
        if str(params.get("name")).startswith("busy"):
            key = arguments["key"]
            attempts[key] = attempts.get(key, 0) + 1
            if attempts[key] <= arguments["times"]:
                self.give(arguments["status"], arguments.get("body"), arguments.get("headers", ()))
                return
        reply = reply_to(message)
        self.give(200 if reply else 202, reply)

    def give(self, status, value, headers=()):
        if not isinstance(value, bytes):
            super().give(status, value, headers)
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(value)))
        self.end_headers()
        self.wfile.write(value)


def main(arguments):
    if arguments[:1] == ["http"]:
        address = ("127.0.0.1", int(arguments[1]))
        handwritten.ThreadingHTTPServer(address, Handler).serve_forever()
    else:
        pages.update(json.loads(arguments[0]) if arguments else {})
        speak_stdio()


if __name__ == "__main__":
    main(sys.argv[1:])
