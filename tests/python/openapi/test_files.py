"""Documents in several files and documents at fault: what is read, left out and told at load."""

import json
import logging
from typing import ClassVar

import pytest

from callslip import Agent, OpenAPI, ScriptedModel, ToolError
from scripted import act, finish

HEAD = 'openapi: 3.1.0\ninfo: {title: t, version: "1"}\nservers: [{url: "https://a.example"}]\n'
MAIN = (
    HEAD
    + """
paths:
  /users/{id}:
    $ref: paths/users.yaml
  /pets:
    post:
      parameters: [{$ref: "common.json#/parameters/limit"}]
      requestBody:
        content: {application/json: {schema: {$ref: "schemas/pet.yaml#/Pet"}}}
components:
  schemas:
    Tag: {type: string, maxLength: 5}
"""
)
FILES = {
    "paths/users.yaml": """
delete:
  parameters:
    - {name: id, in: path, required: true, schema: {type: integer}}
    - {$ref: "../common.json#/parameters/filter"}
""",
    "common.json": json.dumps(
        {
            "parameters": {
                "limit": {
                    "name": "limit",
                    "in": "query",
                    "required": True,
                    "schema": {"type": "integer"},
                },
                "filter": {"$ref": "#/more/filter"},
            },
            "more": {
                "filter": {
                    "name": "filter",
                    "in": "query",
                    "required": True,
                    "schema": {"type": "string"},
                }
            },
        }
    ),
    "schemas/pet.yaml": """
Pet:
  type: object
  required: [name, tag]
  properties:
    name: {type: string}
    tag: {$ref: "../api.yaml#/components/schemas/Tag"}
    friend: {$ref: "#/Pet"}
""",
}


def written(folder, main=MAIN, files=FILES):
    for name, text in {"api.yaml": main, **files}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return folder / "api.yaml"


def arguments(api, name):
    parameters = json.loads(api.document.spec(name))["parameters"]
    return set(parameters["properties"]), set(parameters["required"])


def test_files_beside_a_document_are_read(tmp_path):
    api = OpenAPI.from_file(written(tmp_path))
    assert arguments(api, "DELETE /users/{id}") == ({"id", "filter"}, {"id", "filter"})
    assert arguments(api, "POST /pets")[0] == {"limit", "name", "tag", "friend"}
    planned = api.request("POST /pets", {"limit": 1, "name": "Rex", "tag": "dog"})
    assert planned.url == "https://a.example/pets?limit=1"
    with pytest.raises(ValueError, match="tag"):
        api.request("POST /pets", {"limit": 1, "name": "Rex", "tag": "too long"})
    with pytest.raises(ValueError, match="friend"):
        api.request("POST /pets", {"limit": 1, "name": "Rex", "tag": "a", "friend": {"name": 5}})


def test_a_chosen_part_keeps_its_files(tmp_path):
    api = OpenAPI.from_file(written(tmp_path), include=["POST /pets"])
    assert arguments(api, "POST /pets")[0] == {"limit", "name", "tag", "friend"}
    assert "paths/users.yaml" not in api.document_json


@pytest.mark.parametrize(
    "target",
    [
        "../outside.yaml#/x",
        "/etc/passwd#/x",
        "https://e.example/x.yaml#/x",
        "gone.yaml#/x",
        "link.yaml#/x",
        "#/components/parameters/gone",
        "common.json#/parameters/gone",
    ],
)
def test_what_is_elsewhere_is_left_out_and_told(tmp_path, caplog, target):
    outside = {"x": {"name": "stolen", "in": "query", "schema": {}}}
    (tmp_path / "outside.yaml").write_text(json.dumps(outside))
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    main = MAIN + "x-more: 1\n"
    main = main.replace("common.json#/parameters/limit", target)
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_file(written(folder, main))
    assert list(api.tools) == ["DELETE /users/{id}"]
    assert "'POST /pets' refers to" in caplog.text
    assert target.rpartition("/")[2] in caplog.text
    assert "stolen" not in api.document_json


def document(reference):
    about = {"title": "t", "version": "1"}
    broken = {"delete": {"parameters": [{"$ref": reference}]}}
    paths = {"/a": broken, "/b": {"get": {}}}
    return {
        "openapi": "3.1.0",
        "info": about,
        "servers": [{"url": "https://a.example"}],
        "paths": paths,
    }


