"""Bodies of requests: JSON, forms, multipart, text and bytes, as a document describes them."""

import base64
import json
from urllib.parse import parse_qsl

import pytest

from callslip import CallslipError
from documents import SERVER, header, one, operation, parameter, plan, planned
from form_parts import Part, parts, plain

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}


def described(properties, **further):
    """The schema of an object."""
    return {"type": "object", "properties": properties, **further}


def json_of(request):
    assert header(request, "content-type") == ["application/json"]
    return json.loads(request.content)


def pairs_of(request):
    """The pairs of a form, of which nothing stands unescaped that would need it."""
    assert header(request, "content-type") == [FORM]
    text = request.content.decode("ascii")
    assert not set(text) & set(' "<>\\^`{|}[]#')
    return parse_qsl(text, keep_blank_values=True, strict_parsing=True)


def parts_of(request):
    (content_type,) = header(request, "content-type")
    return parts(content_type, request.content)


# JSON
def test_properties_of_the_body_stand_beside_the_parameters():
    body = described({"name": STRING, "tags": STRINGS}, required=["name"])
    described_operation = operation(
        parameter("id", "path", {"type": "integer"}), parameter("dry", "query"), body=body
    )
    arguments = {"id": 3, "dry": "yes", "name": "Rex", "tags": ["a", "b"]}
    request = plan(described_operation, arguments, path="/pets/{id}", method="put")
    assert (request.method, request.url) == ("PUT", f"{SERVER}/pets/3?dry=yes")
    assert json_of(request) == {"name": "Rex", "tags": ["a", "b"]}


def test_a_body_whose_names_collide_stands_under_body():
    body = described({"id": {"type": "integer"}, "name": STRING}, required=["id"])
    described_operation = operation(parameter("id", "path", {"type": "integer"}), body=body)
    arguments = {"id": 3, "body": {"id": 4, "name": "Rex"}}
    request = plan(described_operation, arguments, path="/pets/{id}", method="put")
    assert request.url == f"{SERVER}/pets/3"
    assert json_of(request) == {"id": 4, "name": "Rex"}


def test_a_parameter_that_is_called_body_leaves_the_body_another_name():
    described_operation = operation(parameter("body", "query"), body=STRINGS)
    request = plan(described_operation, {"body": "q", "request_body": ["a"]})
    assert request.url == f"{SERVER}/x?body=q"
    assert json_of(request) == ["a"]


@pytest.mark.parametrize(
    "value",
    [["a", 1, None], "text", "", 5, 1.5, True, False, {"any": {"thing": []}}, [], {}],
)
def test_a_body_that_is_no_object_stands_under_body(value):
    assert json_of(plan(operation(body={}), {"body": value})) == value


def test_json_is_written_as_it_came():
    # Neither an integer beyond 64 bits nor the digits of a float are lost on the way.
    numbers = [2**63 + 1, 10**30, 0.1, 1e300, -0.0, 1.5]
    request = plan(operation(body={}), {"body": {"n": numbers, "s": 'é☃🙂"\\\n\u2028', "k": None}})
    assert json_of(request) == {"n": numbers, "s": 'é☃🙂"\\\n\u2028', "k": None}
    assert b'{"n":[' in request.content


def test_an_explicit_null_is_sent():
    body = described({"name": {"type": ["string", "null"]}, "other": STRING})
    assert json_of(plan(operation(body=body), {"name": None})) == {"name": None}
    body = described({"name": {"type": "string", "nullable": True}})
    assert json_of(plan(operation(body=body), {"name": None}, version="3.0.3")) == {"name": None}


def test_read_only_properties_are_neither_asked_for_nor_sent():
    owner = described(
        {"id": {"type": "integer", "readOnly": True}, "name": STRING}, required=["id", "name"]
    )
    body = described(
        {"id": {"type": "integer", "readOnly": True}, "owner": owner, "all": {"type": "array"}},
        required=["id", "owner"],
    )
    body["properties"]["all"]["items"] = owner
    described_operation = operation(body=body)
    for version in ("3.0.3", "3.1.0"):
        api = one(described_operation, version=version)
        assert "id" not in api.tools["POST /x"].parameters["properties"]
        given = {"owner": {"id": 1, "name": "Ada"}, "all": [{"name": "Bo"}]}
        request = api.request("POST /x", given)
        assert json_of(request) == {"owner": {"name": "Ada"}, "all": [{"name": "Bo"}]}


