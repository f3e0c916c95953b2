"""Documents: YAML and JSON, 3.0 and 3.1, references, servers, filters, and those at fault."""

import json
from pathlib import Path

import httpx
import pytest

from callslip import CallslipError, OpenAPI, ToolError, UsageError
from documents import SERVER, document, header, one, operation, parameter, plan, planned, value_of
from echo import Answer, serving

DATA = Path(__file__).parents[2] / "data" / "openapi"
SHOP = DATA / "shop.json"
MUSEUM = DATA / "museum.yaml"
WITH_SERVER = {"server": "http://shop.test"}


@pytest.fixture(scope="module")
def museum():
    return OpenAPI.from_file(MUSEUM)


@pytest.fixture
def server():
    with serving() as server:
        yield server


# What is in a document
def test_operations_in_their_order(museum):
    assert list(museum.tools) == [
        "GET /hours",
        "GET /rooms/{room}/{shelf}",
        "GET /tickets",
        "POST /tickets",
    ]
    assert [tool.name for tool in museum.as_tools()] == list(museum.tools)


def test_yaml_dates_and_numbers_are_text_where_json_would_have_text(museum):
    schema = museum.tools["GET /hours"].parameters["properties"]["day"]
    assert schema["default"] == "2024-01-31"


def test_parameters_of_a_path_are_overridden_by_those_of_its_operation(museum):
    schema = museum.tools["GET /hours"].parameters
    assert list(schema["properties"]) == ["day", "X-Locale"]
    assert schema["required"] == ["X-Locale"]


def test_a_path_parameter_that_is_used_but_not_declared_is_a_string(museum):
    schema = museum.tools["GET /rooms/{room}/{shelf}"].parameters
    assert schema["properties"]["shelf"]["type"] == "string"
    assert schema["required"] == ["room", "shelf"]
    request = museum.request("shelf", {"room": 3, "shelf": "top left"})
    assert request.url == "https://eu.museum.test:8443/v1/rooms/3/top%20left"


def test_unions_with_null():
    museum = OpenAPI.from_file(MUSEUM, server="https://shop.museum.test")
    order = {"kind": "day", "count": 2, "guide": None}
    assert json.loads(museum.request("buy", order).content) == order
    guide = {"name": "Ada", "friends": [{"name": "Bo", "friends": []}]}
    order["guide"] = guide
    assert json.loads(museum.request("buy", order).content)["guide"] == guide
    for wrong in ({"kind": "year", "count": 2}, {"kind": "day", "count": 0}):
        with pytest.raises(ValueError, match="'(kind|count)'"):
            museum.request("buy", wrong)


def test_nullable_and_exclusive_limits_of_3_0():
    api = OpenAPI.from_file(SHOP, **WITH_SERVER)
    assert api.request("goods", {"max": 99.5, "colour": "red"}).url == (
        "http://shop.test/goods?max=99.5&colour=red"
    )
    assert api.request("goods", {"colour": None}).url == "http://shop.test/goods"
    for wrong in ({"max": 100}, {"colour": "green"}):
        with pytest.raises(ValueError, match="'(max|colour)'"):
            api.request("goods", wrong)
    made = api.request("addGood", {"name": "a", "price": None})
    assert json.loads(made.content) == {"name": "a", "price": None}


def test_only_webhooks_give_no_tools():
    api = OpenAPI.from_dict(
        {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "webhooks": {"closed": {"post": {"operationId": "closed"}}},
        }
    )
    assert dict(api.tools) == {}


def test_a_document_is_not_changed():
    given = document({"/x": {"post": operation(parameter("a", "query"), body={"type": "object"})}})
    before = json.dumps(given)
    OpenAPI.from_dict(given).request("POST /x", {"a": "1", "body": {}})
    assert json.dumps(given) == before


