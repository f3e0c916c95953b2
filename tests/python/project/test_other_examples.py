"""The chat at a terminal, the worker and the approvals of the examples, as a user runs them."""

import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlencode

import httpx
import pytest

from callslip import TicketStore
from callslip.sandbox._native import has_sandbox
from example_server import EXAMPLES, Server


def until(condition):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


# The terminal.


def talk(path, text, *options):
    return subprocess.run(
        [sys.executable, EXAMPLES / "terminal_chat.py", "--store", path, *options],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_a_conversation_at_the_terminal_goes_on_later(tmp_path):
    path = tmp_path / "chat.sqlite"
    first = talk(path, "hello\nhow are you\n\n")
    assert "You said: hello" in first
    assert "You said: how are you" in first
    run_id = re.search(r"--run (\w+)", first)[1]
    second = talk(path, "Write a mail\nnot today\nWrite a mail again\ny\n", "--run", run_id)
    assert 'send_mail {"to": "anna@example.org", "text": "Write a mail"}' in second
    assert "Then I leave it." in second
    assert "The mail is on its way." in second
    with TicketStore(path) as store:
        assert [ticket.outcome for ticket in store.run(run_id).tickets] == ["denied", "ok"]
        assert store.run(run_id).tickets[0].error.endswith("not today")


# Files for scripts.


def test_a_csv_file_is_cleaned_by_a_script(tmp_path):
    if not has_sandbox() and not os.environ.get("CI"):
        pytest.skip("this machine can't keep scripts apart")
    program = EXAMPLES / "files" / "clean_csv.py"
    said = subprocess.run(
        [sys.executable, program, "--into", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert said.startswith("7 rows became 5. Not read: line 6: E-Mail 'alan(at)example.org'; ")
    assert (tmp_path / "clean.csv").read_text().splitlines()[:2] == [
        "name,e_mail,joined,fee",
        "Ada Lovelace,ada@example.org,2021-03-12,24.50",
    ]


# The worker.


class Worker:
    def __init__(self, folder):
        self.tasks, self.answers = folder / "tasks", folder / "answers"
        self._command = [sys.executable, EXAMPLES / "worker.py", self.tasks, self.answers]
        self._command += ["--store", folder / "worker.sqlite"]

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "working\n"

    def stop(self, number):
        self.process.send_signal(number)
        code = self.process.wait(30)
        self.process.stdout.close()
        return code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_worker_loses_no_task_and_does_none_twice(tmp_path, number):
    worker = Worker(tmp_path)
    worker.tasks.mkdir()
    for n in range(20):
        (worker.tasks / f"{n}.txt").write_text(f"Task {n}, which has so many words that it takes.")
    worker.start()
    try:
        until(lambda: worker.answers.exists() and len(list(worker.answers.glob("*.txt"))) > 2)
    finally:
        code = worker.stop(number)
    assert code == (0 if number == signal.SIGTERM else -number)
    assert len(list(worker.answers.glob("*.txt"))) < 20
    worker.start()
    try:
        until(lambda: len(list(worker.answers.glob("*.txt"))) == 20)
    finally:
        worker.stop(signal.SIGTERM)
    for n in range(20):
        assert f"Task {n}, which" in (worker.answers / f"{n}.txt").read_text()
    with TicketStore(tmp_path / "worker.sqlite") as store:
        assert len(store.runs()) == 20
        assert {run.stop_reason for run in store.runs()} == {"finished"}


# Approvals.


SECRET = "shh"


@pytest.fixture
def slack():
    """A server in place of Slack: what it is told."""
    told = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", told
    server.shutdown()
    server.server_close()


def press(server, value, action, *, secret=SECRET, person="ann", at=None):
    """Press a button, as Slack tells of it."""
    pressed = {"actions": [{"action_id": action, "value": value}], "user": {"username": person}}
    body = urlencode({"payload": json.dumps(pressed)})
    at = str(int(time.time())) if at is None else at
    signed = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    headers = {
        "x-slack-request-timestamp": at,
        "x-slack-signature": f"v0={signed}",
        "content-type": "application/x-www-form-urlencoded",
    }
    return httpx.post(f"{server.url}/slack/actions", content=body, headers=headers, timeout=60)


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_a_call_is_approved_in_a_chat_tool_also_after_a_restart(tmp_path, slack, action):
    hook, told = slack
    server = Server(
        "slack_approvals.py",
        STORE=str(tmp_path / "approvals.sqlite"),
        SLACK_WEBHOOK=hook,
        SLACK_SECRET=SECRET,
    )
    server.start()
    try:
        run = httpx.post(f"{server.url}/runs", content="Pay.", timeout=60).json()["run"]
        until(lambda: told)
        shown = told[0]["blocks"][0]["text"]["text"].splitlines()
        assert (shown[2].split(), shown[-1]) == (["amount", "|", "900"], "pay → 900")
        server.kill()
        server.start()
        value = told[0]["blocks"][1]["elements"][0]["value"]
        assert press(server, value, action, secret="guessed").status_code == 401
        assert press(server, value, action, at="1").status_code == 401
        assert press(server, value, action).json() == {"text": f"ann: {action}"}
        late = press(server, value, action, person="bob").json()["text"]
        assert "T1" in late
        path = f"{server.url}/runs/{run}"
        end = until(
            lambda: (one := httpx.get(path, timeout=60).json())["status"] == "finished" and one
        )
        assert end["value"] == ("Paid." if action == "approve" else "Not paid.")
    finally:
        server.kill()


# The fleet.


def test_a_task_is_given_to_the_workers_of_a_fleet(database):
    folder = EXAMPLES / "fleet"
    environment = {**os.environ, "DATABASE_URL": database}
    words = [sys.executable, "-m", "callslip", "work", "app:fleet", "--slots", "4"]
    worker = subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    try:
        asked = subprocess.run(
            [sys.executable, "app.py", "Refund order 7"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        worker.terminate()
        worker.wait(30)
    assert asked.stdout == "Order 7 is refunded.\n"
