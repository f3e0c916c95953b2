"""The 25 operations of a document that shows every style, sent to a server that echoes.

The document is `parameters-style` of `@readme/oas-examples`; what is expected is written from the
specification's tables.
"""

import json
from pathlib import Path

import httpx
import pytest

from callslip import OpenAPI
from documents import header, value_of
from echo import serving
from form_parts import Part, parts, plain

FILE = Path(__file__).parents[2] / "data" / "openapi" / "parameters-style.json"

ARGUMENTS = {
    "primitive": "blue",
    "array": ["blue", "black", "brown"],
    "object": {"name": "Rex", "description": "dog"},
}
FORM = {**ARGUMENTS, "object": {"foo": "1", "bar": "2"}}

# Operation, then its target on the wire.
TARGETS = {
    "cookies_standard": "/cookies",
    # What follows `#` only tells the operations of the document apart: no server ever sees it.
    "cookies_form_nonExploded": "/cookies",
    "cookies_form_exploded": "/cookies",
    "headers_standard": "/anything/headers",
    "headers_simple_nonExploded": "/anything/headers/simple",
    "headers_simple_exploded": "/anything/headers/simple",
    "paths_standard": "/anything/path/blue/blue,black,brown/name,Rex,description,dog",
    "paths_matrix_nonExploded": (
        "/anything/path/matrix/;primitive=blue/;array=blue,black,brown"
        "/;object=name,Rex,description,dog"
    ),
    "paths_matrix_exploded": (
        "/anything/path/matrix/;primitive=blue/;array=blue;array=black;array=brown"
        "/;name=Rex;description=dog"
    ),
    "paths_label_nonExploded": (
        "/anything/path/label/.blue/.blue,black,brown/.name,Rex,description,dog"
    ),
    "paths_label_exploded": (
        "/anything/path/label/.blue/.blue.black.brown/.name=Rex.description=dog"
    ),
    "paths_simple_nonExploded": (
        "/anything/path/simple/blue/blue,black,brown/name,Rex,description,dog"
    ),
    "paths_simple_exploded": "/anything/path/simple/blue/blue,black,brown/name=Rex,description=dog",
    "query_standard": (
        "/anything/query?primitive=blue&array=blue&array=black&array=brown&name=Rex&description=dog"
    ),
    "query_form_nonExploded": (
        "/anything/query/form?primitive=blue&array=blue,black,brown&object=name,Rex,description,dog"
    ),
    "query_form_exploded": (
        "/anything/query/form?primitive=blue&array=blue&array=black&array=brown"
        "&name=Rex&description=dog"
    ),
    "query_spaceDelimited_nonExploded": (
        "/anything/query/spaceDelimited?array=blue%20black%20brown"
        "&object=name%20Rex%20description%20dog"
    ),
    "query_pipeDelimited_nonExploded": (
        "/anything/query/pipeDelimited?array=blue%7Cblack%7Cbrown"
        "&object=name%7CRex%7Cdescription%7Cdog"
    ),
    "query_deepObject_nonExploded": (
        "/anything/query/deepObject?object%5Bname%5D=Rex&object%5Bdescription%5D=dog"
    ),
}
COOKIES = {
    "cookies_standard": (
        "primitive=blue; array=blue; array=black; array=brown; name=Rex; description=dog"
    ),
    "cookies_form_nonExploded": (
        "primitive=blue; array=blue,black,brown; object=name,Rex,description,dog"
    ),
    "cookies_form_exploded": (
        "primitive=blue; array=blue; array=black; array=brown; name=Rex; description=dog"
    ),
}
HEADERS = {
    "headers_standard": ("blue", "blue,black,brown", "name,Rex,description,dog"),
    "headers_simple_nonExploded": ("blue", "blue,black,brown", "name,Rex,description,dog"),
    "headers_simple_exploded": ("blue", "blue,black,brown", "name=Rex,description=dog"),
}
# Style and explode of a part are those of a query, but nothing is percent-encoded.
FORMS = {
    "formData_form_nonExploded": (
        "POST /anything/form-data/form",
        [("primitive", "blue"), ("array", "blue,black,brown"), ("object", "foo,1,bar,2")],
    ),
    "form_data_form_exploded": (
        "PUT /anything/form-data/form",
        [
            ("primitive", "blue"),
            ("array", "blue"),
            ("array", "black"),
            ("array", "brown"),
            ("foo", "1"),
            ("bar", "2"),
        ],
    ),
    "formData_spaceDelimited_nonExploded": (
        "GET /anything/form-data/spaceDelimited",
        [("array", "blue black brown"), ("object", "foo 1 bar 2")],
    ),
    "form_data_pipeDelimited_nonExploded": (
        "POST /anything/form-data/pipeDelimited",
        [("array", "blue|black|brown"), ("object", "foo|1|bar|2")],
    ),
    # An array, and what is neither array nor object, are undefined here: the nearest is sent.
    "form_data_deepObject_exploded": (
        "POST /anything/form-data/deepObject",
        [
            ("primitive", "blue"),
            ("array[0]", "blue"),
            ("array[1]", "black"),
            ("array[2]", "brown"),
            ("object[foo]", "1"),
            ("object[bar]", "2"),
        ],
    ),
}
STANDARD_FORM = "formData_standard"


