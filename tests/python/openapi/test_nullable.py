"""Null is sent where a document of 3.0 says `nullable`, whatever stands beside it."""

import json
import random

from callslip import OpenAPI
from documents import document, operation
from random_cases import seeds

SCHEMAS = {
    "Pet": {"type": "object", "properties": {"name": {"type": "string"}}},
    "Word": {"type": "string", "enum": ["a", "b"]},
    "Free": {"type": "integer", "nullable": True},
}


def some_schema(draw, depth=0):
    """A schema, and whether it takes null."""
    kind = draw.choice(["type", "enum", "$ref", *(["allOf", "oneOf", "anyOf"] * (depth < 3))])
    inner_null = False
    if kind == "type":
        made = {"type": draw.choice(["string", "integer", "object", "array"])}
        if made["type"] == "array":
            made["items"] = {}
    elif kind == "enum":
        made = {"type": "string", "enum": ["x", "y"]}
    elif kind == "$ref":
        name = draw.choice([*SCHEMAS])
        made, inner_null = {"$ref": f"#/components/schemas/{name}"}, name == "Free"
    else:
        several = 1 if kind == "allOf" else draw.randrange(1, 3)
        parts = [some_schema(draw, depth + 1) for _ in range(several)]
        made = {kind: [schema for schema, _ in parts]}
        inner_null = any(takes for _, takes in parts)
    is_nullable = draw.random() < 0.5
    if is_nullable:
        made["nullable"] = True
    if draw.random() < 0.3:
        made["description"] = "Some."
    return made, is_nullable or inner_null


def test_null_is_sent_where_a_schema_takes_it():
    taken = 0
    for seed in seeds(400):
        draw = random.Random(seed)
        schema, takes = some_schema(draw)
        body = {"type": "object", "properties": {"p": schema, "q": {"type": "string"}}}
        if draw.random() < 0.5:
            body["required"] = ["p"]
        paths = {"/x": {"patch": operation(body=body)}}
        given = document(paths, version="3.0.3", components={"schemas": SCHEMAS})
        api = OpenAPI.from_dict(given)
        if takes:
            request = api.request("PATCH /x", {"p": None})
            assert json.loads(request.content) == {"p": None}, (seed, schema)
            taken += 1
        if not takes and "required" not in body:
            # What takes no null is left out.
            assert api.request("PATCH /x", {"p": None}).content in (b"", b"{}"), (seed, schema)
    assert taken > 100