# References
def test_chains_of_references():
    components = {
        "parameters": {
            "a": {"$ref": "#/components/parameters/b"},
            "b": {"$ref": "#/components/parameters/~0odd~1name%20"},
            "~odd/name ": parameter("q", "query", {"$ref": "#/components/schemas/one"}),
        },
        "schemas": {
            "one": {"$ref": "#/components/schemas/two"},
            "two": {"$ref": "#/components/schemas/three"},
            "three": {"type": "integer"},
        },
    }
    described_operation = operation({"$ref": "#/components/parameters/a"})
    api = one(described_operation, components=components)
    assert api.request("POST /x", {"q": 3}).url == f"{SERVER}/x?q=3"
    with pytest.raises(ValueError, match="'q' must be an integer"):
        api.request("POST /x", {"q": "three"})


@pytest.mark.parametrize(
    "schemas",
    [
        {"a": {"$ref": "#/components/schemas/a"}},
        {"a": {"$ref": "#/components/schemas/b"}, "b": {"$ref": "#/components/schemas/a"}},
        {"a": {"allOf": [{"$ref": "#/components/schemas/a"}]}},
        {"a": {"anyOf": [{"$ref": "#/components/schemas/a"}, {"type": "string"}]}},
        {"a": {"$ref": "#/components/schemas/missing"}},
        {"a": {"$ref": "other.json#/a"}},
        {"a": {"$ref": "https://example.test/a.json"}},
        {"a": {"$ref": "#a"}},
        {"a": {"$ref": 5}},
        {"a": {"$ref": "#/components/schemas/%ZZ"}},
        {"a": {"properties": {"$ref": {"type": "string"}}}},
        {"a": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/a"}}}},
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_references_in_circles_and_into_nothing_do_no_harm(version, schemas):
    target = str(schemas["a"].get("$ref", "#/components/schemas/a"))
    leads_nowhere = target.removeprefix("#/components/schemas/") not in schemas and target != "5"
    reference = {"$ref": "#/components/schemas/a"}
    described_operation = operation(parameter("q", "query", reference), body=reference)
    components = {"schemas": schemas}
    if leads_nowhere:
        with pytest.raises(ToolError, match="'POST /x' refers to"):
            one(described_operation, version=version, components=components)
        return
    api = one(described_operation, version=version, components=components)
    # It may be refused, in words, or sent; it may neither crash nor hang.
    assert planned(api, "POST /x", {"q": "x"})


@pytest.mark.parametrize(
    "node",
    [None, True, 5, "text", [], [None], {"get": None}, {"get": 5}, {"parameters": 5}, {"get": []}],
)
def test_nodes_of_other_kinds_are_passed_over(node):
    api = OpenAPI.from_dict(document({"/odd": node, "/x": {"get": {}}}))
    assert list(api.tools) == ["GET /x"]


@pytest.mark.parametrize(
    "part",
    [
        {"parameters": None},
        {"parameters": {}},
        {"parameters": [None, 5, {}, {"name": "a"}, {"in": "query"}, {"name": 1, "in": 2}]},
        {"parameters": [{"name": "a", "in": "nowhere", "schema": {}}]},
        {"parameters": [{"name": "a", "in": "query", "schema": None}]},
        {"parameters": [{"name": "a", "in": "query", "style": "odd", "explode": "yes"}]},
        {"parameters": [{"name": "a", "in": "query", "content": {}}]},
        {"requestBody": None},
        {"requestBody": {"content": None}},
        {"requestBody": {"content": {}}},
        {"requestBody": {"content": {"application/json": None}}},
        {"requestBody": {"content": {"": {"schema": {}}}}},
        {"requestBody": {"content": {"application/json": {"schema": None}}}},
        {"requestBody": {"content": {"application/json": {"schema": {"type": 5}}}}},
        {"requestBody": {"content": {"application/json": {"schema": {"properties": []}}}}},
        {"requestBody": {"content": {"multipart/form-data": {"schema": {}, "encoding": []}}}},
        {"servers": None},
        {"security": None},
        {"security": [{"unknown": []}]},
        {"responses": None},
        {"responses": {"200": None}},
        {"tags": 5, "summary": 5, "description": [], "operationId": 5},
    ],
)
def test_parts_of_other_kinds_do_no_harm(part):
    api = one(part)
    assert list(api.tools) == ["POST /x"]
    json.dumps(api.tools["POST /x"].parameters)
    assert planned(api, "POST /x", {})


@pytest.mark.parametrize("servers", [[{}], [{"url": 5}], [{"url": ""}], [{"url": "/"}], []])
def test_servers_that_name_none(servers):
    with pytest.raises(ToolError) as caught:
        one({}, servers=servers)
    assert str(caught.value) == (
        "the document names no server: pass server='https://…', or a client with a base_url"
    )


def test_schemas_that_are_booleans():
    described_operation = operation(
        parameter("q", "query", True), body={"additionalProperties": True}
    )
    request = plan(described_operation, {"q": "x", "body": {"any": 1}})
    assert (request.url, request.content) == (f"{SERVER}/x?q=x", b'{"any":1}')


def test_a_pattern_of_another_engine_is_no_reason_to_refuse_a_call():
    schema = {"type": "string", "pattern": r"^[\w-.]+\Z", "minLength": 2}
    body = {"type": "object", "required": ["a", "a", 0], "properties": {"a": schema}}
    api = one(operation(parameter("q", "query", schema), body=body))
    assert api.request("POST /x", {"q": "ab", "a": "cd"}).url == f"{SERVER}/x?q=ab"
    with pytest.raises(ValueError, match="'a' must have at least 2") as caught:
        api.request("POST /x", {"q": "a", "a": "b"})
    assert "'q' must have at least 2" in str(caught.value)


def test_a_document_that_is_nested_deeply():
    schema = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    assert planned(one(operation(body=schema)), "POST /x", {"a": {}})


# Servers
# Without quotes YAML makes a number of a port or a version.
VARIABLES = {"s": {"default": "https"}, "v": {"default": 2}}


@pytest.mark.parametrize(
    ("servers", "option", "url"),
    [
        ([{"url": "https://a.test"}, {"url": "https://b.test"}], None, "https://a.test/x"),
        ([{"url": "https://a.test/"}], None, "https://a.test/x"),
        ([{"url": "https://a.test/v1/"}], None, "https://a.test/v1/x"),
        ([{"url": "{s}://a.test/{v}", "variables": VARIABLES}], None, "https://a.test/2/x"),
        ([{"url": "https://a.test"}], "http://other.test/base", "http://other.test/base/x"),
        ([{"url": "/v1"}], "http://other.test", "http://other.test/x"),
        ([], "http://other.test/", "http://other.test/x"),
    ],
)
def test_servers(servers, option, url):
    options = {} if option is None else {"server": option}
    api = one({}, servers=servers, options=options)
    assert api.request("POST /x", {}).url == url


def test_servers_of_paths_and_operations_go_before_the_documents(museum):
    assert museum.request("bought", {}).url == "https://shop.museum.test/tickets"
    assert museum.request("hours", {"X-Locale": "no"}).url == (
        "https://eu.museum.test:8443/v1/hours"
    )


def test_the_clients_base_url_goes_before_the_documents(server):
    with httpx.Client(base_url=f"{server.url}/base/") as client:
        api = one({}, servers=["https://a.test/v1"], options={"client": client})
        value_of(api, "POST /x", {})
    assert server.last.target == "/base/x"


def test_a_relative_server_without_anything_to_join_is_told():
    with pytest.raises(CallslipError, match="server"):
        one({}, servers=["/v1"]).request("POST /x", {})


# Files and addresses
def test_a_document_from_an_address(server):
    texts = {"/api/shop.json": SHOP.read_bytes(), "/museum.yaml": MUSEUM.read_bytes()}
    server.answer = lambda received: (
        Answer(texts[received.path], content_type="application/octet-stream")
        if received.path in texts
        else Answer(b"[]")
    )
    api = OpenAPI.from_url(f"{server.url}/api/shop.json")
    # A relative server is relative to where the document came from.
    assert api.request("orders", {}).url == f"{server.url}/api/orders"
    assert value_of(api, "GET /orders", {}) == []
    assert len(OpenAPI.from_url(f"{server.url}/museum.yaml").tools) == 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"no", status=404, content_type="text/plain"), "404"),
        (Answer(b"<html>", content_type="text/html"), "JSON|YAML|object"),
        (Answer(b"[1]"), "object"),
    ],
)
def test_an_address_without_a_document(server, answer, said):
    server.answer = lambda _: answer
    with pytest.raises(ToolError, match=said):
        OpenAPI.from_url(f"{server.url}/openapi.json")


