"""A server of the handshake era without the SDK, for what the SDK would never do.

`python handwritten.py [http PORT]`. Over HTTP a session is known until `/forget` is asked for.
"""

import json
import os
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METHOD_NOT_FOUND = -32601
TOOLS = [
    {"name": f"tool_{number}", "description": f"No {number}.", "inputSchema": {"type": "object"}}
    for number in range(7)
]
TOOLS[6]["name"] = "tool 6"
PAGE = 3
seen = []
offered = []
sessions = set()


def answer(method, params):
    if method == "initialize":
        offered.append(sorted(params["capabilities"]))
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "handwritten", "version": "1"},
        }
    if method == "tools/list":
        begin = int((params or {}).get("cursor", 0))
        page = {"tools": TOOLS[begin : begin + PAGE]}
        return page if begin + PAGE >= len(TOOLS) else {**page, "nextCursor": str(begin + PAGE)}
    if method == "tools/call":
        name = params["name"]
        text = name
        if name == "tool_1":
            time.sleep(60)
        elif name == "tool_5":
            text = str(os.getpid())
        elif name == "tool_2":
            text = json.dumps({"seen": seen, "offered": offered})
        elif name == "tool_3":
            content = {"type": "text", "text": "Why?"}
            message = {"role": "user", "content": content}
            text = ask("sampling/createMessage", messages=[message], maxTokens=7)
        elif name == "tool_4":
            schema = {"type": "object", "properties": {"seats": {"type": "integer"}}}
            text = ask("elicitation/create", message="Seats?", requestedSchema=schema)
        return {"content": [{"type": "text", "text": text}]}
    return None


def ask(method, **params):
    """Ask the client in mid-call, over stdio."""
    request = {"jsonrpc": "2.0", "id": "asked", "method": method, "params": params}
    print(json.dumps(request), flush=True)
    return next(sys.stdin)


def reply_to(message):
    seen.append(message["method"])
    if "id" not in message:
        return None
    result = answer(message["method"], message.get("params"))
    if result is None:
        error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def speak_stdio():
    for line in sys.stdin:
        reply = reply_to(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/forget":
            sessions.clear()
            self.give(200, {})
            return
        message = json.loads(body)
        headers = {}
        if message["method"] == "initialize":
            session = uuid.uuid4().hex
            sessions.add(session)
            headers["Mcp-Session-Id"] = session
        elif self.headers.get("Mcp-Session-Id") not in sessions:
            self.give(404, {"error": "no such session"})
            return
        if (message.get("params") or {}).get("name") == "tool_3":
            self.give(503, {})
            return
        reply = reply_to(message)
        self.give(200 if reply else 202, reply, headers)

    def do_GET(self):
        self.give(405, {})

    def do_DELETE(self):
        if self.path == "/slow":
            time.sleep(60)
        self.give(405, {})

    def give(self, status, value, headers=()):
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, header in dict(headers).items():
            self.send_header(name, header)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def main(arguments):
    if arguments[:1] == ["http"]:
        ThreadingHTTPServer(("127.0.0.1", int(arguments[1])), Handler).serve_forever()
    else:
        speak_stdio()


if __name__ == "__main__":
    main(sys.argv[1:])
