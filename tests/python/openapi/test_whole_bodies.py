"""A payload that is the whole body of a request: text, a list, any value but an object (ticket)."""

import json

import pytest

from callslip import Agent, OpenAPI, ScriptedModel, TicketProtocol
from scripted import give, output

TEXT, LIST = {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
ANY_OF = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def operation(name, schema, media="application/json", *, required=True, **rest):
    body = {"required": required, "content": {media: {"schema": schema}}}
    return {"post": {"operationId": name, "requestBody": body, **rest}}


BY_ID = {"parameters": [{"name": "id", "in": "path", "required": True, "schema": TEXT}]}
BY_TAG = {"parameters": [{"name": "tag", "in": "query", "schema": TEXT}]}
PATHS = {
    "/text": operation("text", TEXT, "text/plain"),
    "/maybe": operation("maybe", TEXT, "text/plain", required=False),
    "/string": operation("string", TEXT),
    "/list": operation("list", LIST),
    "/either": operation("either", ANY_OF),
    "/object": operation("object", OBJECT),
    "/tagged": operation("tagged", TEXT, "text/plain", **BY_TAG),
    "/at/{id}": operation("at", TEXT, "text/plain", **BY_ID),
}


def run(route, payload, **options):
    got = []
    names = [path["post"]["operationId"] for path in PATHS.values()]
    tools = OpenAPI.from_dict(
        {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": PATHS},
        handlers={name: lambda **arguments: got.append(arguments) for name in names},
    )
    reply = output(type="CALL", route=route, payload=payload, description="d")
    model = ScriptedModel([reply, give("done")])
    protocol = TicketProtocol(grace=60, examples=False, **options)
    result = Agent(model, protocol=protocol, tools=tools).run_sync("go")
    return got, [event.violation for event in result.run.log if event.kind == "violated"]


@pytest.mark.parametrize(
    ("route", "payload", "body"),
    [
        ("POST /text", "wash the car", "wash the car"),
        ("POST /text", '{"a": 1}', '{"a": 1}'),
        ("POST /text", "[1]", "[1]"),
        ("POST /text", "5", "5"),
        ("POST /text", "null", "null"),
        ("POST /text", " ", " "),
        ("text", "x", "x"),
        ("POST /string", "x", "x"),
        ("POST /list", [1, 2], [1, 2]),
        ("POST /list", [], []),
        ("POST /list", "[1, 2]", [1, 2]),
        ("POST /either", 5, 5),
        ("POST /either", ["a"], ["a"]),
        # With its name, as ever.
        ("POST /text", {"body": "x"}, "x"),
        ("POST /list", {"body": [1]}, [1]),
        ("POST /list", '{"body": [1]}', [1]),
    ],
)
def test_the_whole_body_is_the_payload(route, payload, body):
    assert run(route, payload) == ([{"body": body}], [])


def test_a_body_that_may_be_left_out_is_left_out():
    for payload in ({}, None, "", "null"):
        assert run("POST /maybe", payload) == ([{}], [])
    assert run("POST /maybe", "x") == ([{"body": "x"}], [])


@pytest.mark.parametrize(
    ("route", "payload", "code"),
    [
        ("POST /list", "wash the car", "invalid_argument"),
        ("POST /list", ["a"], "invalid_argument"),
        ("POST /text", 5, "invalid_argument"),
        ("POST /text", ["a"], "invalid_argument"),
        # Beside other parameters the payload is an object.
        ("POST /tagged", "x", "invalid_argument"),
        ("POST /at/5", "x", "invalid_argument"),
        ("POST /object", "x", "invalid_argument"),
        ("POST /object", [{"a": 1}], "invalid_argument"),
    ],
)
def test_a_payload_that_is_no_body_is_refused(route, payload, code):
    got, (violation,) = run(route, payload)
    assert (got, violation["code"]) == ([], code)


def test_text_that_may_be_the_body_or_an_object_with_it_is_refused():
    got, (violation,) = run("POST /text", json.dumps({"body": "x"}))
    assert (got, violation["code"]) == ([], "invalid_argument")
    assert violation["message"] == (
        "expected the body as an object with 'body', or as text: got text that may be either"
    )
    assert violation["hint"] == 'write the payload as an object: {"body": "..."}'


def test_a_list_as_text_is_a_repair():
    assert run("POST /list", [1], strict=True) == ([{"body": [1]}], [])
    got, (violation,) = run("POST /list", "[1]", strict=True)
    assert (got, violation["code"]) == ([], "invalid_argument")
