"""Addresses that are none: of servers, and of documents."""

import httpx
import pytest

from callslip import OpenAPI, ToolError, UsageError
from documents import one

SERVERS = ["", "a.test", "/v1", "localhost:8000", "a.test:80/x", "http://", "http:a", "http://["]


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_is_no_url_is_an_error_at_once(server):
    with pytest.raises(UsageError) as caught:
        one({}, options={"server": server})
    assert str(caught.value) == (
        f"expected server to be a URL: got {server!r}: pass one such as 'https://api.example.com'"
    )


@pytest.mark.parametrize(
    ("server", "url"), [("", "http://b.test/x"), ("/v1", "http://b.test/v1/x")]
)
def test_a_server_may_be_a_path_where_the_client_has_a_host(server, url):
    with httpx.Client(base_url="http://b.test") as client:
        api = one({}, options={"server": server, "client": client})
        assert api.request("POST /x", {}).url == url


@pytest.mark.parametrize("server", ["http://ann:pw@a.test", "//ann:pw@a.test", "ann:pw@a.test"])
def test_a_server_with_a_user_is_refused_without_quoting_it(server):
    with pytest.raises(UsageError) as caught:
        one({}, options={"server": server})
    assert (
        str(caught.value)
        == "expected server to be a URL without credentials: pass them with auth=… or in the "
        "client"
    )


def test_a_document_may_name_a_server_without_a_scheme():
    with pytest.raises(ToolError, match="names its server as 'localhost:8000' alone"):
        one({}, servers=["localhost:8000"])


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "http://exämple.test/ü?key=1",
            (
                "a URL has ASCII characters only: percent-encode the others, and write a host with "
                "them as 'xn--…': got 'http://exämple.test/ü'"
            ),
        ),
        ("http://[", "from_url expects the URL of a document: Invalid IPv6 URL"),
        (
            "http://127.0.0.1:x/",
            (
                "from_url expects the URL of a document: "
                "Port could not be cast to integer value as 'x'"
            ),
        ),
    ],
)
def test_documents_at_what_is_no_url(url, told):
    with pytest.raises(UsageError) as caught:
        OpenAPI.from_url(url)
    assert str(caught.value) == told
