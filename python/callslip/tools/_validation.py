"""Annotations that need pydantic. Imported for the first of them."""

from __future__ import annotations

import functools
import json
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions as extensions
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from callslip._base.labels import PARTS, LabelError
from callslip.tools._annotation import is_required
from callslip.tools._context import parts_here
from callslip.tools._equal_keys import check_keys
from callslip.tools._reads import READS

__all__ = ["adapter_for", "converter", "describe_faults", "schemas_of"]

_LISTED = 60
"""The most characters of a wrong value in its message."""


class Describer(GenerateJsonSchema):
    """The JSON Schema of arguments.

    A name that a model, dataclass or `TypedDict` does not know is refused, where pydantic would
    drop it in silence: `extra="ignore"` or `"allow"` lets such names in. So does a type that writes
    more than it reads (computed fields, fields without `init`): its own JSON may come back.
    """

    # A default without a JSON form is left out, without a warning.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a model."""
        described = super().model_schema(schema)
        if getattr(schema["cls"], "model_computed_fields", None):
            return described
        return _forbid_extra(described, getattr(schema["cls"], "model_config", {}))

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a dataclass."""
        described = super().dataclass_schema(schema)
        fields = getattr(schema["cls"], "__dataclass_fields__", {})
        made = [name for name, field in fields.items() if not field.init]
        for name in made:
            described.get("properties", {}).pop(name, None)
        if made:
            return described
        return _forbid_extra(described, getattr(schema["cls"], "__pydantic_config__", {}))

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a `TypedDict`."""
        config = getattr(schema.get("cls"), "__pydantic_config__", {})
        return _forbid_extra(super().typed_dict_schema(schema), config)

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a decimal: its text looks like any other text."""
        described = super().decimal_schema(schema)
        for one in described.get("anyOf", [described]):
            if one.get("type") == "string":
                one[READS] = "a decimal"
        return described

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a dict: all its keys are texts in JSON."""
        described = super().dict_schema(schema)
        keys = schema.get("keys_schema", {"type": "any"})["type"]
        if keys not in {"any", "str"} and "propertyNames" not in described:
            described[READS] = f"one with keys of the type {keys}"
        return described

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        """Describe an enum. Members must be recognisable by their JSON."""
        if all(isinstance(one.value, str | int | float | None) for one in schema["members"]):
            return super().enum_schema(schema)
        refused: dict[str, Any] = self.handle_invalid_for_json_schema(schema, "")
        return refused

    def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
        """Refuse classes as values."""
        refused: dict[str, Any] = self.handle_invalid_for_json_schema(schema, "")
        return refused

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Any:
        """Refuse a type without a JSON form."""
        del schema, error_info
        raise PydanticInvalidForJsonSchema("its values have no JSON form")


