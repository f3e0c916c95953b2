"""An OpenAPI document as tools: a Python handler for each operation that is offered.

    api = OpenAPI.from_file("pets.json", handlers={"GET /pets/{id}": get_pet, "addPet": add_pet})
    agent = Agent(model, protocol="ticket", tools=api)

A handler takes the operation's parameters by name, the properties of the body beside them, or the
body as `body` where a name collides or the body is no object. A name that is none in Python
(`X-Request-ID`, `class`) reaches the handler as `X_Request_ID` and `class_`, or as it is in
`**kwargs`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from callslip._json import to_json
from callslip.errors import ToolError
from callslip.tools import Context, Tool, ToolSource

if TYPE_CHECKING:
    import os

__all__ = ["OpenAPI"]

Handler = Tool[..., Any] | Callable[..., Any]

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class OpenAPI(ToolSource):
    """A document of version 3.0 or 3.1 with handlers for its operations.

    Operations without a handler are not offered. What a crash in mid-call means, and whether a
    call may start early, follows from the method (`GET` changes nothing) unless the handler is a
    `Tool` that says so.

    Args:
        document: The document as Python reads it from JSON. It is not changed.
        handlers: By `"METHOD /path"` as the document writes it, or by `operationId`.

    Attributes:
        tools: The handlers as tools, by `METHOD /path`, in the order of the document.

    Raises:
        ToolError: The document is none, or a handler is for an operation that it does not have.
    """

    def __init__(self, document: Mapping[str, Any], *, handlers: Mapping[str, Handler]) -> None:
        if not isinstance(document, Mapping):
            raise ToolError(f"an OpenAPI document must be an object: got {type(document).__name__}")
        self._document = document
        operations = _operations(document)
        by_key = _by_key(operations)
        self.tools: dict[str, Tool[..., Any]] = {}
        found: dict[str, Handler] = {}
        for key, handler in handlers.items():
            names = by_key.get(_canonical(key), [])
            if not names:
                raise ToolError(_unknown(key, by_key, document))
            if len(names) > 1:
                raise ToolError(f"the document has several operations '{key}': {', '.join(names)}")
            if names[0] in found:
                raise ToolError(f"the operation '{names[0]}' has two handlers")
            found[names[0]] = handler
        for name in operations:
            if name in found:
                self.tools[name] = _OperationTool(name, found[name])
        self._offered = {name: found[name] for name in self.tools}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, handlers: Mapping[str, Handler]) -> OpenAPI:
        """Take a document that is at hand as a dict; see `OpenAPI`."""
        return cls(document, handlers=handlers)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, handlers: Mapping[str, Handler]) -> OpenAPI:
        """Read a document from a JSON file, or a YAML file where PyYAML is installed.

        Raises:
            OSError: The file can't be read.
            ToolError: It is neither, or as `OpenAPI` raises.
        """
        return cls(_read(Path(path)), handlers=handlers)

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        """Return the handlers as tools, in the order of the document."""
        return list(self.tools.values())

    @cached_property
    def document_json(self) -> str:
        """The document with the offered operations only, as JSON text."""
        paths: dict[str, Any] = {}
        for path, item in self._document.get("paths", {}).items():
            whole = _followed(self._document, item)
            if not isinstance(whole, Mapping):
                continue
            kept = {key: value for key, value in whole.items() if key not in _METHODS}
            offered = False
            for method in _METHODS:
                name = f"{method.upper()} {path}"
                if name in self._offered:
                    offered = True
                    kept[method] = {**whole[method], **_traits(self._offered[name])}
            if offered:
                paths[path] = kept
        return to_json({**self._document, "paths": paths})


class _OperationTool(Tool[..., Any]):
    """A handler called with the arguments of its operation."""

    def __init__(self, name: str, handler: Handler) -> None:
        own = handler if isinstance(handler, Tool) else Tool(handler, name=name)
        super().__init__(
            own,
            name=name,
            readonly=own.readonly,
            effect=own.effect,
            repeatable=own.repeatable,
            timeout=own.timeout,
            needs_approval=own.needs_approval,
            names=own._names,  # noqa: SLF001
        )
        self.gate = own.gate

    def _bind(
        self, arguments: Mapping[str, Any], context: Context | None
    ) -> tuple[list[Any], dict[str, Any]]:
        signature = self._signature
        known = signature.parameters["properties"]
        further = signature.parameters["additionalProperties"] is not False
        renamed: dict[str, Any] = {}
        for name, value in arguments.items():
            python_name = name if name in known else _python_name(name)
            if python_name not in known:
                if not further:
                    raise TypeError(f"the handler takes no parameter '{python_name}'")
                python_name = name
            renamed[python_name] = value
        return signature.bind(renamed, context)


def _python_name(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _operations(document: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the operations' ids by `METHOD /path`."""
    paths = document.get("paths", {})
    operations: dict[str, str | None] = {}
    for path, item in paths.items() if isinstance(paths, Mapping) else ():
        whole = _followed(document, item)
        for method in _METHODS:
            operation = whole.get(method) if isinstance(whole, Mapping) else None
            if isinstance(operation, Mapping):
                identity = operation.get("operationId")
                operations[f"{method.upper()} {path}"] = (
                    identity if isinstance(identity, str) else None
                )
    return operations


def _by_key(operations: Mapping[str, str | None]) -> dict[str, list[str]]:
    by_key: dict[str, list[str]] = {}
    for name, identity in operations.items():
        by_key.setdefault(name, []).append(name)
        if identity is not None and identity != name:
            by_key.setdefault(identity, []).append(name)
    return by_key


def _canonical(key: str) -> str:
    method, blank, path = key.strip().partition(" ")
    return f"{method.upper()} {path.strip()}" if blank else key.strip()


def _followed(document: Mapping[str, Any], node: Any) -> Any:
    """Follow the `$ref` of a path item inside the document."""
    for _ in range(32):
        target = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(target, str) or not target.startswith("#/"):
            return node
        node = document
        for step in target[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, Mapping) else None
    return None


def _traits(handler: Handler) -> dict[str, Any]:
    """Tell the core what a handler that is a tool says of itself."""
    if not isinstance(handler, Tool):
        return {}
    return {
        "x-callslip": {
            "effect": handler.effect,
            "readonly": handler.readonly,
            "repeatable": handler.repeatable,
            **({"needs_approval": True} if handler.needs_approval else {}),
        }
    }


def _unknown(key: str, by_key: Mapping[str, object], document: Mapping[str, Any]) -> str:
    if "swagger" in document:
        version = document["swagger"]
        return f"Swagger {version} is not supported: convert the document to OpenAPI 3.0 or 3.1"
    import difflib

    near = difflib.get_close_matches(_canonical(key), by_key, n=3, cutoff=0.5)
    advice = f": did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    return f"the document has no operation '{key}'{advice}"


def _read(path: Path) -> Mapping[str, Any]:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() in {".yaml", ".yml"}:
        return cast("Mapping[str, Any]", _read_yaml(path, text))
    import json

    try:
        return cast("Mapping[str, Any]", json.loads(text))
    except ValueError as error:
        raise ToolError(f"{path.name} is not JSON: {error}") from error


def _read_yaml(path: Path, text: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ToolError(
            f"reading {path.name} needs PyYAML: install it, or convert the document to JSON"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        cause = " ".join(str(error).split())
        raise ToolError(f"{path.name} is not YAML: {cause}") from error
