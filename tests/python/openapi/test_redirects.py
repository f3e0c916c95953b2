"""Redirects within a host, the servers that may receive secrets, and headers beside a result."""

import contextlib
import json
import logging
from types import SimpleNamespace

import httpx
import httpx2
import pytest

from callslip import OpenAPI, UsageError
from callslip._threads import pool
from documents import call, document, one, value_of
from echo import Answer, echo, serving

SCHEME = {"type": "apiKey", "in": "header", "name": "X-K"}
KEY = {"components": {"securitySchemes": {"key": SCHEME}}}
SECURED = {"security": [{"key": []}]}


@pytest.fixture
def server():
    with serving() as server:
        yield server


def moved(to, status=307, at="/x"):
    """Answers that redirect one path, and tell what came at all others."""
    told = Answer(status=status, headers={"Location": to})
    return lambda got: told if got.path == at else echo(got)


def secured(paths, url, **options):
    made = {
        path: {method: {**SECURED, **one} for method, one in item.items()}
        for path, item in paths.items()
    }
    given = document(made, servers=[url], **KEY)
    return OpenAPI.from_dict(given, auth={"key": "s3cret"}, **options)


@contextlib.contextmanager
def opened(kind, **options):
    """A client, which is closed on the loop of all calls."""
    client = None if kind is None else kind(**options)
    yield client
    if hasattr(client, "aclose"):
        pool.on_loop(client.aclose()).result(60)
    elif client is not None:
        client.close()


# --- redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("kind", [None, httpx.Client, httpx2.Client, httpx.AsyncClient])
def test_a_redirect_within_the_host_is_followed_with_the_secret(server, status, absolute, kind):
    server.answer = moved(f"{server.url if absolute else ''}/y?page=2", status)
    with opened(kind) as client, secured({"/x": {"get": {}}}, server.url, client=client) as api:
        found = value_of(api, "GET /x", {})
    assert (found["method"], found["target"]) == ("GET", "/y?page=2")
    assert server.last.header("x-k") == ["s3cret"]
    assert len(server.received) == 2


@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("kind", [httpx.Client, httpx2.Client, httpx.AsyncClient])
def test_no_client_follows_to_another_host(server, kind, follows):
    with serving() as other, opened(kind, follow_redirects=follows) as client:
        server.answer = moved(f"{other.url}/y")
        own = {"X-Own": "own-secret"}
        api = secured({"/x": {"get": {}}}, server.url, client=client, headers=own)
        outcome, text = call(api, "GET /x", {})
        assert (outcome, other.received) == ("error", [])
    assert f"location: {other.url}/y" in text


@pytest.mark.parametrize(
    "location",
    [
        "//other.test/y",
        "https://127.0.0.1/y",
        "http://user:pass@HOST/y",
        "http://HOST:1/y",
        "\\\\other.test/y",
        "ftp://HOST/y",
    ],
)
def test_other_targets_are_told_and_not_followed(server, location):
    host = server.url.removeprefix("http://").partition(":")[0]
    server.answer = moved(location.replace("HOST", host))
    outcome, text = call(secured({"/x": {"get": {}}}, server.url), "GET /x", {})
    assert (outcome, len(server.received)) == ("error", 1)
    assert "HTTP 307" in text


@pytest.mark.parametrize(("status", "sent"), [(301, 1), (302, 1), (303, 2), (307, 1), (308, 1)])
def test_what_changes_something_is_never_sent_twice(server, status, sent):
    server.answer = moved("/y", status)
    body = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}
    outcome, _ = call(secured({"/x": {"post": body}}, server.url), "POST /x", {"body": {"a": 1}})
    assert (outcome, len(server.received)) == ("ok" if sent == 2 else "error", sent)
    if sent == 2:
        # The result of the call is to be read there.
        assert (server.last.method, server.last.body) == ("GET", b"")
        assert server.last.header("content-type") == []
    assert [got.method for got in server.received].count("POST") == 1


def test_a_circle_of_redirects_ends(server):
    server.answer = moved("/x")
    outcome, text = call(secured({"/x": {"get": {}}}, server.url), "GET /x", {})
    assert (outcome, len(server.received)) == ("error", 6)
    assert "HTTP 307" in text


@pytest.mark.parametrize("to", ["/admin/keys", "/ADMIN//k%2565ys", "/base/./admin/keys?x=1"])
@pytest.mark.parametrize("options", [{"include": ["GET /x"]}, {"needs_approval": ["/admin/*"]}])
def test_a_redirect_reaches_nothing_that_is_not_offered(server, to, options):
    server.answer = moved(to)
    api = secured({"/x": {"get": {}}, "/admin/{what}": {"get": {}}}, server.url, **options)
    assert call(api, "GET /x", {})[0] == "error"
    assert len(server.received) == 1
    # Without that, it is a path like any other.
    server.received.clear()
    api = secured({"/x": {"get": {}}, "/admin/{what}": {"get": {}}}, server.url)
    assert call(api, "GET /x", {})[0] == "ok"