def test_write_only_properties_are_sent():
    body = described({"secret": {"type": "string", "writeOnly": True}})
    assert json_of(plan(operation(body=body), {"secret": "s"})) == {"secret": "s"}


def test_defaults_of_the_body_are_not_sent():
    body = described({"size": {"type": "integer", "default": 5}, "name": STRING})
    assert json_of(plan(operation(body=body), {"name": "x"})) == {"name": "x"}


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (described({"a": STRING}), "application/json"),
        (STRINGS, "application/json"),
        (described({"a": STRING}), FORM),
        (described({"a": STRING}), MULTIPART),
        (STRING, "text/plain"),
        ({}, "application/octet-stream"),
    ],
)
def test_an_optional_body_that_is_not_given_is_not_sent(body, media):
    request = plan(operation(body=body, media=media, required=False), {})
    assert request.content == b""
    assert header(request, "content-type") == []


def test_a_required_body_of_which_nothing_is_given_is_an_empty_object():
    assert json_of(plan(operation(body=described({"a": STRING})), {})) == {}


@pytest.mark.parametrize(
    ("media", "sent"),
    [
        ("application/vnd.api+json", "application/vnd.api+json"),
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
        ("application/merge-patch+json", "application/merge-patch+json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
    ],
)
def test_media_types_that_are_json(media, sent):
    request = plan(operation(body=described({"a": STRING}), media=media), {"a": "x"})
    assert header(request, "content-type") == [sent]
    assert json.loads(request.content) == {"a": "x"}


def test_json_goes_before_other_media_types():
    described_operation = operation(body=described({"a": STRING}), media=FORM)
    content = described_operation["requestBody"]["content"]
    content["multipart/form-data"] = content["application/json"] = content[FORM]
    assert json_of(plan(described_operation, {"a": "x"})) == {"a": "x"}


def test_referenced_bodies_and_properties():
    components = {
        "requestBodies": {
            "Pet": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            }
        },
        "schemas": {
            "Pet": {
                "allOf": [
                    {"$ref": "#/components/schemas/Named"},
                    described({"friend": {"$ref": "#/components/schemas/Pet"}}),
                ]
            },
            "Named": described({"name": STRING}, required=["name"]),
        },
    }
    described_operation = {"requestBody": {"$ref": "#/components/requestBodies/Pet"}}
    arguments = {"name": "Rex", "friend": {"name": "Bo", "friend": {"name": "Mi"}}}
    request = plan(described_operation, arguments, components=components)
    assert json_of(request) == arguments


# Forms
def test_a_form_with_brackets():
    style = {"style": "deepObject", "explode": True}
    item = described({"price": STRING, "tax_rates": STRINGS})
    body = described(
        {
            "amount": {"type": "integer"},
            "capture": {"type": "boolean"},
            "metadata": {"type": "object", "additionalProperties": STRING},
            "items": {"type": "array", "items": item},
            "expand": STRINGS,
            "note": STRING,
        }
    )
    arguments = {
        "amount": 500,
        "capture": False,
        "metadata": {"order id": "6&7", "k]": "="},
        "items": [{"price": "p1", "tax_rates": ["t1", "t2"]}, {"price": "p2"}],
        "expand": ["a.b", "c"],
        "note": "",
    }
    encoding = dict.fromkeys(["metadata", "items", "expand"], style)
    for version in ("3.0.3", "3.1.0"):
        described_operation = operation(body=body, media=FORM, encoding=encoding)
        request = plan(described_operation, arguments, version=version)
        assert pairs_of(request) == [
            ("amount", "500"),
            ("capture", "false"),
            ("metadata[order id]", "6&7"),
            ("metadata[k]]", "="),
            ("items[0][price]", "p1"),
            ("items[0][tax_rates][0]", "t1"),
            ("items[0][tax_rates][1]", "t2"),
            ("items[1][price]", "p2"),
            ("expand[0]", "a.b"),
            ("expand[1]", "c"),
            ("note", ""),
        ]


