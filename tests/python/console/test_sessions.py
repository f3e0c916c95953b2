"""Sessions of a console: they expire and end, and some people may only read."""

import time

import pytest

from callslip import TicketStore
from callslip.console import _access, console
from consoles import TOKEN, boxes, decide, leave_waiting, opened, pay_call, served, visitor

READER = "a-token-for-people-who-may-only-read"


@pytest.fixture
def store():
    return TicketStore()


def test_a_session_expires(store, monkeypatch):
    with opened(store) as client:
        assert client.get("/").status_code == 200
        later = time.time() + _access._SESSION + 1
        monkeypatch.setattr(_access.time, "time", lambda: later)
        assert client.get("/").status_code == 401


def test_whoever_signs_out_is_out_wherever_the_cookie_was_kept(store):
    with opened(store) as client:
        kept = dict(client.cookies)
        headers = {"Origin": str(client.base_url).rstrip("/"), "Content-Type": "application/json"}
        assert client.post("/logout", content=b"{}").status_code == 403
        assert client.post("/logout", content=b"{}", headers=headers).status_code == 200
        client.cookies.clear()
        client.cookies.update(kept)
        assert client.get("/").status_code == 401


@pytest.mark.parametrize("change", ["role", "time", "seal"])
def test_a_cookie_that_was_changed_is_none(store, change):
    app = console(store, token=TOKEN, reader_token=READER)
    with served(app) as address, visitor(address) as client:
        client.post("/login", data={"token": READER})
        ((name, value),) = client.cookies.items()
        role, until, key, seal = value.split(".")
        parts = {
            "role": ["decide", until, key, seal],
            "time": [role, str(int(until) + 9), key, seal],
            "seal": [role, until, key, seal[::-1]],
        }[change]
        client.cookies.clear()
        client.cookies.set(name, ".".join(parts))
        assert client.get("/").status_code == 401


def test_a_reader_reads_and_decides_nothing(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = console(store, token=TOKEN, reader_token=READER)
    with served(app) as address, visitor(address) as client:
        assert client.post("/login", data={"token": READER}).status_code == 303
        page = client.get(f"/runs/{run_id}").text
        (box,) = boxes(page)
        assert '<button type="button" data-do' not in page
        assert "sign in with the other token to decide" in page
        assert decide(client, box).status_code == 403
        assert len(store.tickets(awaiting_approval=True)) == 1


def test_behind_a_proxy_that_ends_tls_the_cookie_is_secure(store):
    headers = {"Host": "ops.example.com", "X-Forwarded-Proto": "https"}
    app = console(store, token=TOKEN, hosts=["ops.example.com"])
    with served(app) as address, visitor(address) as client:
        answer = client.post("/login", data={"token": TOKEN}, headers=headers)
        assert "; Secure" in answer.headers["set-cookie"]


def test_a_fault_is_a_page_with_all_headers(store, monkeypatch):
    app = console(store, token=TOKEN)
    monkeypatch.setattr(app._source, "listing", lambda: 1 / 0)
    with served(app) as address, visitor(address) as client:
        client.post("/login", data={"token": TOKEN})
        answer = client.get("/")
        assert answer.status_code == 500
        assert "frame-ancestors" in answer.headers["content-security-policy"]
        assert "log says why" in answer.text


def test_a_call_is_approved_with_other_arguments(store):
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        wrong = decide(client, box, arguments={"invoice": "x", "amount": "y"})
        assert wrong.status_code == 422
        assert [place for place, _ in wrong.json()["problems"]] == ["/invoice", "/amount"]
        assert decide(client, box, "deny", arguments={}).status_code == 400
        assert decide(client, box, arguments={"invoice": 8}).status_code == 200
    (ticket,) = store.run(run_id).tickets
    assert ticket.arguments == {"invoice": 8, "amount": 1, "note": ""}


def test_no_program_of_the_machine_reads_the_token_of_the_browser(tmp_path, monkeypatch):
    import stat
    from pathlib import Path
    from urllib.parse import urlsplit

    from callslip.console import _serve

    seen = []

    def open_it(address):
        path = Path(urlsplit(address).path)
        seen.append((address, stat.S_IMODE(path.stat().st_mode), path.read_text("utf-8"), path))

    monkeypatch.setattr(_serve.webbrowser, "open", open_it)
    with _serve._opened(f"http://127.0.0.1:1/login#token={TOKEN}"):
        ((address, mode, text, path),) = seen
        assert TOKEN not in address
        assert TOKEN in text
        assert mode == 0o600
    assert not path.exists()