def test_an_address_where_nobody_answers(server):
    url = server.url
    server.server_close()
    with pytest.raises(ToolError, match="openapi.json"):
        OpenAPI.from_url(f"{url}/openapi.json", timeout=2.0)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", r"^a\.json: the OpenAPI document is not JSON: "),
        ("a.yaml", "a: [", r"^a\.yaml: the OpenAPI document is neither JSON nor YAML: "),
        ("a.yaml", "- 1", "object"),
        ("a.json", "[]", "object"),
        ("a.json", "5", "object"),
        ("a.json", '{"openapi": "3.1.0", "paths": []}', "'paths' must be an object"),
        ("a.json", '{"paths": {}}', "no field 'openapi'"),
        ("a.json", '{"openapi": "4.0.0"}', "4.0.0"),
        ("a.json", '{"openapi": "4.2.0", "paths": {}}', "4.2.0"),
        ("a.yaml", 'swagger: "2.0"\npaths: {}', "Swagger 2.0 is not supported: convert"),
        ("a.json", '{"swagger": "2.0"}', "swagger2openapi"),
        ("a.json", '{"openapi": "3.0.3", "paths": {"/a": NaN}}', "JSON"),
    ],
)
def test_documents_at_fault(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ToolError, match=said):
        OpenAPI.from_file(path)


