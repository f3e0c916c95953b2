"""OpenAPI documents with a Python handler for each operation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from callslip import Context, OpenAPI, ToolError, UsageError, tool
from callslip.tools._toolbox import Toolbox
from tool_calls import kind_and_text

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = Context(run_id="r", ticket_id="T1", tool="f")

PETS: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets": {
            "parameters": [{"name": "X-Trace", "in": "header", "schema": {"type": "string"}}],
            "get": {
                "operationId": "listPets",
                "parameters": [{"name": "in", "in": "query", "schema": {"type": "string"}}],
            },
            "post": {
                "operationId": "addPet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    },
                },
            },
        },
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
            },
            "put": {
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"type": "array", "items": {"type": "string"}}
                        }
                    },
                },
            },
        },
        "/shared": {"$ref": "#/components/pathItems/shared"},
    },
    "components": {
        "schemas": {
            "Owner": {"type": "object", "properties": {"name": {"type": "string"}}},
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "owner": {"$ref": "#/components/schemas/Owner"},
                },
            },
        },
        "pathItems": {"shared": {"get": {"operationId": "shared"}, "delete": {}}},
    },
}


class Owner(BaseModel):
    name: str


def list_pets(in_: str = "all", X_Trace: str = "-") -> str:  # noqa: N803
    return f"{in_} {X_Trace}"


def add_pet(name: str, owner: Owner | None = None) -> str:
    assert owner is None or isinstance(owner, Owner)
    return name


@tool(repeatable=True, effect="idempotent", name="ignored")
async def get_pet(id: int, context: Context) -> str:  # noqa: A002
    return f"{id} {context.ticket_id}"


def put_tags(id: int, body: list[str]) -> list[Any]:  # noqa: A002
    return [id, *body]


def pets(**handlers: Any) -> OpenAPI:
    return OpenAPI.from_dict(
        PETS,
        handlers=handlers
        or {
            "listPets": list_pets,
            "POST /pets": add_pet,
            "get /pets/{id}": get_pet,
            "PUT /pets/{id}": put_tags,
        },
    )


def test_handlers_are_offered_in_the_order_of_the_document() -> None:
    api = pets()
    names = ["GET /pets", "POST /pets", "GET /pets/{id}", "PUT /pets/{id}"]
    assert list(api.tools) == names
    box = Toolbox(api)
    assert box.tool_set.names() == names
    assert Toolbox([api]).tool_set.names() == names


def test_operations_without_a_handler_are_not_offered() -> None:
    api = pets(getPet=get_pet)
    document = json.loads(api.document_json)
    assert list(document["paths"]) == ["/pets/{id}"]
    assert set(document["paths"]["/pets/{id}"]) == {"get"}
    assert "delete" in PETS["components"]["pathItems"]["shared"]


def test_referenced_paths() -> None:
    api = pets(shared=lambda: "x")
    assert list(api.tools) == ["GET /shared"]
    assert Toolbox(api).tool_set.names() == ["GET /shared"]


def test_what_a_handler_says_of_itself_goes_into_the_document() -> None:
    document = json.loads(pets().document_json)
    assert document["paths"]["/pets/{id}"]["get"]["x-callslip"] == {
        "effect": "idempotent",
        "readonly": False,
        "repeatable": True,
    }
    assert "x-callslip" not in document["paths"]["/pets"]["get"]


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("GET /pets", {}, '"all -"'),
        ("GET /pets", {"in": "here", "X-Trace": "t"}, '"here t"'),
        ("POST /pets", {"name": "Rex", "owner": {"name": "Ada"}}, '"Rex"'),
        ("PUT /pets/{id}", {"id": 1, "body": ["a"]}, '[1,"a"]'),
    ],
)
def test_calls(name: str, arguments: dict[str, Any], outcome: str) -> None:
    box = Toolbox(pets())
    checked = box.tool_set.check(name, json.dumps(arguments))
    assert kind_and_text(box.get(name).call(checked, CONTEXT)) == ("ok", outcome)


async def _call(api: OpenAPI, name: str, arguments: dict[str, Any]) -> Any:
    return kind_and_text(await api.tools[name].acall(arguments, CONTEXT))


def test_async_handlers() -> None:
    import asyncio

    assert asyncio.run(_call(pets(), "GET /pets/{id}", {"id": 5})) == ("ok", '"5 T1"')


def test_arguments_that_a_handler_does_not_take() -> None:
    def narrow() -> str:
        return "x"

    def wide(**rest: Any) -> Any:
        return rest

    tool = pets(listPets=narrow).tools["GET /pets"]
    kind, text = kind_and_text(tool.call({"in": "x"}, CONTEXT))
    assert kind == "error"
    assert text == (
        "Error calling tool 'GET /pets': TypeError: the handler takes no parameter 'in_'."
    )
    outcome = pets(listPets=wide).tools["GET /pets"].call({"X-Trace": "x"}, CONTEXT)
    assert kind_and_text(outcome) == ("ok", '{"X-Trace":"x"}')


@pytest.mark.parametrize(
    ("handlers", "message"),
    [
        (
            {"getPets": list_pets},
            "the document has no operation 'getPets': did you mean 'getPet' or 'listPets'?",
        ),
        (
            {"GET /pet": list_pets},
            (
                "the document has no operation 'GET /pet': "
                "did you mean 'GET /pets' or 'GET /pets/{id}' or 'GET /shared'?"
            ),
        ),
        ({"zzz": list_pets}, "the document has no operation 'zzz'"),
        (
            {"listPets": list_pets, "GET /pets": list_pets},
            "the operation 'GET /pets' has two handlers",
        ),
        (
            {"listPets": 5},
            "expected a function as a tool: got int; pass a function with annotated arguments, "
            "or a Tool",
        ),
    ],
)
def test_handlers_at_fault(handlers: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        OpenAPI.from_dict(PETS, handlers=handlers)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected the OpenAPI document to be an object: got list: pass it as a dict"),
        (
            {"swagger": "2.0", "paths": {}},
            (
                "Swagger 2.0 is not supported: convert the document to OpenAPI 3.0, 3.1 or 3.2, "
                "for example with the npm package swagger2openapi"
            ),
        ),
    ],
)
def test_documents_at_fault(document: Any, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        OpenAPI(document, handlers={"a": list_pets})
    assert str(caught.value) == message


def test_documents_of_other_versions_are_refused_by_the_core() -> None:
    for document in ({"openapi": "4.0"}, {"paths": {}}, {"swagger": "2.0"}):
        with pytest.raises(ToolError):
            Toolbox(OpenAPI(document, handlers={}))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "pets.json"
    path.write_text("\ufeff" + json.dumps(PETS), encoding="utf-8")
    assert list(OpenAPI.from_file(path, handlers={"getPet": get_pet}).tools) == ["GET /pets/{id}"]
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ToolError, match=r"^pets\.json: the OpenAPI document is not JSON: "):
        OpenAPI.from_file(path, handlers={})


def test_yaml(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(
        "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {}\n",
        encoding="utf-8",
    )
    api = OpenAPI.from_file(path, handlers={"GET /a": lambda: 1})
    assert json.loads(api.document_json)["paths"]["/a"]["get"]["responses"] == {"200": {}}
    path.write_text("a: [", encoding="utf-8")
    with pytest.raises(
        ToolError,
        match=r"^a\.yml: the OpenAPI document is neither JSON nor YAML: unclosed bracket ",
    ):
        OpenAPI.from_file(path, handlers={})
