"""A value in a path that spells another operation's path: its approval, its exclusion."""

import asyncio
import contextlib
import json
from typing import ClassVar

import pytest

from callslip import Agent, Event, OpenAPI, ProtocolError, ScriptedModel, replay
from scripted import act, block, finish
from scripted import asked as after_example

sent = []


class Client:
    """Notes what it is asked for."""

    base_url = ""

    def request(self, method, url, **options):
        sent.append((method, url))

        class Response:
            status_code = 200
            headers: ClassVar[dict[str, str]] = {"content-type": "application/json"}
            content = b"{}"

        return Response()


@pytest.fixture(autouse=True)
def _fresh():
    sent.clear()


def parameter(name):
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def document(*names, server="https://api.example/v1"):
    paths = {}
    for name in names:
        method, path = name.split()
        placeholders = [part.split("}")[0] for part in path.split("{")[1:]]
        operation = {"parameters": [parameter(one) for one in placeholders]}
        paths.setdefault(path, {})[method.lower()] = operation
    about = {"title": "t", "version": "1"}
    return {"openapi": "3.1.0", "info": about, "servers": [{"url": server}], "paths": paths}


USERS = ("DELETE /users/{name}", "DELETE /users/all", "GET /users/all", "HEAD /users/{name}")
SPELLED = [
    "all",
    "ALL",
    "a%6cl",
    "%2561ll",
    "all/",
    "./all",
    "x/../all",
    " all",
    "all;v=1",
    "/all",
    "\\all",
]


def run(api, *calls, choose=None):
    model = ScriptedModel([*(act(name, **arguments) for name, arguments in calls), finish()])
    asked = []

    async def main():
        async with Agent(model, tools=api).stream("go") as stream:
            async for event in stream:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    for ticket in stream.awaiting_approval:
                        asked.append(ticket)
                        assert sent == []
                        (choose or stream.deny)(ticket)
        return stream.result

    result = asyncio.run(asyncio.wait_for(main(), 60))
    return asked, result


@pytest.mark.parametrize("name", SPELLED)
def test_the_approval_of_the_operation_that_is_spelled_is_asked_for(name):
    api = OpenAPI(document(*USERS), client=Client(), needs_approval=["DELETE /users/all"])
    asked, result = run(api, ("DELETE /users/{name}", {"name": name}))
    assert sent == []
    # A value that climbs is refused before anybody is asked, or when it is sent.
    assert [ticket.arguments for ticket in asked] == [{"name": name}]
    assert asked[0].call.startswith("DELETE /users/")
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("name", SPELLED)
def test_an_operation_that_is_left_out_is_not_reached_by_a_value(name):
    api = OpenAPI(document(*USERS), client=Client(), include=["DELETE /users/{name}"])
    asked, result = run(api, ("DELETE /users/{name}", {"name": name}))
    assert (asked, sent) == ([], [])
    assert result.run.violations == 1
    told = after_example(result.messages)[2]["content"]
    assert "DELETE /users/all" in told
    assert "not offered" in told


def test_other_values_are_sent():
    api = OpenAPI(document(*USERS), client=Client(), include=["DELETE /users/{name}"])
    _, result = run(api, ("DELETE /users/{name}", {"name": "allan"}))
    assert sent == [("DELETE", "https://api.example/v1/users/allan")]
    assert result.run.violations == 0


def test_get_is_not_reached_by_head():
    api = OpenAPI(document(*USERS), client=Client(), include=["HEAD /users/{name}"])
    _, result = run(api, ("HEAD /users/{name}", {"name": "all"}))
    assert (sent, result.run.violations) == ([], 1)


def test_a_slash_in_a_value_reaches_no_longer_path():
    names = ("GET /files/{path}", "GET /files/{path}/secret")
    api = OpenAPI(document(*names), client=Client(), include=["GET /files/{path}"])
    _, result = run(api, ("GET /files/{path}", {"path": "a/secret"}))
    assert (sent, result.run.violations) == ([], 1)


def test_several_values_together_spell_a_path():
    names = ("DELETE /{kind}/{name}", "DELETE /users/all")
    api = OpenAPI(document(*names), client=Client(), include=["DELETE /{kind}/{name}"])
    _, result = run(api, ("DELETE /{kind}/{name}", {"kind": "users", "name": "all"}))
    assert (sent, result.run.violations) == ([], 1)


@pytest.mark.parametrize(
    ("second", "asks"), [("https://api.example", True), ("https://other.example", False)]
)
def test_documents_of_one_server_are_looked_at_together(second, asks):
    one = OpenAPI(document("DELETE /users/{name}"), client=Client())
    two = OpenAPI(
        document("DELETE /v1/users/all", server=second), client=Client(), needs_approval=True
    )
    asked, _ = run([one, two], ("DELETE /users/{name}", {"name": "all"}))
    assert [bool(asked), bool(sent)] == [asks, not asks]


def test_a_server_of_the_programs_own_counts():
    options = {"client": Client(), "server": "https://api.example/s3cret-base"}
    one = OpenAPI(document("DELETE /users/{name}"), **options)
    two = OpenAPI(document("DELETE /users/all"), needs_approval=True, **options)
    asked, result = run([one, two], ("DELETE /users/{name}", {"name": "all"}))
    assert len(asked) == 1
    assert "s3cret" not in result.run.export()


def test_references_are_looked_at_when_they_are_filled():
    from callslip import tool

    @tool
    def who() -> str:
        """Tell who."""
        return "all"

    api = OpenAPI(document(*USERS), client=Client(), needs_approval=["DELETE /users/all"])
    calls = block(("w", "who", {}), ("d", "DELETE /users/{name}", {"name": "$w"}))
    asked = []

    async def main():
        agent = Agent(ScriptedModel([calls, "done"]), protocol="chatty", tools=[api, who])
        async with agent.stream("go") as stream:
            async for event in stream:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    for ticket in stream.awaiting_approval:
                        asked.append(ticket.arguments)
                        stream.deny(ticket)
        return stream.result

    result = asyncio.run(asyncio.wait_for(main(), 60))
    assert (asked, sent) == ([{"name": "all"}], [])
    assert result.tickets[1].outcome == "denied"


@pytest.mark.parametrize("name", ["..", "a/..", "%2e%2e", "..%2fadmin", "..\\admin"])
def test_a_value_does_not_lead_out_of_its_path(name):
    api = OpenAPI(document("DELETE /users/{name}"), client=Client())
    _, result = run(api, ("DELETE /users/{name}", {"name": name}))
    assert sent == []
    assert result.tickets[0].outcome == "error"


def test_the_document_shows_nothing_of_what_was_left_out_to_the_model():
    seen = []

    def model(messages):
        seen.append(json.dumps(list(messages)))
        return finish()

    api = OpenAPI(document(*USERS), client=Client(), include=["DELETE /users/{name}"])
    for protocol in ("ticket", "chatty", "react"):
        # The reply is react's alone; the prompt is what counts.
        with contextlib.suppress(ProtocolError):
            Agent(model, protocol=protocol, tools=api).run_sync("go")
    assert seen
    assert not any("/users/all" in text for text in seen)
