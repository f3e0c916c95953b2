"""Answers of a JSON Schema that the program passes: all protocols, and resumed runs."""

import json
from types import MappingProxyType

import pytest
from pydantic import BaseModel

from callslip import (
    Agent,
    ModelError,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
)
from scripted import finish, give

PROTOCOLS = ("react", "ticket", "chatty")

CITY = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/city",
    "title": "City",
    "type": "object",
    "properties": {
        "name": {"title": "Name", "type": "string"},
        "people": {"title": "People", "type": "integer"},
        "twin": {"anyOf": [{"$ref": "#/$defs/Town"}, {"type": "null"}]},
    },
    "required": ["name", "people"],
    "additionalProperties": False,
    "$defs": {"Town": {"type": "object", "properties": {"name": {"type": "string"}}}},
}
TREE = {
    "type": "object",
    "properties": {
        "value": {"$ref": "#/definitions/value"},
        "left": {"$ref": "#"},
        "right": {"$ref": "#/properties/left"},
    },
    "required": ["value"],
    "additionalProperties": False,
    "definitions": {"value": {"type": "integer"}},
}
OSLO = {"name": "Oslo", "people": 700_000, "twin": {"name": "Bergen"}}


def answer(protocol, value):
    """A reply with an answer, as each protocol writes it."""
    match protocol:
        case "react":
            return finish(value)
        case "ticket":
            return give(value)
    return f"<answer>{json.dumps(value)}</answer>"


def agent_for(protocol, schema, *replies, **options):
    model = ScriptedModel([answer(protocol, reply) for reply in replies])
    return Agent(model, protocol=protocol, returns=schema, delegate=False, **options)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (CITY, OSLO),
        (TREE, {"value": 1, "left": {"value": 2, "right": {"value": 3}}}),
        ({}, [1, None, "x"]),
        ({}, "text"),
        ({"type": "array", "items": {"enum": ["a", 1]}}, ["a", 1]),
        ({"type": ["string", "null"]}, None),
        ({"const": {"$ref": "https://example.com"}}, {"$ref": "https://example.com"}),
        ({"properties": {"$ref": {"type": "integer"}}}, {"$ref": 5}),
        (
            {"type": "object", "properties": {"answer": {"$ref": "#/$defs/answer"}}}
            | {"$defs": {"answer": {"type": "array", "items": {"$ref": "#"}}}},
            {"answer": [{"answer": []}]},
        ),
        ({"$ref": "#/%24defs/a", "$defs": {"a": {"type": "integer"}}}, 5),
        (MappingProxyType({"type": "integer"}), 5),
    ],
)
def test_a_dict_is_a_schema_and_the_value_is_plain_json(protocol, schema, value):
    agent = agent_for(protocol, schema, value)
    result = agent.run_sync("x")
    assert result.value == value
    assert type(result.value) is type(value)
    assert result.run.violations == 0
    replay(result.run.export())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("schema", "wrong", "right"),
    [
        (CITY, {"name": "Oslo"}, OSLO),
        (CITY, {**OSLO, "twin": {"name": 5}}, OSLO),
        (TREE, {"value": 1, "right": {"value": "one"}}, {"value": 1, "right": {"value": 2}}),
        (TREE, {"value": 1, "left": {}}, {"value": 1}),
        ({"type": "array", "minItems": 2}, [1], [1, 2]),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_again(protocol, schema, wrong, right):
    result = agent_for(protocol, schema, wrong, right).run_sync("x")
    assert result.value == right
    assert [e.violation["code"] for e in result.run.log if e.kind == "violated"] == [
        "invalid_answer"
    ]
    replay(result.run.export())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_prompt_has_the_type_and_no_words_for_machines(protocol):
    class City(BaseModel):
        name: str
        people: int

    typed = agent_for(protocol, City).system_prompt
    assert agent_for(protocol, City.model_json_schema()).system_prompt == typed
    prompt = agent_for(protocol, CITY).system_prompt
    assert "{name: str, people: int, twin?: {name?: str}|null}" in prompt
    assert "json-schema.org" not in prompt
    assert "example.com" not in prompt


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_older_dialect_of_a_schema_holds(protocol):
    """A pair was `items` with a list up to draft 2019-09."""
    pair = {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}
    old = {**pair, "$schema": "http://json-schema.org/draft-07/schema#"}
    result = agent_for(protocol, old, ["a", 1], [1, "a"]).run_sync("x")
    assert (result.value, result.run.violations) == ([1, "a"], 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("schema", "value"), [(CITY, OSLO), (TREE, {"value": 1})])
def test_a_run_is_resumed_with_its_schema(protocol, schema, value, tmp_path):
    path = tmp_path / "runs.sqlite"

    def fails(_):
        raise RuntimeError("no model")

    with TicketStore(path) as store:
        first = Agent(fails, protocol=protocol, returns=schema, delegate=False, store=store)
        with pytest.raises(ModelError) as raised:
            first.run_sync("x")
        run_id = raised.value.run.id
    with TicketStore(path) as store:
        again = agent_for(protocol, json.loads(json.dumps(schema)), {}, value, store=store)
        result = again.resume_sync(run_id)
        assert (result.value, result.run.violations) == (value, 1)
    with TicketStore(path) as store:
        # Only read, also by an agent with another schema that the value fits.
        assert agent_for(protocol, schema, store=store).resume_sync(run_id).value == value
        wider = {"type": "object"}
        assert agent_for(protocol, wider, store=store).resume_sync(run_id).value == value
        other = agent_for(protocol, {"type": "array"}, store=store)
        with pytest.raises(UsageError, match="not of the type in returns"):
            other.resume_sync(run_id)


def test_a_check_has_the_plain_value():
    seen = []
    agent = agent_for("react", CITY, OSLO, check_answer=lambda value, _: seen.append(value))
    agent.run_sync("x")
    assert seen == [OSLO]


def test_the_schema_that_was_passed_does_not_change():
    before = json.dumps(TREE)
    given = json.loads(before)
    agent = agent_for("react", given, {"value": 1})
    given["properties"].clear()
    assert agent.run_sync("x").value == {"value": 1}
    assert json.dumps(TREE) == before


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (True, "expected returns as a type or a JSON Schema in a dict: got True; pass {} for any"),
        (False, "got False; pass {} for any JSON value"),
        ({"type": "strin"}, 'returns can\'t be used: "strin" is not valid under any of'),
        ({"type": object()}, "expected returns as JSON: "),
        (
            {"properties": {"a/b": {"$ref": "https://example.com/a.json"}}},
            "got 'https://example.com/a.json' at '/properties/a~1b/$ref'; put the schema that is",
        ),
        ({"items": {"$ref": "other.json#/$defs/a"}}, "got 'other.json#/$defs/a' at '/items/"),
        ({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}, "got '#name' at '/$ref'"),
        ({"$ref": 5}, "got 5 at '/$ref'"),
        ({"$ref": "#/$defs/a"}, "got '#/$defs/a' at '/$ref', which leads to nothing"),
        ({"allOf": [{"$ref": "#/allOf/1"}]}, "got '#/allOf/1' at '/allOf/0/$ref', which leads"),
        ({"not": {"$dynamicRef": "#a"}}, "without $dynamicRef: got one at '/not/$dynamicRef'"),
        (
            {"properties": {"a": {"$id": "https://example.com/a"}}},
            "got another one with an $id at '/properties/a/$id'; leave the $id out",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(schema, message):
    with pytest.raises(UsageError) as raised:
        agent_for("react", schema)
    assert message in str(raised.value)
