"""Schemas of JSON Schema draft 2020-12 and values for them, as hypothesis makes them up.

A value is made after its schema, and then often written as another type, so that most are right or
nearly so. Numbers are no larger than what a float holds exactly: beyond that the digits that are
written and the float that Python reads are two numbers.
"""

import json

from hypothesis import strategies as st

NAMES = "abc"

DEFINITIONS = {
    "node": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        },
        "required": ["a"],
        "additionalProperties": False,
    },
    "count": {"type": ["integer", "null"], "minimum": 0},
}

TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]

CONSTRAINTS = [
    True,
    False,
    {},
    {"type": "integer", "minimum": 0, "maximum": 9},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5.5},
    {"type": "integer", "multipleOf": 3},
    {"multipleOf": 5},
    {"minimum": 2},
    {"type": "string", "maxLength": 3},
    {"minLength": 2},
    {"type": "string", "pattern": "^[0-9]+$"},
    {"type": "string", "format": "date"},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "minItems": 1, "maxItems": 2},
    {"contains": {"type": "integer"}},
    {"type": "array", "contains": {"const": 1}, "minContains": 2},
    {"type": "object", "minProperties": 1, "maxProperties": 1},
    {"propertyNames": {"enum": ["a", "b"]}},
    {"dependentRequired": {"a": ["b"]}},
    {"required": ["a"]},
    {"$ref": "#/$defs/node"},
    {"$ref": "#/$defs/count"},
]

constants = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "1", 1.0, [1]])

leaves = (
    st.sampled_from(TYPES).map(lambda kind: {"type": kind})
    | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(
        lambda kinds: {"type": kinds}
    )
    | st.lists(constants, min_size=1, max_size=4).map(lambda values: {"enum": values})
    | constants.map(lambda value: {"const": value})
    | st.sampled_from(CONSTRAINTS)
)


def properties(inner):
    return st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)


def several(inner):
    return st.lists(inner, min_size=1, max_size=3)


def branch(tag, fields):
    """One of a union whose branches are told apart by a tag."""
    tagged = {"kind": {"const": tag}, **fields}
    return {"type": "object", "properties": tagged, "required": ["kind"]}


def compose(inner):
    some = properties(inner)
    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(
            lambda first, items: {"prefixItems": first, "items": items}, several(inner), inner
        )
        | st.builds(lambda key, parts: {key: parts}, ANY_OF, several(inner))
        | st.builds(lambda part: {"not": part}, inner)
        | st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner)
        | st.builds(
            lambda fields, more, required: {
                "type": "object",
                "properties": fields,
                "additionalProperties": more,
                "required": required,
            },
            some,
            st.booleans() | inner,
            names,
        )
        | st.builds(
            lambda fields, more: {"properties": fields, "patternProperties": {"^[bc]": more}},
            some,
            inner,
        )
        | st.builds(
            lambda one, other: {
                "allOf": [{"properties": one}, {"properties": other}],
                "unevaluatedProperties": False,
            },
            some,
            some,
        )
        | st.builds(
            lambda key, one, other: {key: [branch("x", one), branch("y", other), {"type": "null"}]},
            st.sampled_from(["anyOf", "oneOf"]),
            some,
            some,
        )
        | st.builds(lambda part: {"dependentSchemas": {"a": part}}, inner)
    )


ANY_OF = st.sampled_from(["anyOf", "oneOf", "allOf"])
schemas = st.recursive(leaves, compose, max_leaves=6)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-10, 12)
    | st.integers(-(10**25), 10**25)
    | st.floats(-(2**53), 2**53)
    | st.sampled_from([-0.0, 5.0, 1e2, "", "a", "abcd", "5", "5.0", "05", " 5 ", "true", "null"])
    | st.sampled_from(["[1]", '{"a":1}', '{"a":"1"}', "é😀"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=6,
)

of_type = {
    "string": st.sampled_from(["", "ab", "12"]),
    "integer": st.integers(-3, 12) | st.just(5.0),
    "number": st.sampled_from([3, 2.5, 1e2]),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(st.integers(0, 2), max_size=2),
    "object": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=2),
}


def like(schema, depth=0):
    """Values that a schema may admit, or admit once they are read as another type."""
    exact = exactly(schema, depth)
    return exact if depth > 2 else st.one_of(exact, exact, exact.map(json.dumps), values)


def exactly(schema, depth):
    if depth > 4 or not isinstance(schema, dict):
        return values
    below = depth + 1
    options = []
    if "$ref" in schema:
        options.append(like(DEFINITIONS[schema["$ref"].rpartition("/")[2]], below))
    if "const" in schema:
        options.append(st.just(schema["const"]))
    if "enum" in schema:
        options.append(st.sampled_from(schema["enum"]))
    for key in ("anyOf", "oneOf", "allOf"):
        options += [like(part, below) for part in schema.get(key, ())]
    options += [like(schema[key], below) for key in ("if", "then", "else") if key in schema]
    kinds = schema.get("type", ())
    options += [of_type[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if "items" in schema:
        first = st.tuples(*(like(part, below) for part in schema.get("prefixItems", ())))
        rest = st.lists(like(schema["items"], below), max_size=2)
        options.append(st.builds(lambda some, more: [*some, *more], first, rest))
    if fields := schema.get("properties"):
        required = set(schema.get("required", ()))
        options.append(
            st.fixed_dictionaries(
                {name: like(fields.get(name, True), below) for name in sorted(required)},
                optional={
                    name: like(part, below) for name, part in fields.items() if name not in required
                },
            )
        )
    return st.one_of(options) if options else values


@st.composite
def cases(draw):
    """Draw a schema and a value for it."""
    schema = draw(schemas)
    return schema, draw(like(schema))


@st.composite
def objects_and_arguments(draw):
    """Draw a schema of arguments that is put together from several, and arguments for it."""
    plain = st.builds(
        lambda fields, more: {"type": "object", "properties": fields, **more},
        properties(schemas),
        st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]),
    )
    joined = st.builds(lambda key, parts, more: {**more, key: parts}, ANY_OF, several(plain), plain)
    schema = draw(plain | joined)
    part = draw(st.sampled_from([schema, *(p for key in schema for p in parts_of(schema, key))]))
    return schema, draw(exactly(part, 0).filter(lambda value: isinstance(value, dict)))


def parts_of(schema, key):
    return schema[key] if key in {"anyOf", "oneOf", "allOf"} else ()
