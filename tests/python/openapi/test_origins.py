"""Secrets go to the hosts that the program has named, whatever a fetched document names."""

import json
import random
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from callslip import OpenAPI, ToolError, UsageError
from callslip.openapi._server import is_link_local
from documents import call, document, value_of
from echo import Answer, serving
from random_cases import seeds

SCHEME = {"type": "apiKey", "in": "header", "name": "X-K"}
KEY = {"components": {"securitySchemes": {"key": SCHEME}}}
SECURED = {"security": [{"key": []}]}
AUTH = {"key": "s3cret"}

NAMED = "https://a.example/docs/openapi.json"
ADDRESSES = [
    "",
    "/v1",
    "../v2",
    "//b.example",
    "https://a.example",
    "https://A.example:443/v1",
    "https://a.example:8443",
    "http://a.example",
    "https://a.example.b.example",
    "https://b.example",
    "http://b.example",
    "http://169.254.169.254",
    "http://2852039166",
    "http://[::ffff:169.254.169.254]/latest",
]
FOUND_AT = [NAMED, NAMED, "https://a.example/v9/", "https://b.example/x", "http://169.254.1.1/x"]
TRUSTED = {
    "b.example": lambda url: (url.scheme, url.hostname) == ("https", "b.example"),
    "http://b.example": lambda url: url.hostname == "b.example" and port(url) in (80, 443),
}


class Recorder:
    """A client that keeps where it sends to, and whether with the secret."""

    def __init__(self):
        self.sent = []

    def request(self, method, url, *, headers, content):
        secret = any(b"s3cret" in value for _, value in headers)
        self.sent.append((urlsplit(url), secret))
        return SimpleNamespace(status_code=204, headers={}, content=b"")


def port(url):
    return url.port or {"http": 80, "https": 443}[url.scheme]


def some_servers(draw):
    return [{"url": draw.choice(ADDRESSES)} for _ in range(draw.randrange(3))]


def some_document(draw):
    """A document with servers for itself, for paths and for operations."""
    paths = {}
    for number in range(draw.randrange(1, 4)):
        operation = dict(draw.choice([SECURED, {}]))
        item = {"get": operation}
        for owner in (operation, item):
            if servers := some_servers(draw):
                owner["servers"] = servers
        paths[f"/p{number}"] = item
    return document(paths, servers=some_servers(draw), **KEY)


def test_a_fetched_document_sends_secrets_only_where_the_program_says(monkeypatch):
    sent_with, refused = 0, 0
    for seed in seeds(400):
        draw = random.Random(seed)
        content = json.dumps(some_document(draw)).encode()
        found_at = draw.choice(FOUND_AT)
        monkeypatch.setattr("callslip.openapi.fetch", lambda _, c=content, f=found_at: (c, f))
        trusted = draw.sample([*TRUSTED], draw.randrange(3))
        client = Recorder()
        try:
            api = OpenAPI.from_url(NAMED, client=client, auth=AUTH, trusted_hosts=trusted)
        except UsageError:
            refused += 1
            continue
        for name in api.tools:
            call(api, name, {})
        for url, has_secret in client.sent:
            assert not is_link_local(url.hostname), (seed, url)
            is_own = (url.scheme, url.hostname, port(url)) == ("https", "a.example", 443)
            allowed = is_own or any(TRUSTED[host](url) for host in trusted)
            assert allowed or not has_secret, (seed, url)
            sent_with += has_secret
    assert sent_with > 50
    assert refused > 20


def test_a_document_that_leads_elsewhere_is_refused_with_the_way_out():
    with serving() as fetched, serving() as other:
        given = document({"/x": {"get": SECURED}}, servers=[other.url], **KEY)
        fetched.answer = lambda _: Answer(json.dumps(given).encode())
        where = f"{fetched.url}/openapi.json"
        with pytest.raises(UsageError) as raised:
            OpenAPI.from_url(where, auth=AUTH)
        assert str(raised.value) == (
            f"expected the servers of the document at {fetched.url} to be there, because secrets "
            f"are for that host: got {other.url}: pass trusted_hosts=['{other.url}'] if they may "
            "have the secrets, or server='…'"
        )
        # Without secrets, it is sent to as it says.
        assert value_of(OpenAPI.from_url(where), "GET /x", {})["method"] == "GET"
        for option in ({"trusted_hosts": [other.url]}, {"server": other.url}):
            with OpenAPI.from_url(where, auth=AUTH, **option) as api:
                value_of(api, "GET /x", {})
            assert other.last.header("x-k") == ["s3cret"]


def test_a_document_behind_a_redirect_to_another_host_gets_no_secret():
    with serving() as named, serving() as other:
        given = document({"/x": {"get": SECURED}}, servers=["/"], **KEY)
        named.answer = lambda _: Answer(status=302, headers={"Location": f"{other.url}/doc"})
        other.answer = lambda _: Answer(json.dumps(given).encode())
        with pytest.raises(UsageError, match=r"pass trusted_hosts=\['http://127"):
            OpenAPI.from_url(f"{named.url}/openapi.json", auth=AUTH)


@pytest.mark.parametrize("to", ["http://169.254.169.254/doc", "http://0xa9fea9fe/doc"])
def test_a_redirect_into_the_own_network_is_not_followed(to):
    with serving() as named:
        named.answer = lambda _: Answer(status=302, headers={"Location": to})
        with pytest.raises(ToolError, match="it redirects to http://"):
            OpenAPI.from_url(f"{named.url}/openapi.json")


def test_a_link_local_server_is_asked_only_if_the_program_names_it():
    link = "http://169.254.169.254"
    given = document({"/x": {"get": {}}}, servers=[link])
    client = Recorder()
    outcome, text = call(OpenAPI.from_dict(given, client=client), "GET /x", {})
    assert (outcome, client.sent) == ("error", [])
    assert "only the document names http://169.254.169.254" in text
    for option in ({"trusted_hosts": [link]}, {"server": link}):
        assert call(OpenAPI.from_dict(given, client=client, **option), "GET /x", {})[0] == "ok"


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("169.254.0.1", True),
        ("169.254.169.254.", True),
        ("fe80::1%eth0", True),
        ("169.254.43518", True),
        ("0251.0376.1", True),
        ("１６９.254.169。254", True),  # noqa: RUF001
        ("169.253.0.1", False),
        ("127.0.0.1", False),
        ("169.254.169.254.example", False),
        ("", False),
    ],
)
def test_what_is_a_link_local_address(host, is_one):
    assert is_link_local(host) is is_one