def test_aliases_in_yaml_that_grow_without_bound_are_refused(tmp_path):
    lines = ["openapi: 3.1.0", "paths: {}", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 10):
        aliases = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(f"a{n}: &a{n} [{aliases}]")
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ToolError):
        OpenAPI.from_file(path)


# Filters
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"include": ["GET /goods"]}, ["goods"]),
        ({"include": ["/goods"]}, ["goods", "addGood"]),
        ({"include": ["/goods/*"]}, ["good", "dropGood"]),
        ({"include": ["/goods/**"]}, ["goods", "addGood", "good", "dropGood"]),
        ({"include": ["good*"]}, ["goods", "good"]),
        ({"include": ["/orders/*"]}, []),
        ({"include": ["/orders/**"]}, ["orders", "note"]),
        ({"include": ["/*/{id}/notes"]}, ["note"]),
        ({"include": ["GET /**"]}, ["goods", "good", "orders"]),
        ({"include": ["GET /orders", "DELETE /**"]}, ["dropGood", "orders"]),
        ({"tags": ["orders"]}, ["orders", "note"]),
        ({"tags": ["goods"], "include": ["/orders/**"]}, ["note"]),
        ({"tags": ["goods"], "include": ["GET /orders"]}, []),
        ({"read_only": True}, ["goods", "good", "orders"]),
        ({"read_only": True, "tags": ["goods"]}, ["goods", "good"]),
    ],
)
def test_filters(options, names):
    ids = {
        operation["operationId"]: f"{method.upper()} {path}"
        for path, item in json.loads(SHOP.read_text(encoding="utf-8"))["paths"].items()
        for method, operation in item.items()
    }
    if not names:
        with pytest.raises(UsageError, match="no operation"):
            OpenAPI.from_file(SHOP, **WITH_SERVER, **options)
        return
    api = OpenAPI.from_file(SHOP, **WITH_SERVER, **options)
    assert list(api.tools) == [ids[name] for name in names]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"include": "/goods"}, "include"),
        ({"include": 5}, "expected include as a list of texts: got 5"),
        ({"tags": "goods"}, "tags"),
        ({"tags": ["godos"]}, "goods"),
        ({"auth": "token"}, "auth"),
        ({"auth": {"unknown": "token"}}, "unknown"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": None}, "expected timeout to be a number of seconds above 0: got None"),
        ({"handlers": 5}, "expected handlers as a dict of functions by operation: got int"),
        ({"server": 5}, "expected server to be a URL: got 5"),
        ({"server": "nowhere"}, "expected server to be a URL: got 'nowhere'"),
        ({"max_response_bytes": 0}, "max_response_bytes"),
        ({"client": object()}, "client"),
    ],
)
def test_options_at_fault_are_told_at_once(options, said):
    with pytest.raises(UsageError, match=said):
        OpenAPI.from_file(SHOP, **{**WITH_SERVER, **options})


