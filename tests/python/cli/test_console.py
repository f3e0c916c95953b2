"""`callslip console`: a server for one file, until Ctrl-C."""

import re
import signal
import subprocess
import sys

import httpx
import pytest

from callslip import TicketStore
from consoles import boxes, decide, leave_waiting, pay_call


@pytest.fixture
def waiting(path):
    with TicketStore(path) as store:
        return leave_waiting(store, pay_call(invoice=7))


def test_it_serves_a_file_until_it_is_interrupted(path, waiting):
    command = [sys.executable, "-m", "callslip", "console", path, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            said = process.stdout.readline().decode()
            address, token = re.search(
                r"(http://127\.0\.0\.1:\d+)/login#token=(\S+)", said
            ).groups()
            with httpx.Client(base_url=address, headers={"Accept": "text/html"}) as client:
                assert client.get("/").status_code == 401
                assert client.post("/login", data={"token": token}).status_code == 303
                (box,) = boxes(client.get(f"/runs/{waiting}").text)
                assert decide(client, box).status_code == 200
                # An open page does not keep the server from its end.
                with client.stream("GET", "/events") as events:
                    next(events.iter_lines())
                    process.send_signal(signal.SIGINT)
                    _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, b"")


def test_a_file_that_is_none_is_refused(tmp_path, call):
    assert "cannot be read" in call("console", tmp_path / "none", "--no-open", status=2).err


def test_a_port_in_use_is_refused(path, waiting, call):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = call("console", path, "--no-open", "--port", port, status=2).err
    assert f"cannot listen on port {port}" in error


def test_without_the_extra_the_command_says_what_to_install(path, call, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("callslip.console")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    error = call("console", path, "--no-open", status=2).err
    assert 'uvicorn is not installed: use pip install "callslip[console]"' in error