def test_a_document_alone_names_what_it_lacks(caplog):
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(document("parameters.yaml#/filter"))
    assert list(api.tools) == ["GET /b"]
    assert "'DELETE /a' refers to 'parameters.yaml#/filter'" in caplog.text
    assert "from_file" in caplog.text
    with pytest.raises(ToolError, match=r"no operation is left.*parameters\.yaml"):
        OpenAPI.from_dict(document("parameters.yaml#/filter"), include=["DELETE /a"])


def test_a_reference_deep_in_a_body_counts(caplog):
    made = document("#/components/parameters/ok")
    made["components"] = {
        "parameters": {
            "ok": {"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/A"}}
        },
        "schemas": {
            "A": {
                "type": "object",
                "properties": {"b": {"items": {"$ref": "#/components/schemas/B"}}},
            },
            "B": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/Gone"}]},
        },
    }
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(made)
    assert list(api.tools) == ["GET /b"]
    made["components"]["schemas"]["Gone"] = {"type": "integer"}
    assert len(OpenAPI.from_dict(made).tools) == 2


def test_a_path_that_stands_elsewhere_is_told(caplog):
    made = document("#/components/parameters/ok")
    made["components"] = {"parameters": {"ok": {"name": "q", "in": "query", "schema": {}}}}
    made["paths"]["/c"] = {"$ref": "paths/c.yaml"}
    with caplog.at_level(logging.WARNING):
        OpenAPI.from_dict(made)
    assert "'/c' refers to 'paths/c.yaml'" in caplog.text


def with_schema(schema, version="3.1.0"):
    parameters = [{"name": "q", "in": "query", "required": True, "schema": schema}]
    about = {"title": "t", "version": "1"}
    servers = [{"url": "https://a.example"}]
    paths = {"/x": {"get": {"parameters": parameters}}}
    return {"openapi": version, "info": about, "servers": servers, "paths": paths}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
def test_limits_by_a_flag_are_read(caplog, version):
    schema = {
        "type": "integer",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 9,
        "exclusiveMaximum": False,
    }
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(with_schema(schema, version))
    assert caplog.text == ""
    for value, fits in ((0, False), (1, True), (9, True), (10, False)):
        if fits:
            assert api.request("GET /x", {"q": value}).url.endswith(f"q={value}")
        else:
            with pytest.raises(ValueError, match="q"):
                api.request("GET /x", {"q": value})


def test_a_recursive_anchor_is_no_fault(caplog):
    schema = {
        "type": "object",
        "$recursiveAnchor": True,
        "properties": {"a": {"$recursiveRef": "#"}},
    }
    made = with_schema({"type": "string"})
    made["paths"]["/x"]["post"] = {
        "requestBody": {"content": {"application/json": {"schema": schema}}}
    }
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(made)
    assert caplog.text == ""
    assert api.request("POST /x", {"a": {"a": {}}}).content == b'{"a":{"a":{}}}'


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "pattern": "["}, "a regular expression as 'pattern'"),
        ({"type": "text"}, "a type of JSON as 'type'"),
        ({"type": "string", "minLength": "5"}, "a whole number from 0 as 'minLength'"),
        ({"type": "array", "items": {"type": "string", "pattern": "(?<"}}, "a regular expression"),
        (
            {"type": "object", "properties": {"a": {"required": True}}},
            "a list of names as 'required'",
        ),
        ({"enum": "a"}, "a list of values as 'enum'"),
    ],
)
def test_a_schema_at_fault_is_told_when_it_is_loaded(caplog, schema, words):
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(with_schema(schema))
    assert words in caplog.text
    assert "/x" in caplog.text
    assert list(api.tools) == ["GET /x"]


def test_a_property_that_is_named_like_a_keyword_is_none(caplog):
    named = {
        "pattern": {"type": "string"},
        "type": {"type": "string"},
        "required": {"type": "boolean"},
    }
    schema = {
        "type": "object",
        "properties": named,
        "example": {"pattern": "[", "schema": {"type": 5}},
    }
    with caplog.at_level(logging.WARNING):
        OpenAPI.from_dict(with_schema(schema))
    assert caplog.text == ""


SHARED = (
    HEAD
    + """
x-shared: &shared
  - {name: a, in: query, schema: {type: string}}
  - {name: b, in: query, schema: {type: string}}
paths:
"""
)