def _forbid_extra(described: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    if "properties" in described and config.get("extra") is None:
        described.setdefault("additionalProperties", False)
    return described


def adapter_for(annotation: Any, names: Mapping[str, Any]) -> TypeAdapter[Any]:
    """Return pydantic's adapter of an annotation. Its schema is checked.

    Args:
        annotation: Resolved itself; the fields inside of it may not be.
        names: Names of the scope of the annotation, for the fields.

    Raises:
        PydanticUserError: It has no JSON form, or pydantic knows no values of it.
        NameError: A name in it can't be resolved.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(_TypedDictReplacer(names).of(annotation))
    if not adapter.pydantic_complete:
        adapter.rebuild(force=True, _types_namespace=dict(names))
    adapter.json_schema(schema_generator=Describer)
    return adapter


def converter(adapter: TypeAdapter[Any]) -> Callable[[Any], Any]:
    """Return a function from JSON to the value.

    It is JSON text that is validated: a date in a strict model, an enum's member in a `Literal` or
    a tuple differ from text and lists in Python only. The function raises `ValueError` if keys of
    an object become equal.
    """

    def convert(value: Any) -> Any:
        made = adapter.validate_json(json.dumps(value), context={PARTS: parts_here})
        check_keys(value, made)
        # An `Iterable` would raise its errors only while the tool runs.
        return list(made) if type(made).__name__ == "ValidatorIterator" else made

    return convert


def describe_faults(name: str, value: Any, error: ValueError) -> Iterator[str]:
    """Yield each fault of an argument that matches the schema, with its place."""
    if not isinstance(error, ValidationError):
        yield f"invalid value for '{name}': {error}"
        return
    for fault in error.errors(include_url=False):
        message = fault["msg"]
        if isinstance(cause := fault.get("ctx", {}).get("error"), Exception):
            message = str(cause)
        if isinstance(cause, LabelError):
            yield f"'{name}{_path_in(value, fault['loc'])}': {cause}"
            continue
        if message.startswith("Input should "):
            message = f" must {message.removeprefix('Input should ')}"
        else:
            message = f": {message[:1].lower()}{message[1:]}"
        found = json.dumps(fault["input"], ensure_ascii=False, default=str)
        found = f"{found[:_LISTED]}…" if len(found) > _LISTED else found
        yield f"'{name}{_path_in(value, fault['loc'])}'{message}: got {found}"


def _path_in(value: Any, steps: tuple[int | str, ...]) -> str:
    """Return the path in a value. Steps that name branches of a union are left out."""
    place = ""
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict) and step in value:
            place += f".{step}"
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            place += f"[{step}]"
        else:
            continue
        value = value[step]
    return place


class _TypedDictReplacer:
    """Replaces `TypedDict`s: before Python 3.12, pydantic only knows those of typing_extensions."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = dict(names)
        self._made: dict[Any, Any] = {}

    def of(self, annotation: Any) -> Any:
        """Return the annotation with each `TypedDict` in it replaced, at any depth."""
        if sys.version_info >= (3, 12):
            return annotation
        origin, args = get_origin(annotation), get_args(annotation)
        if typing.is_typeddict(annotation) or typing.is_typeddict(origin):
            return self._made.get(annotation) or self._typed_dict(annotation, origin, args)
        if origin is Annotated:
            return Annotated[(self.of(args[0]), *args[1:])]
        if origin is Literal or not args or any(isinstance(arg, list) for arg in args):
            return annotation
        replaced = tuple(self.of(arg) for arg in args)
        if all(new is old for new, old in zip(replaced, args, strict=True)):
            return annotation
        if origin in {Union, types.UnionType}:
            return functools.reduce(operator.or_, replaced)
        return origin[replaced]

    def _typed_dict(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Any:
        plain = origin or annotation
        given = dict(zip(plain.__parameters__, args, strict=True)) if args else {}
        hints = typing.get_type_hints(plain, localns=self._names, include_extras=True)
        marks: dict[str, Any] = {
            name: extensions.Required if is_required(plain, name, hint) else extensions.NotRequired
            for name, hint in hints.items()
        }
        make: Any = extensions.TypedDict
        # The name that pydantic would use: a schema may contain several of one generic type.
        told = ", ".join(getattr(arg, "__name__", str(arg)) for arg in args)
        name = f"{plain.__name__}[{told}]" if told else plain.__name__
        made = make(name, {key: mark[Any] for key, mark in marks.items()})
        # Before its fields are read, because it may contain itself.
        self._made[annotation] = made
        for attribute in ("__module__", "__doc__", "__pydantic_config__"):
            if hasattr(plain, attribute):
                setattr(made, attribute, getattr(plain, attribute))
        for name, hint in hints.items():
            marked = get_origin(hint) in {typing.Required, typing.NotRequired}
            inner = _substitute(get_args(hint)[0] if marked else hint, given)
            made.__annotations__[name] = marks[name][self.of(inner)]
        return made


def _substitute(hint: Any, given: Mapping[Any, Any]) -> Any:
    """Replace the parameters of a generic `TypedDict` by its arguments."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ()) if given else ()
    return hint[tuple(given.get(one, one) for one in parameters)] if parameters else hint


def schemas_of(
    adapters: Mapping[str, TypeAdapter[Any]],
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the schemas of all adapters by name, and their shared definitions."""
    inputs: list[Any] = [(name, "validation", adapter) for name, adapter in adapters.items()]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=Describer)
    return {name: schema for (name, _), schema in schemas.items()}, shared.get("$defs", {})
