"""Who may read a console, and from where."""

import asyncio
import re
import socket
import subprocess
import sys
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from callslip import TicketStore, UsageError
from callslip.console import console, serve
from consoles import (
    TOKEN,
    boxes,
    decide,
    leave_waiting,
    opened,
    pay_call,
    served,
    signed_in,
    visitor,
)

ADDRESSES = [
    *("/", "/events", "/runs/x", "/runs/x/events", "/runs/x.html", "/runs/x.jsonl"),
    *("/runs/x/files/U1", "/other"),
]


@pytest.fixture(scope="module")
def waiting():
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        yield client, f"/runs/{run_id}"


@pytest.fixture
def stranger(waiting):
    client, _ = waiting
    with httpx.Client(base_url=client.base_url, timeout=60) as one:
        yield one


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_read_without_the_cookie(stranger, address):
    answer = stranger.get(address)
    assert answer.status_code == 401
    assert answer.json() == {"error": "Sign in with the token of this console."}


@pytest.mark.parametrize("cookie", ["", "x", "é" * 30])
def test_nothing_is_read_with_another_cookie(waiting, stranger, cookie):
    client, page = waiting
    (name,) = client.cookies
    headers = {"Cookie": f"{name}={cookie}".encode()}
    assert stranger.get(page, headers=headers).status_code == 401


def test_a_decision_without_the_cookie_is_refused(waiting, stranger):
    client, page = waiting
    (box,) = boxes(client.get(page).text)
    assert decide(stranger, box).status_code == 401
    assert len(boxes(client.get(page).text)) == 1


def test_the_token_leaves_the_address_and_the_cookie_no_page(stranger):
    answer = stranger.post("/login", data={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    form = r"^callslip_\w+=decide\.[\w.]+; HttpOnly; Max-Age=43200; Path=/; SameSite=strict$"
    assert re.search(form, cookie)
    assert TOKEN not in cookie


def test_the_token_may_be_typed(stranger):
    page = stranger.get("/", headers={"Accept": "text/html"}).text
    assert 'action="/login"' in page
    answer = stranger.post("/login", data={"token": f" {TOKEN}\n"})
    assert answer.status_code == 303
    assert stranger.get("/").status_code == 200


def test_the_token_of_an_address_signs_nobody_in(stranger):
    answer = stranger.get("/login", params={"token": TOKEN}, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert "behind #, login#token=" in answer.text
    assert "set-cookie" not in answer.headers


def test_wrong_tokens_are_few():
    with served(console(TicketStore(), token=TOKEN)) as address, visitor(address) as client:
        wrong = [client.post("/login", data={"token": f"{one}"}) for one in range(6)]
        assert [answer.status_code for answer in wrong] == [401] * 5 + [429]
        # Behind a proxy all people have one address.
        assert client.post("/login", data={"token": TOKEN}).status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "[::1"])
def test_another_name_is_refused(waiting, host):
    client, page = waiting
    for address in ("/login", page, f"{page}/events"):
        assert client.get(address, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["evil.example@127.0.0.1", "127.0.0.1/evil", "127.0.0.1:x", ":80"])
def test_what_is_no_name_is_refused(waiting, host):
    client, page = waiting
    assert client.get(page, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "[::1]:80", "127.0.0.1"])
def test_names_of_this_machine_are_taken(waiting, host):
    client, page = waiting
    assert client.get(page, headers={"Host": host}).status_code == 200


def test_hosts_are_those_that_are_passed():
    app = console(TicketStore(), token=TOKEN, hosts=["ops.example.com:443"])
    with served(app) as address, visitor(address) as client:
        login = {"url": "/login", "data": {"token": TOKEN}}
        assert client.post(**login).status_code == 421
        assert client.post(**login, headers={"Host": "Ops.Example.com:8443"}).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "text/plain"},
    ],
    ids=str,
)
def test_a_decision_from_elsewhere_is_refused(waiting, headers):
    client, page = waiting
    (box,) = boxes(client.get(page).text)
    assert decide(client, box, headers=headers).status_code == 403
    assert len(boxes(client.get(page).text)) == 1