@pytest.fixture(scope="module")
def server():
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def api(server):
    with httpx.Client(base_url=server.url) as client:
        yield OpenAPI.from_file(FILE, client=client)


def called(api, server, operation_id, arguments):
    """What the server receives of a call with those of the arguments that the operation has."""
    name = next(
        f"{method.upper()} {path}"
        for path, item in json.loads(FILE.read_text(encoding="utf-8"))["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, dict) and operation.get("operationId") == operation_id
    )
    known = api.tools[name].parameters["properties"]
    value_of(api, name, {key: value for key, value in arguments.items() if key in known})
    return server.last


def test_all_operations_are_there(api):
    assert len(api.tools) == 25
    shown = {*TARGETS, *FORMS, STANDARD_FORM}
    document = json.loads(FILE.read_text(encoding="utf-8"))
    operations = [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict) and "operationId" in operation
    ]
    assert len(operations) == 25
    assert set(operations) == shown


@pytest.mark.parametrize("operation_id", TARGETS)
def test_parameters(api, server, operation_id):
    received = called(api, server, operation_id, ARGUMENTS)
    assert received.target == TARGETS[operation_id]
    cookies = [COOKIES[operation_id]] if operation_id in COOKIES else []
    assert received.header("cookie") == cookies
    headers = [received.header(name) for name in ARGUMENTS]
    assert headers == [[value] for value in HEADERS.get(operation_id, ())] or headers == [[]] * 3
    assert (operation_id in HEADERS) == (headers != [[]] * 3)
    assert received.body == b""


@pytest.mark.parametrize("operation_id", FORMS)
def test_forms_with_styles(api, server, operation_id):
    received = called(api, server, operation_id, FORM)
    operation, wanted = FORMS[operation_id]
    assert f"{received.method} {received.target}" == operation
    assert plain(parts(received.header("content-type")[0], received.body)) == wanted


def test_a_form_without_styles(api, server):
    received = called(api, server, STANDARD_FORM, FORM)
    assert (received.method, received.target) == ("POST", "/anything/form-data")
    found = parts(received.header("content-type")[0], received.body)
    assert plain(found[:4]) == [
        ("primitive", "blue"),
        ("array", "blue"),
        ("array", "black"),
        ("array", "brown"),
    ]
    assert found[4:] == [Part("object", b'{"foo":"1","bar":"2"}', "application/json")]


@pytest.mark.parametrize("operation_id", [*TARGETS, *FORMS, STANDARD_FORM])
def test_without_arguments_nothing_is_added(api, operation_id):
    arguments = {} if "paths" not in operation_id else ARGUMENTS
    request = api.request(operation_id, arguments)
    assert "?" not in request.url
    assert header(request, "cookie") == []
    assert request.content == b""