def test_many_operations_share_an_anchor(tmp_path):
    paths = "".join(f"  /p{at}:\n    get: {{parameters: *shared}}\n" for at in range(2_000))
    path = tmp_path / "api.yaml"
    path.write_text(SHARED + paths)
    api = OpenAPI.from_file(path)
    assert len(api.tools) == 2_000
    assert arguments_of(api, "GET /p1999") == {"a", "b"}


def arguments_of(api, name):
    return set(json.loads(api.document.spec(name))["parameters"]["properties"])


def test_anchors_that_expand_without_end_are_refused(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 12)]
    path = tmp_path / "api.yaml"
    path.write_text(HEAD + "\n".join(lines) + "\npaths: {}\n")
    with pytest.raises(ToolError, match="its anchors expand to more than 2000000 values"):
        OpenAPI.from_file(path)


def test_a_key_that_stands_twice_is_told(tmp_path, caplog):
    path = tmp_path / "api.yaml"
    path.write_text(HEAD + "paths:\n  /a: {get: {}}\n  /a: {post: {}}\n")
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_file(path)
    assert list(api.tools) == ["POST /a"]
    assert "a key stands twice, and the last counts" in caplog.text


def test_an_empty_value_in_a_path_is_refused_with_its_schema():
    made = with_schema({"type": "string"})
    made["paths"] = {
        "/x/{id}": {
            "get": {
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ]
            }
        }
    }
    api = OpenAPI.from_dict(made)
    assert (
        json.loads(api.document.spec("GET /x/{id}"))["parameters"]["properties"]["id"]["minLength"]
        == 1
    )
    result = Agent(ScriptedModel([act("GET /x/{id}", id=""), finish()]), tools=api).run_sync("go")
    assert result.run.violations == 1


class Echo:
    """Answers with what it is sent, and a link."""

    def __init__(self):
        self.seen = []

    def request(self, method, url, *, headers, content):
        self.seen.append((url, {name.decode().lower(): value.decode() for name, value in headers}))

        class Response:
            status_code = 200
            headers: ClassVar[dict[str, str]] = {
                "content-type": "application/json",
                "Link": '<https://a.example/x?page=2>; rel="next"',
            }
            content = b"[1.50]"

        return Response()


def test_a_link_to_the_next_page_is_shown():
    api = OpenAPI.from_dict(with_schema({"type": "string"}), client=Echo())
    result = Agent(ScriptedModel([act("GET /x", q="a"), finish()]), tools=api).run_sync("go")
    link = '<https://a.example/x?page=2>; rel="next"'
    assert result.tickets[0].result == {"body": [1.5], "link": link}


@pytest.mark.parametrize("trusted", [(), ("b.example",)])
def test_secrets_go_to_other_servers_only_where_that_is_allowed(caplog, trusted):
    made = with_schema({"type": "string"})
    made["paths"]["/up"] = {"get": {"servers": [{"url": "https://b.example"}]}}
    made["components"] = {"securitySchemes": {"t": {"type": "http", "scheme": "bearer"}}}
    client = Echo()
    with caplog.at_level(logging.WARNING):
        api = OpenAPI.from_dict(
            made,
            client=client,
            auth={"t": "s3cret-token"},
            headers={"X-Own": "own-secret"},
            trusted_hosts=trusted,
        )
    calls = [act("GET /x", q="a"), act("GET /up"), finish()]
    Agent(ScriptedModel(calls), tools=api).run_sync("go")
    (_, first), (url, second) = client.seen
    assert (first["authorization"], first["x-own"]) == ("Bearer s3cret-token", "own-secret")
    assert url == "https://b.example/up"
    assert ("authorization" in second, "x-own" in second) == (bool(trusted), bool(trusted))
    assert (
        "no secret is sent to operations with a server of their own" in caplog.text
    ) is not bool(trusted)


def test_the_index_of_one_group_names_operations():
    paths = {f"/things/number-{at}": {"get": {"tags": ["all"]}} for at in range(400)}
    made = {**with_schema({}), "paths": paths}
    api = OpenAPI.from_dict(made)
    prompt = Agent(ScriptedModel([]), tools=api, protocol=_small()).system_prompt
    assert prompt.count("GET /things/number-") > 50


def _small():
    from callslip import ReactProtocol

    return ReactProtocol(tool_tokens=1_000)
