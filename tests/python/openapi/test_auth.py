"""What proves who calls is sent, or refused at load; and it is told to nobody."""

import logging
from typing import ClassVar

import httpx
import pytest

from callslip import Agent, OpenAPI, ScriptedModel, UsageError
from scripted import act, finish

SECRET = "Canary4711"
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
BEARER = {"type": "http", "scheme": "bearer"}


def document(schemes=None, security=None, own=None):
    operation = {} if own is None else {"security": own}
    about = {"title": "t", "version": "1"}
    made = {
        "openapi": "3.1.0",
        "info": about,
        "servers": [{"url": "https://a.example"}],
        "paths": {"/x": {"get": operation}},
    }
    if schemes is not None:
        made["components"] = {"securitySchemes": schemes}
    if security is not None:
        made["security"] = security
    return made


class Echo:
    """Answers with what it is sent."""

    def __init__(self, **attributes):
        self.seen = {}
        self.__dict__.update(attributes)

    def request(self, method, url, *, headers, content):
        self.seen = {name.decode().lower(): value.decode() for name, value in headers}
        own = getattr(self, "headers", {})

        class Response:
            status_code = 400
            headers: ClassVar[dict[str, str]] = {"content-type": "text/plain"}

        Response.content = repr({**self.seen, **own}).encode()
        return Response()


def told(api):
    result = Agent(ScriptedModel([act("GET /x"), finish()]), tools=api).run_sync("go")
    return result.tickets[0].error


def test_it_is_sent_where_the_document_does_not_say_how_it_is_secured():
    client = Echo()
    api = OpenAPI(document({"token": BEARER}), client=client, auth={"token": SECRET})
    assert SECRET not in told(api)
    assert client.seen["authorization"] == f"Bearer {SECRET}"


def test_two_secrets_do_not_go_to_one_place():
    client = Echo()
    schemes = {"a": BEARER, "b": BEARER, "c": KEY}
    auth = {"a": SECRET, "c": "third-secret"}
    told(OpenAPI(document(schemes), client=client, auth=auth))
    assert client.seen["authorization"] == f"Bearer {SECRET}"
    assert client.seen["x-key"] == "third-secret"


def test_what_there_is_of_several_is_sent():
    client = Echo()
    schemes, security = {"a": BEARER, "c": KEY}, [{"a": [], "c": []}]
    told(OpenAPI(document(schemes, security), client=client, auth={"c": SECRET}))
    assert client.seen["x-key"] == SECRET


@pytest.mark.parametrize(
    ("schemes", "security", "own"),
    [
        ({"a": BEARER, "c": KEY}, [{"a": []}], None),
        ({"c": KEY}, [], None),
    ],
)
def test_what_would_never_be_sent_is_refused(schemes, security, own):
    with pytest.raises(UsageError, match=r"auth\['c'\] would never be sent") as caught:
        OpenAPI(document(schemes, security, own), client=Echo(), auth={"c": SECRET})
    assert SECRET not in str(caught.value)


def test_without_a_scheme_there_are_headers():
    with pytest.raises(UsageError, match="pass headers="):
        OpenAPI(document(), client=Echo(), auth={"token": SECRET})
    client = Echo()
    api = OpenAPI(document(), client=client, headers={"Authorization": f"Bearer {SECRET}"})
    error = told(api)
    assert client.seen["authorization"] == f"Bearer {SECRET}"
    assert "***" in error
    assert SECRET not in error


@pytest.mark.parametrize(
    "headers", ["Bearer x", {"A": 5}, {"A": ""}, {"A": f"{SECRET}\r\nB: c"}, {5: "x"}]
)
def test_headers_are_texts(headers):
    with pytest.raises(UsageError, match="headers") as caught:
        OpenAPI(document(), client=Echo(), headers=headers)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["Authorization", "X-API-Key", "Cookie", "X-Auth-Token", "PRIVATE-TOKEN"]
)
def test_the_clients_own_secrets_are_hidden(name):
    value = f"session={SECRET}" if name == "Cookie" else SECRET
    client = Echo(headers={name: value, "Accept-Language": "norsk-bokmal"})
    error = told(OpenAPI(document(), client=client))
    assert SECRET not in error
    assert "norsk-bokmal" in error


def test_those_of_httpx_are_hidden(caplog):
    def answer(request):
        return httpx.Response(400, text=f"{dict(request.headers)} {SECRET}")

    with (
        httpx.Client(
            transport=httpx.MockTransport(answer),
            auth=("ada", SECRET),
            headers={"X-Key": "another-secret"},
            base_url="https://a.example",
        ) as client,
        caplog.at_level(logging.DEBUG),
    ):
        error = told(OpenAPI(document(), client=client))
    assert SECRET not in error
    assert "another-secret" not in error
    assert SECRET not in caplog.text


def test_what_a_function_for_a_secret_raises_is_redacted(tmp_path):
    path = tmp_path / "credentials.json"

    def token():
        raise RuntimeError(
            f"no file {path}: Authorization: Bearer {SECRET}abcdef0123456789 refused"
        )

    api = OpenAPI(document({"t": BEARER}), client=Echo(), auth={"t": token})
    error = told(api)
    assert "auth['t']" in error
    assert "RuntimeError" in error
    assert SECRET not in error
    assert str(tmp_path) not in error


@pytest.mark.parametrize(
    "raised",
    [
        lambda path: OSError(2, "No such file", path),
        lambda path: ValueError(f"token=sk-{'a1' * 12} in {path}"),
        lambda path: RuntimeError(f"https://ada:{SECRET}@h.example/ failed"),
    ],
)
def test_what_a_client_raises_is_redacted(tmp_path, raised):
    class Broken:
        def request(self, method, url, **options):
            raise raised(str(tmp_path / "key.pem"))

    error = told(OpenAPI(document(), client=Broken()))
    assert str(tmp_path) not in error
    assert "sk-a1" not in error
    assert SECRET not in error
