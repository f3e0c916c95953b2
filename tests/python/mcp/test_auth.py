"""MCP servers over HTTP that demand authentication: by any `auth`, and by the SDK's OAuth."""

from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

from callslip import ToolError, UsageError
from callslip.mcp import MCPServer
from serving import at, http_process, result


class Bearer(httpx2.Auth):
    def __init__(self, token):
        self.token = token

    def auth_flow(self, request):
        request.headers["Authorization"] = f"Bearer {self.token}"
        yield request


class Memory:
    """Keeps what the SDK would store."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Person:
    """Follows the address that a browser would be sent to, or declines."""

    def __init__(self, *, declines=False):
        self.declines = declines
        self.visits = 0
        self.query = {}

    async def open(self, address):
        self.visits += 1
        if self.declines:
            raise RuntimeError("the person closed the window")
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(address)
        self.query = parse_qs(urlsplit(response.headers["location"]).query)

    async def answer(self):
        issuer = self.query.get("iss", [None])[0]
        code, state = self.query["code"][0], self.query["state"][0]
        return AuthorizationCodeResult(code=code, state=state, iss=issuer)


def oauth(port, storage, person):
    return OAuthClientProvider(
        f"http://127.0.0.1:{port}/mcp",
        OAuthClientMetadata(redirect_uris=["http://127.0.0.1:1/callback"]),
        storage,
        redirect_handler=person.open,
        callback_handler=person.answer,
    )


@pytest.fixture(scope="module")
def guarded():
    with http_process("guarded") as (port, _):
        yield port


def test_auth_is_sent_with_every_request():
    with http_process() as (port, _), at(port, auth=Bearer("open-sesame")) as server:
        assert result(server, "header", name="authorization") == {"result": "***"}


def test_a_person_logs_in_once_and_the_token_is_kept_and_redacted(guarded):
    storage, person = Memory(), Person()
    with at(guarded, auth=oauth(guarded, storage, person)) as server:
        assert person.visits == 1
        assert storage.tokens.access_token.startswith("access-")
        assert result(server, "reveal") == {"result": "it was ***"}
    # Another program with the same storage.
    with at(guarded, auth=oauth(guarded, storage, person)) as server:
        assert result(server, "reveal") == {"result": "it was ***"}
    assert person.visits == 1


def test_without_a_login_the_reason_is_said(guarded):
    with pytest.raises(ToolError) as raised:
        at(guarded, name="guarded").connect_sync()
    assert "HTTP status 401" in str(raised.value)
    with pytest.raises(ToolError) as raised:
        auth = oauth(guarded, Memory(), Person(declines=True))
        at(guarded, name="guarded", auth=auth).connect_sync()
    assert str(raised.value).startswith("the MCP server 'guarded' can't be connected: ")
    assert "the person closed the window" in str(raised.value)


def test_auth_is_checked_and_belongs_to_one_client():
    for wrong in (("user", "password"), "token"):
        with pytest.raises(UsageError) as raised:
            MCPServer.http("http://127.0.0.1:1/mcp", auth=wrong)
        assert str(raised.value) == (
            f"expected auth to be an httpx2.Auth: got {type(wrong).__name__}"
        )
    with pytest.raises(UsageError) as raised:
        MCPServer.http("http://127.0.0.1:1/mcp", auth=Bearer("x"), client=httpx2.AsyncClient())
    assert str(raised.value) == "expected auth or a client, not both: pass auth to the client"
