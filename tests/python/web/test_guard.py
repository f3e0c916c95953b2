"""A guard before an application: no other site reaches it through a browser."""

import asyncio

import pytest

from callslip import UsageError
from callslip.web import Guard
from callslip.web._requests import place_of

TOKEN = "a-token-that-is-long-enough-for-this"


def asked(guard, method="GET", path="/", *, kind="http", scheme="http", query="", **headers):
    """The status and the headers of an answer."""
    given = {"host": "127.0.0.1:80"} | {
        name.replace("_", "-"): text for name, text in headers.items()
    }
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "scheme": scheme,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), text.encode("latin-1")) for name, text in given.items() if text
        ],
    }
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(guard(scope, None, send))
    answer = {name.decode(): text.decode() for name, text in sent[0].get("headers", ())}
    return sent[0].get("status", sent[0].get("code")), answer


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


HOSTS = ["evil.example", "127.0.0.1.evil.example", "", "[", "127.0.0.1@evil.example", "x y"]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", "/hook"])
def test_no_other_name_leads_here(host, path):
    guard = Guard(app, public=["/hook"])
    assert asked(guard, path=path, host=host)[0] == 421
    assert asked(guard, kind="websocket", scheme="ws", path=path, host=host)[0] == 1008


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "http://127.0.0.1", "sec_fetch_site": "same-origin"}, 200),
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1", "sec_fetch_site": "cross-site"}, 403),
    ],
)
def test_only_own_pages_and_programs_change_something(headers, status):
    guard = Guard(app, public=["/hook"])
    assert asked(guard, "POST", **headers)[0] == status
    assert asked(guard, "GET", **headers)[0] == 200
    assert asked(guard, "POST", "/hook", **headers)[0] == 200
    assert asked(guard, "POST", "/hook/more", **headers)[0] == status


def test_behind_a_proxy_that_ends_tls():
    guard = Guard(app, hosts=["ops.example.com"], token=TOKEN)
    own = {"host": "ops.example.com", "x_forwarded_proto": "https"}
    status, answer = asked(guard, query=f"token={TOKEN}&a=1", **own)
    assert (status, answer["location"]) == (303, "/?a=1")
    assert answer["set-cookie"].endswith("; HttpOnly; Path=/; SameSite=Strict; Secure")
    assert TOKEN not in answer["set-cookie"]
    cookie = answer["set-cookie"].partition(";")[0]
    page = {"origin": "https://ops.example.com", "cookie": cookie}
    assert asked(guard, "POST", **own, **page)[0] == 200
    assert asked(guard, "POST", **own, cookie=cookie, origin="https://evil.example")[0] == 403


def test_the_token_is_needed():
    guard = Guard(app, token=TOKEN)
    assert asked(guard)[0] == 401
    assert asked(guard, query="token=other")[0] == 401
    assert asked(guard, "POST", query=f"token={TOKEN}")[0] == 401
    assert asked(guard, authorization=f"Bearer {TOKEN}")[0] == 200
    # A program has no origin, and a page of another site does not have the token.
    assert asked(guard, "POST", authorization=f"Bearer {TOKEN}", origin="http://x")[0] == 200
    assert asked(guard, cookie="callslip_web=x; a")[0] == 401
    assert (
        asked(guard, path="//evil.example", query=f"token={TOKEN}")[1]["location"]
        == "/evil.example"
    )


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"token": "short"}, "use secrets"),
        ({"token": 7}, "use secrets"),
        ({"token": " " * 40}, "use secrets"),
        ({"hosts": "x"}, "pass them as"),
        ({"hosts": [1]}, "pass them as"),
        ({"hosts": None}, "pass them as"),
        ({"hosts": []}, "pass them as"),
        ({"public": "/hook"}, r"pass \['/hook'\]"),
        ({"public": ["hook"]}, "pass '/hook'"),
        ({"public": None}, "pass texts"),
        ({"app": "chat:app"}, "pass its object"),
    ],
)
def test_wrong_options(options, hint):
    with pytest.raises(UsageError, match=f"^expected .*{hint}"):
        Guard(**({"app": app} | options))


NAMES = [
    *("localhost", "LocalHost:8000", "127.0.0.1", "::1", "[::1]", "[::1]:8000", "a-b.example"),
    *("", " ", "*", "*.example.com", "http://localhost", "localhost/", "a b", ":80", "a,b"),
    *("ann@localhost", "bücher.example", "[", "localhost:x"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_taken_leads_here(name):
    sent = f"[{name}]" if name == "::1" else name
    try:
        guard = Guard(app, hosts=[name])
    except UsageError:
        # No request can be for it.
        assert place_of(sent, "http") is None
    else:
        assert asked(guard, host=sent)[0] == 200