def test_the_page_of_another_port_is_another_page(waiting):
    client, page = waiting
    (box,) = boxes(client.get(page).text)
    assert decide(client, box, headers={"Origin": "http://127.0.0.1:1"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("127.0.0.1:80", "http://127.0.0.1"),
        ("LOCALHOST:443", "https://localhost"),
        ("[::1]:80", "http://[::1]"),
    ],
)
def test_a_default_port_may_stand_in_a_header_or_not(host, origin):
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    with opened(store) as client:
        (box,) = boxes(client.get(f"/runs/{run_id}").text)
        assert decide(client, box, headers={"Host": host, "Origin": origin}).status_code == 200


@pytest.mark.parametrize("method", ["PROPFIND", "TRACE", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_with_the_same_headers(waiting, method):
    client, page = waiting
    answer = client.request(method, page)
    assert answer.status_code in {404, 405}
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_head_of_a_stream_is_no_stream(waiting):
    client, page = waiting
    for _ in range(70):
        assert client.head(f"{page}/events").status_code == 200
    assert client.get(page).status_code == 200


def test_an_image_of_another_site_takes_no_tries():
    with served(console(TicketStore(), token=TOKEN)) as address, visitor(address) as client:
        for dest in ["image", "iframe", "script", "empty", "image", "image"]:
            headers = {"Sec-Fetch-Dest": dest, "Sec-Fetch-Site": "cross-site"}
            answer = client.post("/login", data={"token": TOKEN}, headers=headers)
            assert answer.status_code == 403
        assert client.post("/login", data={"token": TOKEN}).status_code == 303


@pytest.mark.parametrize("address", ["/", "RUN", "RUN.html", "RUN.jsonl", "/nothing", "/runs/no"])
def test_every_answer_says_what_a_browser_may_do(waiting, address):
    client, page = waiting
    answer = client.get(address.replace("RUN", page))
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_the_cookie_is_for_https_where_the_page_is():
    async def behind_tls(scope, receive, send):
        await app({**scope, "scheme": "https"}, receive, send)

    app = console(TicketStore(), token=TOKEN)
    with served(behind_tls) as address:
        answer = httpx.post(f"{address}/login", data={"token": TOKEN})
    assert "; Secure" in answer.headers["set-cookie"]


def test_two_consoles_of_a_machine_do_not_sign_out_one_another():
    other = console(TicketStore())
    assert len(other.token) >= 32
    one = console(TicketStore(), token=TOKEN)
    with served(other) as second, served(one) as first, signed_in(first) as client:
        assert client.post(f"{second}/login", data={"token": other.token}).status_code == 303
        assert [client.get(f"{one}/").status_code for one in (first, second)] == [200, 200]


@pytest.mark.parametrize("path", ["/a b", "/b\u00fcro", "/a;b", "/\u65e5\u672c"])
def test_it_is_mounted_below_an_odd_path(path):
    app = Starlette(routes=[Mount(path, console(TicketStore(), token=TOKEN))])
    with served(app) as address, visitor(address) as client:
        answer = client.post(f"{path}/login", data={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, f"{quote(path)}/")
        assert f"; Path={quote(path)};" in answer.headers["set-cookie"]
        assert client.get(answer.headers["location"]).status_code == 200


def test_a_mounted_path_writes_nothing_else_into_the_cookie():
    app = Starlette(routes=[Mount("/t/{tenant}/c", console(TicketStore(), token=TOKEN))])
    with served(app) as address, visitor(address) as client:
        path = "/t/x%3B%20Domain=evil.example/c"
        cookie = client.post(f"{path}/login", data={"token": TOKEN}).headers["set-cookie"]
    assert "Domain" not in [part.strip().partition("=")[0] for part in cookie.split(";")]


def test_it_is_mounted_below_a_path():
    store = TicketStore()
    run_id = leave_waiting(store, pay_call(invoice=7))
    app = Starlette(routes=[Mount("/ops/callslip", console(store, token=TOKEN))])
    with served(app) as address, visitor(address) as client:
        answer = client.post("/ops/callslip/login", data={"token": TOKEN})
        assert answer.headers["location"] == "/ops/callslip/"
        assert "Path=/ops/callslip;" in answer.headers["set-cookie"]
        page = client.get("/ops/callslip/").text
        assert f'href="/ops/callslip/runs/{run_id}"' in page
        assert 'data-events="/ops/callslip/events?' in page
        (box,) = boxes(client.get(f"/ops/callslip/runs/{run_id}").text)
        assert box["address"] == f"/ops/callslip/runs/{run_id}/decide"
        assert decide(client, box).status_code == 200


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"token": "short"}, "32 characters or more: got 5"),
        ({"token": 7}, "without spaces"),
        ({"token": " " * 40}, "without spaces"),
        ({"token": "é" * 40}, "ASCII"),
        ({"hosts": "ops.example.com"}, 'pass them as browsers send them: \\["ops.example.com"\\]'),
        ({"hosts": []}, "names of hosts"),
        ({"hosts": ["*"]}, "names of hosts"),
        ({"hosts": ["https://ops.example.com/"]}, "names of hosts"),
        ({"hosts": [":80"]}, "names of hosts"),
        ({"hosts": ["["]}, "names of hosts"),
        ({"hosts": ["a,b"]}, "names of hosts"),
        ({"hosts": ["b\u00fccher.example"]}, "names of hosts"),
        ({"by": "ann"}, "a function of the request: got 'ann'"),
        ({"by": asyncio.sleep}, "not async"),
    ],
)
def test_options_are_checked(options, says):
    with pytest.raises(UsageError, match=says):
        console(TicketStore(), **options)


