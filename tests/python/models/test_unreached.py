"""A server that cannot be reached is named with host and port, by every client."""

import asyncio

import anthropic
import httpx
import openai
import pytest

from callslip import Agent, ModelError, OpenAPI, ScriptedModel, ToolError, as_model
from callslip._base.connections import unreached
from callslip.mcp import MCPServer
from scripted import act, finish
from serving import free_port

OPTIONS = {"api_key": "x", "max_retries": 0}


def asked(url):
    def model(messages):
        return httpx.get(url).text

    return model


MODELS = {
    "openai": lambda url: as_model(openai.OpenAI(base_url=url, **OPTIONS), model="m"),
    "async openai": lambda url: as_model(openai.AsyncOpenAI(base_url=url, **OPTIONS), model="m"),
    "anthropic": lambda url: as_model(
        anthropic.Anthropic(base_url=url, **OPTIONS), model="m", max_tokens=9
    ),
    "async anthropic": lambda url: as_model(
        anthropic.AsyncAnthropic(base_url=url, **OPTIONS), model="m", max_tokens=9
    ),
    "httpx": asked,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models(make):
    port = free_port()
    agent = Agent(make(f"http://user:secret@127.0.0.1:{port}/v1?key=secret"))
    for ask in (lambda: agent.run_sync("?"), lambda: asyncio.run(agent.run("?"))):
        with pytest.raises(ModelError, match=rf"\(127\.0\.0\.1:{port}\b.*check that") as caught:
            ask()
        assert "secret" not in str(caught.value)


def test_tools_of_a_document_and_of_a_server():
    port = free_port()
    document = {
        "openapi": "3.0.0",
        "info": {"title": "shop", "version": "1"},
        "servers": [{"url": f"http://127.0.0.1:{port}"}],
        "paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": ""}}}}},
    }
    agent = Agent(ScriptedModel([act("a"), finish()]), tools=OpenAPI(document, retries=0))
    assert f"(127.0.0.1:{port}; check that" in agent.run_sync("?").tickets[0].error
    with pytest.raises(ToolError, match=rf"\(127\.0\.0\.1:{port}: .*check that"):
        MCPServer.http(f"http://127.0.0.1:{port}/mcp", name="shop").connect_sync()
    with pytest.raises(ToolError, match=rf"127\.0\.0\.1:{port}/.*; check the address"):
        OpenAPI.from_url(f"http://127.0.0.1:{port}/openapi.json")


class ConnectError(Exception):
    """As clients name theirs."""


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (httpx.Request("GET", "https://a.example/v1"), "a.example:443; "),
        (httpx.Request("GET", "http://[::1]:8080/v1"), "[::1]:8080; "),
        (None, None),
    ],
)
def test_addresses(request_, told):
    error = ConnectError("no")
    error.request = request_
    words = unreached(error)
    assert words is None if told is None else words.startswith(told)


@pytest.mark.parametrize("error", [ValueError("x"), TimeoutError("x"), ConnectError("x")])
def test_other_failures_have_no_address(error):
    assert unreached(error) is None
