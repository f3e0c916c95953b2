"""A server on loopback that speaks OpenAI's and Anthropic's wire formats, and fails as they do."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pictures import count_parts

MESSAGES = {
    429: "rate limit reached",
    500: "the server had an error",
    529: "overloaded",
    400: "no such option",
    401: "wrong key sk-abcdefghijklmnopqrstuvwxyz0123456789",
}
FULL = "This model's maximum context length is 900 tokens, however you requested 1000 tokens"


class FailingServer(ThreadingHTTPServer):
    """Answers each request with the next item of its script.

    An item is a word for a failure (see `Handler.do_POST`), or the text of a reply. A request with
    pictures is refused with the status and the words of `refusal`, if that is set.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = []
        self.asked = []
        self.bodies = []
        self.refusal = None
        self.over = threading.Event()
        self.retry_after = "0"

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("connection", "close")
        super().end_headers()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body["messages"][-1]["content"])
        self.server.bodies.append(body)
        # A client of one event loop may be used in another one next.
        self.close_connection = True
        if self.server.refusal is not None and count_parts(body):
            self.refuse(*self.server.refusal)
            return
        item = self.server.script.pop(0)
        self.speaks_openai = self.path.endswith("completions")
        if item.isdigit():
            self.refuse(int(item))
        elif item == "full":
            self.refuse(400, FULL, "context_length_exceeded")
        elif item == "quota":
            self.refuse(429, "you exceeded your current quota", "insufficient_quota")
        elif item == "slow":
            self.server.over.wait(60)
        elif item == "hung up":
            pass
        elif body.get("stream"):
            self.stream(item)
        else:
            self.whole(item)

    def refuse(self, status, message=None, code=None):
        error = {"type": "an_error", "message": message or MESSAGES[status], "code": code}
        self.send(status, {"type": "error", "error": error}, status in (429, 529, 500))

    def send(self, status, data, asks_to_wait=False):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if asks_to_wait:
            self.send_header("retry-after", self.server.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def whole(self, item):
        text, end = self.parts(item)
        if item == "broken":
            # It promises more than it sends.
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"id"')
        elif item == "error inside":
            self.refuse(529)
        elif self.speaks_openai:
            self.send(200, openai_reply(text, end))
        else:
            self.send(200, anthropic_reply(text, end))

    def stream(self, item):
        text, end = self.parts(item)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        events = (openai_events if self.speaks_openai else anthropic_events)(text, end)
        if item == "error inside":
            error = {"type": "overloaded_error", "message": "overloaded"}
            events = [*events[:2], {"type": "error", "error": error}]
        elif item == "broken":
            events = events[:2]
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if self.speaks_openai and item not in ("broken", "error inside"):
            self.wfile.write(b"data: [DONE]\n\n")

    def parts(self, item):
        """The text of a reply, and the finish reason in the words of the client."""
        filtered = "content_filter" if self.speaks_openai else "refusal"
        ends = {"refused": ("", filtered), "filtered midway": ("I think", filtered)}
        ends |= {"empty": ("", None), "broken": ('{"thought": "I wi', None)}
        ends["error inside"] = ends["broken"]
        text, end = ends.get(item, (item, None))
        return text, end or ("stop" if self.speaks_openai else "end_turn")


def openai_reply(text, end):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": end}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    ids = {"id": "c", "created": 1, "model": "m", "object": "chat.completion"}
    return {**ids, "choices": [choice], "usage": usage}


def openai_events(text, end):
    ids = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}

    def chunk(delta, finish=None):
        return {**ids, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": text}),
        chunk({}, end),
        {**ids, "choices": [], "usage": usage},
    ]


def anthropic_reply(text, end):
    content = [{"type": "text", "text": text}] if text else []
    usage = {"input_tokens": 10, "output_tokens": 2}
    ids = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
    return {**ids, "content": content, "stop_reason": end, "stop_sequence": None, "usage": usage}


def anthropic_events(text, end):
    message = {**anthropic_reply("", None), "usage": {"input_tokens": 10, "output_tokens": 1}}
    begin = {"type": "message_start", "message": message}
    block = {"type": "text", "text": ""}
    delta = {"type": "content_block_delta", "index": 0}
    return [
        begin,
        {**delta, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_start", "index": 1, "content_block": block},
        {
            "type": "message_delta",
            "delta": {"stop_reason": end, "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]


@contextmanager
def failing_server():
    server = FailingServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