def test_what_is_no_store_is_refused():
    with pytest.raises(UsageError, match="got int; pass a TicketStore"):
        console(7)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "127.0.0.1"),
        ({"host": "127.0.0.2"}, "127.0.0.2"),
        ({"hosts": ["ops.example.com"]}, "127.0.0.1"),
        ({"host": "0.0.0.0", "token": TOKEN, "hosts": ["localhost"]}, "localhost"),
    ],
    ids=str,
)
def test_the_address_that_is_printed_leads_to_the_console(options, name):
    code = "import sys, ast; from callslip import TicketStore; from callslip.console import serve; "
    code += "serve(TicketStore(), **ast.literal_eval(sys.argv[1]))"
    command = [sys.executable, "-c", code, repr(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            address = process.stdout.readline().decode().split()[-1]
            assert address.startswith(f"http://{name}:")
            page, _, token = address.partition("#token=")
            assert httpx.post(page, data={"token": token}).status_code == 303
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"port": "80"}, "port to be a number below 65536: got '80'"),
        ({"port": 65_536}, "got 65536"),
        ({"port": True}, "got True"),
        ({"host": None}, "host to be an address: got None"),
        ({"host": "no.invalid", "token": TOKEN, "hosts": ["a"]}, "of no.invalid: .* another host"),
    ],
    ids=str,
)
def test_where_it_is_served_is_checked(options, says):
    with pytest.raises(UsageError, match=says):
        serve(TicketStore(), **options)


@pytest.mark.parametrize("options", [{}, {"token": TOKEN}, {"hosts": ["ops.example.com"]}])
def test_other_machines_reach_it_only_with_a_token_and_names(options):
    with pytest.raises(UsageError, match="which other machines may reach: pass both"):
        serve(TicketStore(), host="0.0.0.0", **options)


def test_a_port_that_is_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1.*pass another"):
            serve(TicketStore(), port=port)


def test_a_running_loop_is_told_of():
    async def main():
        serve(TicketStore())

    with pytest.raises(UsageError, match=r"mount console\(store\)"):
        asyncio.run(main())