def test_an_app_is_followed_in_its_process():
    from fastapi import FastAPI
    from fastapi.responses import RedirectResponse

    app = FastAPI()

    @app.get("/x")
    def x():
        return RedirectResponse("/y")

    @app.get("/y")
    def y() -> int:
        return 5

    with OpenAPI.from_app(app) as api:
        assert value_of(api, "GET /x", {}) == 5


# --- servers that may receive secrets


class Echo:
    """A client that keeps what it is to send, and answers with nothing."""

    def __init__(self, **attributes):
        self.seen = []
        vars(self).update(attributes)

    def request(self, method, url, *, headers, content):
        self.seen.append({name.decode().lower(): value.decode() for name, value in headers})
        return SimpleNamespace(status_code=204, headers={}, content=b"")


def sends_secret(base, trusted=(), first="https://a.example"):
    client = Echo()
    paths = {"/x": {"get": SECURED}, "/up": {"get": {**SECURED, "servers": [{"url": base}]}}}
    given = document(paths, servers=[first], **KEY)
    api = OpenAPI.from_dict(given, auth={"key": "s3cret"}, client=client, trusted_hosts=trusted)
    call(api, "GET /x", {})
    call(api, "GET /up", {})
    first_sent, second = client.seen
    assert "x-k" in first_sent
    return "x-k" in second


@pytest.mark.parametrize(
    ("base", "trusted", "sends"),
    [
        ("https://a.example/v2", [], True),
        ("https://A.example:443", [], True),
        # The secret would be readable on its way.
        ("http://a.example", [], False),
        ("http://a.example", ["a.example"], False),
        ("http://a.example", ["http://a.example"], True),
        ("https://a.example:8443", [], False),
        ("https://a.example:8443", ["a.example"], True),
        ("https://a.example:8443", ["a.example:8443"], True),
        ("https://a.example:8443", ["a.example:8444"], False),
        ("https://b.example", [], False),
        ("https://b.example", ["B.EXAMPLE"], True),
        ("https://b.example", ["https://b.example/"], True),
        ("https://b.example", ["http://b.example"], True),
        ("https://x.b.example", ["b.example"], False),
        ("https://b.example.evil.test", ["b.example"], False),
        ("https://[::1]:8443", ["[::1]"], True),
        ("http://localhost:8001", ["localhost:8001"], True),
        ("http://localhost:8001", [], False),
    ],
)
def test_secrets_go_to_the_servers_that_are_allowed(base, trusted, sends):
    assert sends_secret(base, trusted) is sends


def test_a_document_of_plain_http_may_name_the_safer_scheme():
    assert sends_secret("https://a.example", first="http://a.example") is True
    assert sends_secret("https://a.example:8443", first="http://a.example") is False


@pytest.mark.parametrize(
    "wrong",
    ["", "*.example.com", "a.example/v1", "user@a.example", "ftp://a.example", "a b", "a:x"],
)
def test_what_is_no_host_is_refused(wrong):
    with pytest.raises(UsageError, match="expected trusted_hosts as hosts such as"):
        sends_secret("https://b.example", [wrong])


@pytest.mark.parametrize(
    "own",
    [
        {"headers": {"Authorization": "Bearer own-secret"}},
        {"auth": object()},
        {"params": {"api_key": "own-secret"}},
    ],
)
def test_a_client_with_secrets_sends_nothing_to_other_servers(caplog, own):
    paths = {"/x": {"get": {}}, "/up": {"get": {"servers": [{"url": "https://b.example"}]}}}
    given = document(paths, servers=["https://a.example"])
    client = Echo(**own)
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(given, client=client)
    assert "no secret is sent to operations with a server of their own: 'GET /up'" in caplog.text
    assert call(api, "GET /x", {})[0] == "ok"
    outcome, text = call(api, "GET /up", {})
    assert (outcome, len(client.seen)) == ("error", 1)
    assert "b.example may not receive" in text
    assert "own-secret" not in text
    allowed = OpenAPI.from_dict(given, client=client, trusted_hosts=["b.example"])
    assert call(allowed, "GET /up", {})[0] == "ok"


def test_the_cookies_of_a_server_are_no_secrets_of_the_client(server):
    server.answer = lambda _: Answer(b"{}", headers={"Set-Cookie": "sid=1; Path=/"})
    with serving() as other, httpx.Client() as client:
        paths = {"/x": {"get": {}}, "/up": {"get": {"servers": [{"url": other.url}]}}}
        api = OpenAPI.from_dict(document(paths, servers=[server.url]), client=client)
        assert call(api, "GET /x", {})[0] == "ok"
        assert call(api, "GET /up", {})[0] == "ok"
    with serving() as other, httpx.Client(cookies={"sid": "own-secret"}) as client:
        paths = {"/x": {"get": {}}, "/up": {"get": {"servers": [{"url": other.url}]}}}
        api = OpenAPI.from_dict(document(paths, servers=[server.url]), client=client)
        assert call(api, "GET /up", {})[0] == "error"
        assert other.received == []


# --- headers beside a result


