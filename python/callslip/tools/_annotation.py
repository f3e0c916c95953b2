"""Annotations as JSON Schema.

`str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `Literal`, `TypedDict` and unions of these
are described here, so that a simple agent never imports pydantic. `shape_of` returns `None` for all
other annotations, which need pydantic.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import threading
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from callslip._base.labels import label_schema, labels_text, named
from callslip.parts import File
from callslip.tools._context import parts_here
from callslip.tools._levels import Values

__all__ = ["Shape", "is_required", "labels_told", "shape_of", "tell_labels"]

Schema = dict[str, Any]
Convert = Callable[[Any], Any]

_SCALARS: dict[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    None: "null",
    type(None): "null",
    typing.LiteralString: "string",
}
_LISTS = {list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection}
_DICTS = {dict, collections.abc.Mapping, collections.abc.MutableMapping}


@dataclass(frozen=True, slots=True)
class Shape:
    """The schema of an annotation, and the conversion from JSON to its values.

    Attributes:
        schema: JSON Schema.
        convert: A function from JSON to the value; `None` if they are the same.
    """

    schema: Schema
    convert: Convert | None = None


def shape_of(annotation: Any) -> Shape | None:  # a line for each kind
    """Return the shape of an annotation; `None` if it needs pydantic."""
    if annotation is Any or annotation is object:
        return Shape({})
    try:
        scalar = _SCALARS.get(annotation)
    except TypeError:
        return None
    if scalar is not None:
        return Shape({"type": scalar}, _to_float if annotation is float else None)
    if annotation in _LISTS or annotation in _DICTS:
        return Shape({"type": "array" if annotation in _LISTS else "object"})
    if _is_file(annotation):
        return Shape(label_schema(annotation), partial(named, annotation, files=parts_here))
    if typing.is_typeddict(annotation):
        return _unless_recursive(annotation, lambda: _typed_dict(annotation))
    if isinstance(annotation, typing.NewType):
        return shape_of(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return _unless_recursive(annotation, lambda: shape_of(annotation.__value__))
    return _shape_of_generic(get_origin(annotation), get_args(annotation))


def _is_file(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, File)


def labels_told(annotation: Any) -> str | None:
    """Return what a model is told of an argument with images or files; `None` for any other."""
    todo = [(annotation, False)]
    for one, plural in todo:
        if _is_file(one):
            return labels_text(one, plural=plural)
        origin = get_origin(one)
        within = get_args(one)[:1] if origin is Annotated else get_args(one)
        several = plural or origin not in {Annotated, Union, types.UnionType}
        todo += [(arg, several) for arg in within]
    return None


def tell_labels(schema: dict[str, Any], labels: str) -> None:
    """Say of a parameter how an image is named, whatever else is said of it."""
    own = schema.get("description", labels)
    schema["description"] = labels if own == labels else f"{own.rstrip('. ')}. {labels}"


def _shape_of_generic(origin: Any, args: tuple[Any, ...]) -> Shape | None:
    read = _GENERICS.get(origin)
    if read is not None:
        return read(args)
    if origin in _LISTS and len(args) <= 1:
        return _list(args[0] if args else Any)
    if origin in _DICTS and not args:
        return Shape({"type": "object"})
    if origin in _DICTS and len(args) == 2 and args[0] in {str, Any}:
        return _dict(args[1])
    return None


def _to_float(value: Any) -> Any:
    """Return an int as a float, because a float has methods that an int lacks."""
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return value
    return value


def _annotated(args: tuple[Any, ...]) -> Shape | None:
    inner, *metadata = args
    if not all(isinstance(item, str | Values) for item in metadata):
        return None
    shape = shape_of(inner)
    if shape is None or not metadata:
        return shape
    told = dict(shape.schema)
    for item in metadata:
        told.update(item.mark if isinstance(item, Values) else {"description": item})
    return Shape(told, shape.convert)


def _literal(values: tuple[Any, ...]) -> Shape | None:
    # Pydantic would not find a member of an enum by its value here.
    members = [value for value in values if isinstance(value, enum.Enum)]
    texts = [value.value if isinstance(value, enum.Enum) else value for value in values]
    if any(type(text) not in {str, int, bool, type(None)} for text in texts):
        return None
    schema = {"const": texts[0]} if len(texts) == 1 else {"enum": texts}
    if not members:
        return Shape(schema)
    by_text = {(type(one.value), one.value): one for one in members}
    return Shape(schema, lambda text: by_text.get((type(text), text), text))


def _union(args: tuple[Any, ...]) -> Shape | None:
    shapes = [shape for arg in args if (shape := shape_of(arg)) is not None]
    if len(shapes) < len(args):
        return None
    schema = _any_of([shape.schema for shape in shapes])
    converts = [shape.convert for shape in shapes if shape.convert is not None]
    if not converts or (converts == [_to_float] and int in args):
        return Shape(schema)
    if converts == [_to_float]:
        return Shape(schema, _to_float)
    if len(args) == 2 and type(None) in args:
        convert = converts[0]
        return Shape(schema, lambda value: None if value is None else convert(value))
    # Only pydantic can decide which branch a value belongs to.
    return None


def _any_of(schemas: list[Schema]) -> Schema:
    if all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def _list(item: Any) -> Shape | None:
    shape = shape_of(item)
    if shape is None:
        return None
    schema: Schema = {"type": "array"}
    if shape.schema:
        schema["items"] = shape.schema
    convert = shape.convert
    if convert is None:
        return Shape(schema)
    return Shape(schema, lambda values: [convert(value) for value in values])


def _dict(item: Any) -> Shape | None:
    shape = shape_of(item)
    if shape is None:
        return None
    schema: Schema = {"type": "object", "additionalProperties": shape.schema or True}
    convert = shape.convert
    if convert is None:
        return Shape(schema)
    return Shape(schema, lambda values: {key: convert(value) for key, value in values.items()})


class _InProgress(threading.local):
    """Annotations that are being described. Recursive ones need pydantic, for references."""

    def __init__(self) -> None:
        self.annotations: list[Any] = []


_in_progress = _InProgress()


def _unless_recursive(annotation: Any, describe: Callable[[], Shape | None]) -> Shape | None:
    annotations = _in_progress.annotations
    if any(annotation is one for one in annotations):
        return None
    annotations.append(annotation)
    try:
        return describe()
    finally:
        annotations.pop()


def _typed_dict(annotation: Any) -> Shape | None:
    fields = typing.get_type_hints(annotation, include_extras=True)
    shapes = {name: shape_of(_field(hint)) for name, hint in fields.items()}
    properties: dict[str, Schema] = {}
    converts: dict[str, Convert] = {}
    for name, shape in shapes.items():
        if shape is None:
            return None
        properties[name] = shape.schema
        if shape.convert is not None:
            converts[name] = shape.convert
    schema: Schema = {"type": "object", "properties": properties}
    if required := [name for name, hint in fields.items() if is_required(annotation, name, hint)]:
        schema["required"] = required
    schema["additionalProperties"] = False
    if text := annotation.__doc__:
        schema["description"] = inspect.cleandoc(text)
    if not converts:
        return Shape(schema)
    return Shape(
        schema,
        lambda value: {
            key: converts[key](item) if key in converts else item for key, item in value.items()
        },
    )


def is_required(annotation: Any, name: str, hint: Any) -> bool:
    """Whether a `TypedDict` requires a key. `__required_keys__` is wrong if hints are text."""
    origin = get_origin(hint)
    if origin in {Required, NotRequired}:
        return origin is Required
    return name in annotation.__required_keys__


def _field(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in {Required, NotRequired} else hint


_GENERICS: dict[Any, Callable[[tuple[Any, ...]], Shape | None]] = {
    Annotated: _annotated,
    Literal: _literal,
    Union: _union,
    types.UnionType: _union,
}