def test_a_form_without_encoding_as_the_specification_shows_it():
    body = described({"id": {"type": "string", "format": "uuid"}, "address": described({})})
    address = {
        "streetAddress": "123 Example Dr.",
        "city": "Somewhere",
        "state": "CA",
        "zip": "99999+1234",
    }
    arguments = {"id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "address": address}
    request = plan(operation(body=body, media=FORM), arguments)
    assert request.content.decode().replace("%20", "+") == (
        "id=f81d4fae-7dec-11d0-a765-00a0c91e6bf6&address=%7B%22streetAddress%22%3A%22123+Example"
        "+Dr.%22%2C%22city%22%3A%22Somewhere%22%2C%22state%22%3A%22CA%22%2C%22zip%22%3A%2299999"
        "%2B1234%22%7D"
    )


def test_arrays_in_forms():
    body = described({"plain": STRINGS, "joined": STRINGS, "piped": STRINGS, "empty": STRINGS})
    encoding = {
        "joined": {"style": "form", "explode": False},
        "piped": {"style": "pipeDelimited", "explode": False},
    }
    arguments = {"plain": ["a", "b c"], "joined": ["d", "e"], "piped": ["f", "g"], "empty": []}
    request = plan(operation(body=body, media=FORM, encoding=encoding), arguments)
    assert pairs_of(request) == [
        ("plain", "a"),
        ("plain", "b c"),
        ("joined", "d,e"),
        ("piped", "f|g"),
    ]


def test_values_in_forms():
    names = ["text", "yes", "number", "none", "plus"]
    body = described({name: {} for name in names})
    arguments = {"text": "é=&\r\n", "yes": True, "number": 1.5, "none": None, "plus": "a+b c"}
    request = plan(operation(body=body, media=FORM), arguments)
    assert pairs_of(request) == [
        ("text", "é=&\r\n"),
        ("yes", "true"),
        ("number", "1.5"),
        ("plus", "a+b c"),
    ]


# Multipart
def test_defaults_of_parts():
    body = described(
        {
            "id": {"type": "string", "format": "uuid"},
            "count": {"type": "integer"},
            "address": described({"city": STRING}),
            "all": {"type": "array", "items": described({"n": {"type": "integer"}})},
            "words": STRINGS,
        }
    )
    arguments = {
        "id": "i",
        "count": 3,
        "address": {"city": "Łódź"},
        "all": [{"n": 1}, {"n": 2}],
        "words": ["a", "b"],
    }
    found = parts_of(plan(operation(body=body, media=MULTIPART), arguments))
    assert plain(found[:2]) == [("id", "i"), ("count", "3")]
    assert found[2:5] == [
        Part("address", '{"city":"Łódź"}'.encode(), "application/json"),
        Part("all", b'{"n":1}', "application/json"),
        Part("all", b'{"n":2}', "application/json"),
    ]
    assert plain(found[5:]) == [("words", "a"), ("words", "b")]


@pytest.mark.parametrize(
    ("version", "schema"),
    [
        ("3.0.3", {"type": "string", "format": "binary"}),
        ("3.1.0", {"type": "string", "contentMediaType": "application/octet-stream"}),
        ("3.1.0", {"type": "string", "format": "binary"}),
    ],
)
def test_a_file_has_a_name_and_the_type_of_bytes(version, schema):
    body = described({"file": schema, "files": {"type": "array", "items": schema}})
    arguments = {"file": "a\r\nb\n", "files": ["one", "two"]}
    found = parts_of(plan(operation(body=body, media=MULTIPART), arguments, version=version))
    assert [(part.name, part.content) for part in found] == [
        ("file", b"a\r\nb\n"),
        ("files", b"one"),
        ("files", b"two"),
    ]
    # Servers take a part for a file only where it has a file's name.
    assert all(part.filename for part in found)
    assert {part.content_type for part in found} == {"application/octet-stream"}


def test_a_file_may_come_in_base64_with_a_name_and_a_type():
    data = bytes(range(256))
    encoded = base64.b64encode(data).decode()
    schema = {"type": "string", "format": "binary"}
    body = described({"file": schema, "more": {"type": "array", "items": schema}})
    whole = {"base64": encoded, "filename": 'a "b" é.png', "content_type": "image/png"}
    arguments = {"file": whole, "more": [{"base64": encoded}, {"text": "plain"}, "text"]}
    found = parts_of(plan(operation(body=body, media=MULTIPART), arguments))
    assert [part.content for part in found] == [data, data, b"plain", b"text"]
    assert found[0].content_type == "image/png"
    assert found[0].filename
    assert found[0].headers == ()
    described_operation = operation(body=schema, media="application/octet-stream")
    assert plan(described_operation, {"body": {"base64": encoded}}).content == data
    with pytest.raises(ValueError, match="base64"):
        plan(described_operation, {"body": {"base64": "a"}})


@pytest.mark.parametrize("key", ["filename", "content_type"])
def test_what_is_said_of_a_file_cannot_end_its_line(key):
    body = described({"file": {"type": "string", "format": "binary"}})
    given = {"file": {"text": "a", key: 'x"\r\nX-Admin: 1\r\n\r\nb'}}
    request = planned(one(operation(body=body, media=MULTIPART)), "POST /x", given)
    if isinstance(request, str):
        assert key in request or "file" in request
    else:
        (part,) = parts_of(request)
        assert part.content == b"a"
        assert part.headers == ()


def test_the_encoding_says_the_type_of_a_part():
    body = described(
        {
            "image": {"type": "string", "format": "binary"},
            "table": STRING,
            "record": described({"a": STRING}),
        }
    )
    encoding = {
        "image": {
            "contentType": "image/png, image/jpeg",
            "headers": {"X-Rate-Limit-Limit": {"schema": {"type": "integer"}}},
        },
        "table": {"contentType": "text/csv; charset=utf-8"},
        "record": {"contentType": "application/vnd.record+json"},
    }
    arguments = {"image": "png", "table": "a,b", "record": {"a": "x"}}
    described_operation = operation(body=body, media=MULTIPART, encoding=encoding)
    found = parts_of(plan(described_operation, arguments, version="3.0.3"))
    assert [(part.name, part.content, part.content_type) for part in found] == [
        ("image", b"png", "image/png"),
        ("table", b"a,b", "text/csv; charset=utf-8"),
        ("record", b'{"a":"x"}', "application/vnd.record+json"),
    ]


def test_a_value_cannot_end_its_part():
    described_operation = operation(body=described({"a": STRING, "b": STRING}), media=MULTIPART)
    value = "x"
    # A boundary that is fixed, or that follows from the values, would be found this way.
    for _ in range(3):
        request = plan(described_operation, {"a": value, "b": "end"})
        assert plain(parts_of(request)) == [("a", value), ("b", "end")]
        boundary = header(request, "content-type")[0].partition("boundary=")[2].strip('"')
        value = f'\r\n--{boundary}\r\ncontent-disposition: form-data; name="admin"\r\n\r\n1'
        value += f"\r\n--{boundary}--\r\n"


def test_a_name_cannot_end_its_header():
    name = 'a"; filename="x\r\nX-Admin: 1'
    described_operation = operation(body=described({name: STRING}), media=MULTIPART)
    (part,) = parts_of(plan(described_operation, {name: "v"}))
    assert part.content == b"v"
    assert part.filename is None
    assert part.headers == ()


def test_nothing_of_a_multipart_body_is_percent_encoded():
    found = parts_of(
        plan(operation(body=described({"a": STRING}), media=MULTIPART), {"a": "1 & 2=é%"})
    )
    assert plain(found) == [("a", "1 & 2=é%")]


# Text and bytes
@pytest.mark.parametrize(
    ("media", "schema"),
    [
        ("text/plain", STRING),
        ("text/csv", STRING),
        ("application/xml", STRING),
        ("application/octet-stream", {"type": "string", "format": "binary"}),
        ("application/octet-stream", {}),
        ("image/png", {}),
    ],
)
def test_text_and_bytes_are_sent_as_they_are(media, schema):
    request = plan(operation(body=schema, media=media), {"body": 'a,"b"\r\né'})
    assert request.content == 'a,"b"\r\né'.encode()
    assert header(request, "content-type")[0].partition(";")[0] == media


# Problems
def test_arguments_are_checked_before_anything_is_planned():
    body = described({"name": STRING, "age": {"type": "integer"}}, required=["name"])
    described_operation = operation(parameter("id", "path", {"type": "integer"}), body=body)
    with pytest.raises(ValueError, match="must be an integer") as caught:
        plan(described_operation, {"id": "x", "age": 1.5, "nmae": "Rex"}, path="/{id}")
    message = str(caught.value)
    for word in ("id", "age", "nmae", "name"):
        assert word in message


def test_an_unknown_operation_names_the_nearest():
    with pytest.raises(CallslipError, match=r"POST /pets"):
        one({}, path="/pets").request("POST /pet", {})


# Bodies of which the document says little
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"allOf": [{"type": "object"}]},
        {"$ref": "#/components/schemas/Free"},
    ],
)
def test_an_object_of_which_nothing_is_said_is_given_whole(schema):
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    components = {"schemas": {"Free": {"type": "object"}}}
    request = plan(operation, {"body": {"a": [1], "b": {}}}, components=components)
    assert json.loads(request.content) == {"a": [1], "b": {}}


