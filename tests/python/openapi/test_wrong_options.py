"""Options of documents that have a wrong type, or choose nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callslip import OpenAPI, UsageError

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com"}],
    "paths": {"/pets": {"get": {"operationId": "listPets", "tags": ["pets"]}}},
}


def list_pets() -> list[str]:
    """List the pets."""
    return []


@pytest.mark.parametrize("handlers", [None, {"listPets": list_pets}])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"read_only": "x"}, "expected read_only=True or False: got 'x'"),
        ({"validate_responses": "x"}, "expected validate_responses=True or False: got 'x'"),
        ({"max_response_bytes": "x"}, "expected max_response_bytes to be a whole number from 1: "),
        ({"max_response_bytes": 0}, "expected max_response_bytes to be a whole number from 1: "),
        ({"timeout": "x"}, "expected timeout to be a number of seconds above 0: got 'x'"),
        ({"timeout": True}, "expected timeout to be a number of seconds above 0: got True"),
        ({"retries": "x"}, "expected retries to be a whole number from 0: got 'x'"),
        ({"include": "GET"}, "expected include as a list of texts: got 'GET': pass ['GET']"),
        ({"tags": [3]}, "expected tags as a list of texts: got [3]"),
        ({"needs_approval": "x"}, "expected needs_approval as a list of texts: got 'x'"),
        ({"repeatable": 1}, "expected repeatable as a list of texts: got 1"),
        ({"trusted_hosts": "x"}, "expected trusted_hosts as a list of texts: got 'x'"),
        (
            {"server": 3},
            "expected server to be a URL: got 3: pass one such as 'https://api.example.com'",
        ),
        (
            {"client": 3},
            "expected client to have request(method, url, headers=…, content=…): got int",
        ),
        ({"auth": 0}, "expected auth as a dict of secrets by security scheme: got int; pass {"),
        ({"headers": 0}, "expected headers as a dict of texts: got int"),
        ({"headers": {"X-Key": 3}}, "expected headers['X-Key'] to be text: got int"),
        ({"headers": {"X-Key": ""}}, "expected headers['X-Key'] to be text: got an empty one"),
        ({"include": ["nope"]}, "the document has no operation that fits 'nope'"),
        ({"tags": ["nope"]}, "the document has no operation with the tag 'nope'"),
        ({"needs_approval": ["nope"]}, "the document has no operation that fits 'nope'"),
    ],
)
def test_of_a_document(options: dict[str, Any], words: str, handlers: Any) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        OpenAPI(DOCUMENT, handlers=handlers, **options)


def test_of_handlers() -> None:
    with pytest.raises(UsageError, match="^expected the operation of a handler to be text: got 3$"):
        OpenAPI(DOCUMENT, handlers={3: list_pets})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="^the document has no operation 'nope'"):
        OpenAPI(DOCUMENT, handlers={"nope": list_pets})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OpenAPI("pets.json"), "expected the document as a dict: got str: use OpenAPI."),
        (lambda: OpenAPI(Path("a.json")), "expected the document as a dict: got "),
        (lambda: OpenAPI.from_url(3), "expected url to be text: got 3"),
        (lambda: OpenAPI.from_file(3), "expected path=a path: got 3"),
        (
            lambda: OpenAPI.from_app(3, document=DOCUMENT),
            "expected an ASGI app: got int; pass the app",
        ),
        (lambda: api().request(3, {}), "expected name to be text: got 3"),
        (lambda: api().request("listPets", 3), "expected arguments=a dict: got 3"),
    ],
)
def test_of_a_source(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        make()


def api() -> OpenAPI:
    return OpenAPI(DOCUMENT, handlers={"listPets": list_pets})