def test_every_tool_says_whether_it_only_reads():
    api = OpenAPI.from_file(SHOP, **WITH_SERVER)
    effects = {name: (tool.readonly, tool.effect) for name, tool in api.tools.items()}
    assert effects == {
        "GET /goods": (True, "pure"),
        "POST /goods": (False, "once"),
        "GET /goods/{id}": (True, "pure"),
        "DELETE /goods/{id}": (False, "idempotent"),
        "GET /orders": (True, "pure"),
        "PUT /orders/{id}/notes": (False, "idempotent"),
    }


def test_the_client_is_asked_for_json():
    request = OpenAPI.from_file(SHOP, **WITH_SERVER).request("goods", {})
    assert all("application/json" in value for value in header(request, "accept"))


def test_yaml_is_of_version_1_2(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "openapi: 3.0\n"
        "servers: [{url: http://api.test}]\n"
        "paths: {/x: {get: {parameters: [\n"
        "  {name: y, in: query, required: true, schema: {type: string, enum: [yes, no, on]}}]}}}\n"
    )
    request = OpenAPI.from_file(path).request("GET /x", {"y": "no"})
    assert request.url == "http://api.test/x?y=no"


def test_yaml_may_be_as_long_as_it_is(tmp_path):
    paths = "".join(
        f"  /p{number}: {{get: {{tags: [a, b], parameters: []}}}}\n" for number in range(40_000)
    )
    path = tmp_path / "a.yaml"
    path.write_text(f"openapi: 3.1.0\nservers: [{{url: 'http://api.test'}}]\npaths:\n{paths}")
    assert len(OpenAPI.from_file(path).tools) == 40_000


def test_what_a_security_scheme_says_is_no_argument():
    def keyed(place):
        return {"type": "apiKey", "in": place, "name": "X-Key"}

    for place in ("header", "query", "cookie"):
        api = OpenAPI.from_dict(
            {
                "openapi": "3.1.0",
                "servers": [{"url": "http://api.test"}],
                "components": {"securitySchemes": {"key": keyed(place)}},
                "security": [{"key": []}],
                "paths": {
                    "/x": {
                        "get": {
                            "parameters": [{"name": "X-Key", "in": place, "required": True}],
                        }
                    }
                },
            }
        )
        assert api.tools["GET /x"].parameters["properties"] == {}


def test_a_lone_star_is_every_operation():
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "http://api.test"}],
        "paths": {"/a": {"post": {}}, "/a/{id}": {"delete": {"operationId": "drop"}}},
    }
    api = OpenAPI.from_dict(document, needs_approval=["*"])
    assert [tool.needs_approval for tool in api.as_tools()] == [True, True]


def test_parameters_of_a_path_that_nobody_declares_are_warned_of(caplog):
    get = {"parameters": [parameter("id", "path"), parameter("q", "query")]}
    OpenAPI.from_dict(document({"/pets/{id}/{part}": {"get": get}, "/a/{id}?q={q}": {"get": get}}))
    (record,) = caplog.records
    assert record.name == "callslip.openapi"
    assert record.getMessage().endswith("as required strings: part of 'GET /pets/{id}/{part}'")