def test_what_is_required_is_a_property_though_nobody_describes_it():
    schema = {"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}}
    operation = {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}
    }
    assert json.loads(plan(operation, {"a": [1], "b": "x"}).content) == {"a": [1], "b": "x"}
    with pytest.raises(ValueError, match="missing required argument 'a'"):
        plan(operation, {"b": "x"})


def test_a_property_that_is_described_twice_keeps_both_descriptions():
    kind = {"type": "object", "properties": {"k": {"type": "string", "enum": ["cat", "dog"]}}}
    schema = {"allOf": [kind, {"type": "object", "properties": {"k": {"description": "kind"}}}]}
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    assert json.loads(plan(operation, {"body": {"k": "cat"}}).content) == {"k": "cat"}
    with pytest.raises(ValueError, match="'body.k' must be one of"):
        plan(operation, {"body": {"k": "fox"}})


@pytest.mark.parametrize(
    "media", ["text/xml", "application/xml", "application/x-ndjson", "application/soap+xml"]
)
def test_a_body_that_is_no_json_is_written_by_the_model(media):
    schema = {"type": "object", "properties": {"Name": {"type": "string"}}}
    operation = {"requestBody": {"required": True, "content": {media: {"schema": schema}}}}
    request = plan(operation, {"body": "<Name>n</Name>"})
    assert (header(request, "content-type"), request.content) == ([media], b"<Name>n</Name>")
    with pytest.raises(ValueError, match="'body' must be a string"):
        plan(operation, {"body": {"Name": "n"}})


def test_a_part_that_says_only_its_media_type_is_a_file():
    schema = {"type": "object", "properties": {"photo": {"contentMediaType": "image/png"}}}
    operation = {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}}}
    request = plan(operation, {"photo": {"base64": "AAEC", "filename": "a.png"}})
    assert b'filename="a.png"' in request.content
    assert b"\r\n\r\n\x00\x01\x02\r\n" in request.content


def test_a_server_may_take_what_fits_several_branches():
    video = {"type": "object", "required": ["src"], "properties": {"src": {"type": "string"}}}
    schema = {"type": "object", "properties": {"asset": {"oneOf": [video, {"type": "object"}]}}}
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    assert json.loads(plan(operation, {"asset": {"src": "x"}}).content) == {"asset": {"src": "x"}}