@pytest.mark.parametrize(
    ("status", "body", "headers", "value"),
    [
        (200, b"[1]", {"Link": '</x?page=2>; rel="next"'}, {"link": '</x?page=2>; rel="next"'}),
        (200, b"[1]", {"X-Total-Count": "120"}, {"x-total-count": "120"}),
        (206, b"[1]", {"Content-Range": "items 0-0/7"}, {"content-range": "items 0-0/7"}),
        (201, b"[1]", {"Location": "/x/7"}, {"location": "/x/7"}),
        (
            202,
            b"[1]",
            {"Location": "/jobs/7", "Retry-After": "3"},
            {"location": "/jobs/7", "retry-after": "3"},
        ),
        (200, b"[1]", {"Location": "/x/7", "Retry-After": "3", "ETag": '"v1"'}, None),
        (200, b"[1]", {"X-Request-Id": "r", "Server": "s", "Link": " "}, None),
    ],
)
def test_headers_that_matter_are_told_beside_the_body(server, status, body, headers, value):
    server.answer = lambda _: Answer(body, status=status, headers=headers)
    found = value_of(one({}, method="get", servers=[server.url]), "GET /x", {})
    assert found == ([1] if value is None else {"body": [1], **value})


def test_without_a_body_they_are_told_beside_the_status(server):
    headers = {"Location": "/x/7", "X-Total-Count": "0"}
    server.answer = lambda _: Answer(b"", status=204, headers=headers, content_type=None)
    found = value_of(one({}, method="get", servers=[server.url]), "GET /x", {})
    assert found == {"status": 204, "x-total-count": "0", "location": "/x/7"}


def test_an_etag_is_told_where_an_operation_can_use_it(server):
    server.answer = lambda _: Answer(b"[1]", headers={"ETag": '"v1"'})
    condition = {"name": "If-Match", "in": "header", "schema": {"type": "string"}}
    paths = {"/x": {"get": {}, "put": {"parameters": [condition]}}}
    api = OpenAPI.from_dict(document(paths, servers=[server.url]))
    assert value_of(api, "GET /x", {}) == {"body": [1], "etag": '"v1"'}


def test_a_secret_in_a_header_is_redacted(server):
    server.answer = lambda _: Answer(b"[1]", headers={"Link": '</x?key=***>; rel="next"'})
    found = value_of(secured({"/x": {"get": {}}}, server.url), "GET /x", {})
    assert found == {"body": [1], "link": '</x?key=***>; rel="next"'}


# --- OpenAPI 3.2


def document_32(paths, url="https://a.example", **further):
    return document(paths, version="3.2.0", servers=[url], **further)


def test_query_is_a_method(server):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    described = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    api = OpenAPI.from_dict(document_32({"/x": {"query": described}}, server.url), read_only=True)
    found = value_of(api, "QUERY /x", {"city": "Oslo"})
    assert (found["method"], found["body"]) == ("QUERY", '{"city":"Oslo"}')
    tool = api.tools["QUERY /x"]
    assert (tool.readonly, tool.effect) == (True, "pure")


def test_what_is_not_offered_of_3_2_is_said(caplog):
    whole = {"name": "q", "in": "querystring", "content": {"application/json": {"schema": {}}}}
    paths = {
        "/x": {"get": {"parameters": [whole]}, "additionalOperations": {"COPY": {}, "LOCK": {}}}
    }
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(document_32(paths))
    assert list(api.tools) == ["GET /x"]
    assert "methods of 'additionalOperations' are not offered: COPY /x, LOCK /x" in caplog.text
    assert "query strings that are no forms are not offered, and 'GET /x'" in caplog.text
    assert api.request("GET /x", {}).url == "https://a.example/x"


def test_a_query_string_that_is_a_form_is_its_fields():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    content = {"application/x-www-form-urlencoded": {"schema": schema}}
    whole = {"name": "q", "in": "querystring", "content": content}
    api = OpenAPI.from_dict(document_32({"/x": {"get": {"parameters": [whole]}}}))
    request = api.request("GET /x", {"q": {"a": 1, "b": "x y"}})
    assert request.url == "https://a.example/x?a=1&b=x%20y"


def test_the_other_parts_of_3_2_are_read(caplog, server):
    server.answer = lambda _: Answer(b'{"a":1}\n{"a":2}\n', content_type="application/jsonl")
    tags = [{"name": "b", "parent": "a", "kind": "nav", "summary": "B"}, {"name": "a"}]
    items = {"application/jsonl": {"itemSchema": {"type": "object"}}}
    stream = {"description": "", "content": items}
    body = {"content": {"application/json": {"$ref": "#/components/mediaTypes/City"}}}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    paths = {
        "/x": {
            "get": {"tags": ["b"], "responses": {"200": stream}},
            "post": {"requestBody": body, "responses": {"200": stream}},
        }
    }
    given = document_32(
        paths, server.url, tags=tags, components={"mediaTypes": {"City": {"schema": schema}}}
    )
    given["$self"] = "https://a.example/openapi.json"
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(given, validate_responses=True)
    assert caplog.text == ""
    assert value_of(api, "GET /x", {}) == '{"a":1}\n{"a":2}\n'
    assert json.loads(api.request("POST /x", {"city": "Oslo"}).content) == {"city": "Oslo"}
