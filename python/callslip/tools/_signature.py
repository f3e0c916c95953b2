"""Signatures of tools: the schema of the arguments, and how arguments are bound to parameters."""

from __future__ import annotations

import functools
import inspect
import json
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from callslip._base.failure import ModelFacing, message_of, one_line
from callslip._base.json import to_json
from callslip._base.labels import LabelError
from callslip._base.redaction import redact_likely_secrets
from callslip.errors import ToolError
from callslip.tools._annotation import is_required, labels_told, shape_of, tell_labels
from callslip.tools._hints import Resolver, annotation_error, context_with_deps, is_context
from callslip.tools._reads import without_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ArgumentsError", "Signature", "read_return", "read_signature"]

_EMPTY: Any = inspect.Parameter.empty
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD

_CHANGEABLE, _MORE = (list, dict, set), "**"
_REPORTED = 16  # the most faults that one error lists


class ArgumentsError(ModelFacing):
    """Arguments match the schema, but cannot be converted to the types of their parameters."""

    _is_final = True

    def text_for_model(self) -> str:
        """Return all faults, in one line."""
        return f"InvalidArguments: {one_line(redact_likely_secrets(message_of(self)), 2000)}"


@dataclass(frozen=True)
class Signature:
    """The parameters of a function.

    Attributes:
        parameters: JSON Schema of the arguments.
        positional: Positional-only parameters, in order, with their defaults.
        context: The name of the parameter that receives the `Context`; `None` if there is none.
        converts: Functions from JSON to the value, for the parameters that need one.
        factories: Functions that return a default (`Field(default_factory=…)`).
        further: A function from JSON to the value for the arguments of `**more`; `None` if they
            need none.
        own_defaults: The defaults of the function that the schema tells, as JSON.
        reads: How Python reads what looks like another type, by JSON pointers into `parameters`.
        needs_deps: The annotation of the `Context`, if its deps can't be `None`; else `None`.
    """

    parameters: dict[str, Any]
    positional: tuple[tuple[str, Any], ...]
    context: str | None
    converts: Mapping[str, Callable[[Any], Any]]
    factories: Mapping[str, Callable[[], Any]]
    further: Callable[[Any], Any] | None = None
    own_defaults: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    needs_deps: str | None = None

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether the arguments can be passed unchanged, by keyword."""
        made = self.converts or self.factories or self.further
        return not (made or self.context or self.positional)

    def bind(
        self, arguments: Mapping[str, Any], context: object
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments for the arguments of the model.

        Raises:
            ArgumentsError: Arguments cannot be converted to the types of their parameters.
        """
        named = dict(arguments)
        # A call that a person approves has all defaults. JSON may say less than the function's.
        for name, default in self.own_defaults.items():
            if name in named and to_json(named[name]) == default:
                del named[name]
        if self.is_plain:
            return [], named
        self._convert(named)
        for name, factory in self.factories.items():
            if name not in named:
                named[name] = factory()
        if self.context is not None:
            named[self.context] = context
        given: list[Any] = []
        if self.positional:
            places = [at for at, (name, _) in enumerate(self.positional) if name in named]
            for name, default in self.positional[: max(places, default=-1) + 1]:
                given.append(named.pop(name, default))
        return given, named

    def _convert(self, named: dict[str, Any]) -> None:
        faults: list[str] = []
        cause: ValueError | None = None
        known = self.parameters.get("properties", {})
        for name, value in named.items():
            convert = self.converts.get(name) if name in known else self.further
            if convert is None:
                continue
            try:
                named[name] = convert(value)
            except LabelError as error:
                faults.append(f"'{name}': {error}")
                cause = error
            except ValueError as error:
                from callslip.tools._validation import describe_faults

                faults.extend(describe_faults(name, value, error))
                cause = error
        if faults:
            raise ArgumentsError("; ".join(faults[:_REPORTED])) from cause


def read_signature(
    function: Callable[..., Any],
    *,
    name: str,
    context_type: type,
    descriptions: Mapping[str, str],
    names: Mapping[str, Any] | None = None,
    schema: dict[str, Any] | None = None,
) -> Signature:
    """Read the signature of a function.

    Args:
        function: A function, method, `functools.partial` or callable object.
        name: The name of the tool, for errors.
        context_type: The annotation of the parameter that receives the context.
        descriptions: The parameters' descriptions, from the docstring.
        names: Local names of the scope in which the function was defined, for annotations that are
            text.
        schema: JSON Schema of the arguments, in place of the hints of the function.

    Raises:
        ToolError: The function has `*args`, or an annotation cannot be resolved or described.
    """
    if schema is not None:
        return _signature_of_schema(schema, function, name, context_type, names or {})
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ToolError(f"the signature of tool '{name}' can't be read: {error}") from error
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.name == "self" and first.annotation is first.default is _EMPTY:
        raise ToolError(f"tool '{name}' is a method: take it from an instance")
    resolve = Resolver(function, name, names or {})
    bound = _bound_names(function)
    reader = _Reader(name, context_type, descriptions, resolve.names)
    for parameter in signature.parameters.values():
        if parameter.name not in bound:
            reader.read(parameter, resolve(parameter))
    return reader.signature()


def read_return(
    function: Callable[..., Any], name: str, names: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    """Return the annotation of what a function returns, and the names in its scope.

    Args:
        function: As for `read_signature`.
        name: The name of the tool, for errors.
        names: As for `read_signature`.

    Returns:
        `Any` for a function without such an annotation.

    Raises:
        ToolError: The annotation cannot be resolved.
    """
    try:
        annotation = inspect.signature(function).return_annotation
    except (TypeError, ValueError):  # a builtin without a signature
        annotation = _EMPTY
    resolve = Resolver(function, name, names)
    hint = resolve(inspect.Parameter("return_", _KEYWORD_ONLY, annotation=annotation))
    return Any if hint is _EMPTY else hint, resolve.names


def _signature_of_schema(
    schema: dict[str, Any],
    function: Callable[..., Any],
    name: str,
    context_type: type,
    names: Mapping[str, Any],
) -> Signature:
    positional: list[tuple[str, Any]] = []
    context = needs_deps = None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        parameters = []
    resolve = Resolver(function, name, names)
    for parameter in parameters:
        if parameter.kind is _POSITIONAL_ONLY:
            default = parameter.default
            positional.append((parameter.name, None if default is _EMPTY else default))
        try:
            annotation = resolve(parameter)
        except ToolError:
            # The other hints are not read.
            continue
        if context is None and is_context(annotation, context_type):
            context = parameter.name
            needs_deps = context_with_deps(annotation, context_type)
    return Signature(schema, tuple(positional), context, {}, {}, needs_deps=needs_deps)


class _Reader:
    """Reads the parameters of one function, one by one."""

    def __init__(
        self,
        tool: str,
        context_type: type,
        descriptions: Mapping[str, str],
        names: Mapping[str, Any],
    ) -> None:
        self._tool = tool
        self._context_type = context_type
        self._descriptions = descriptions
        self._names = names
        self._properties: dict[str, dict[str, Any]] = {}
        self._required: list[str] = []
        self._positional: list[tuple[str, Any]] = []
        # Its name, and its annotation if its deps can't be `None`.
        self._context: tuple[str | None, str | None] = None, None
        self._converts: dict[str, Callable[[Any], Any]] = {}
        self._factories: dict[str, Callable[[], Any]] = {}
        self._adapters: dict[str, Any] = {}
        self._labels: dict[str, str | None] = {}
        self._own_defaults: dict[str, str] = {}
        self._further: Any = False

    def read(self, parameter: inspect.Parameter, annotation: Any) -> None:  # noqa: C901  # kinds
        name = parameter.name
        if parameter.kind is _VAR_POSITIONAL:
            raise ToolError(
                f"tool '{self._tool}' takes *{name}, which a model can't give by name: "
                "declare a list parameter instead"
            )
        if parameter.kind is _VAR_KEYWORD:
            self._read_further(name, annotation)
            return
        if is_context(annotation, self._context_type):
            if self._context[0] is not None:
                raise ToolError(
                    f"tool '{self._tool}' has two parameters annotated "
                    f"{self._context_type.__name__}: '{self._context[0]}' and '{name}'"
                )
            self._context = name, context_with_deps(annotation, self._context_type)
            if parameter.kind is _POSITIONAL_ONLY:
                self._positional.append((name, None))
            return
        annotation, default = self._default(name, annotation, parameter.default)
        if parameter.kind is _POSITIONAL_ONLY:
            self._positional.append((name, None if default is _EMPTY else default))
        schema = self._describe(name, annotation)
        if default is _EMPTY:
            self._required.append(name)
        elif default is not None:
            _add_default(schema, default, self._adapters.get(name))
            # A list or a dict that is passed is not the function's own, which it may change.
            if "default" in schema and type(default) not in _CHANGEABLE:
                self._own_defaults[name] = to_json(schema["default"])
        self._labels[name] = labels = labels_told(annotation)
        if (text := self._descriptions.get(name)) and schema.get("description") in {None, labels}:
            schema["description"] = text
        self._properties[name] = schema

    def _default(self, name: str, annotation: Any, default: Any) -> tuple[Any, Any]:
        """Return the annotation and the default of `x: int = Field(5, ge=1)` and the like."""
        field = default
        if _is_field(default):
            annotation = Annotated[Any if annotation is _EMPTY else annotation, default]
        elif default is None and _is_plain_type(annotation):
            # `x: int = None` means `int | None`, and models write the null.
            return annotation | None, None
        elif default is _EMPTY and get_origin(annotation) is Annotated:
            fields = [item for item in get_args(annotation)[1:] if _is_field(item)]
            field = next((item for item in reversed(fields) if not item.is_required()), _EMPTY)
        if not _is_field(field):
            return annotation, default
        if field.is_required():
            return annotation, _EMPTY
        self._factories[name] = lambda: field.get_default(call_default_factory=True)
        return annotation, field.get_default()

    def _describe(self, name: str, annotation: Any) -> dict[str, Any]:
        if annotation is _EMPTY:
            return {}
        try:
            shape = shape_of(annotation)
        except NameError:
            # A `TypedDict` of a function's own types.
            shape = None
        if shape is not None:
            if shape.convert is not None:
                self._converts[name] = shape.convert
            return dict(shape.schema)
        from callslip.tools._validation import adapter_for, converter

        try:
            adapter = adapter_for(annotation, self._names)
        except Exception as error:
            raise annotation_error(self._tool, name, annotation, error) from error
        self._adapters[name] = adapter
        self._converts[name] = converter(adapter)
        metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
        words = [item for item in metadata if isinstance(item, str)]
        return {"description": words[-1]} if words else {}

    def _read_further(self, name: str, annotation: Any) -> None:
        """Read `**more: int`, and `**more: Unpack[Options]`, whose names are known."""
        self._further = True
        if annotation is _EMPTY:
            return
        if repr(get_origin(annotation)).endswith(".Unpack"):
            self._further = False
            (options,) = get_args(annotation)
            try:
                hints = typing.get_type_hints(
                    options, localns=dict(self._names), include_extras=True
                )
            except Exception as error:
                raise annotation_error(self._tool, f"**{name}", annotation, error) from error
            for key, hint in hints.items():
                # An optional key has no default that the schema could show.
                default = _EMPTY if is_required(options, key, hint) else object()
                marked = get_origin(hint) in {typing.Required, typing.NotRequired}
                parameter = inspect.Parameter(key, _KEYWORD_ONLY, default=default)
                self.read(parameter, get_args(hint)[0] if marked else hint)
            return
        # With the asterisks it cannot collide with the name of a parameter.
        name = f"**{name}"
        described = self._describe(name, annotation)
        if (convert := self._converts.pop(name, None)) is not None:
            self._converts[_MORE] = convert
        if name in self._adapters:
            self._properties[name] = {}
        elif described:
            self._further = described

    def signature(self) -> Signature:
        definitions = self._add_adapter_schemas()
        for name, labels in self._labels.items():
            if labels is not None:
                tell_labels(self._properties[name], labels)
        for name in [name for name in self._properties if name.startswith("**")]:
            self._further = self._properties.pop(name)
        parameters: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            parameters["required"] = self._required
        parameters["additionalProperties"] = self._further
        if definitions:
            parameters["$defs"] = definitions
        parameters, reads = without_reads(parameters)
        return Signature(
            parameters=parameters,
            positional=tuple(self._positional),
            context=self._context[0],
            converts=self._converts,
            factories=self._factories,
            further=self._converts.pop(_MORE, None),
            own_defaults=self._own_defaults,
            reads=reads,
            needs_deps=self._context[1],
        )

    def _add_adapter_schemas(self) -> dict[str, Any]:
        """Add the schemas of pydantic, all at once so that names of models do not collide."""
        if not self._adapters:
            return {}
        from callslip.tools._validation import schemas_of

        schemas, definitions = schemas_of(self._adapters)
        for name, schema in schemas.items():
            described = {**schema, **self._properties[name]}
            described.pop("title", None)
            if text := schema.get("description"):
                # A `Field` is nearer to the parameter than the docstring.
                described["description"] = text
            self._properties[name] = described
        return definitions


def _bound_names(function: Any) -> set[str]:
    """Return names bound by a `functools.partial`: the model must not change or see them."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound.update(function.keywords)
        function = function.func
    return bound


def _is_plain_type(annotation: Any) -> bool:
    """Whether the annotation is a plain type, which does not include `None`."""
    if isinstance(annotation, type):
        return annotation not in {_EMPTY, object, type(None)}
    return get_origin(annotation) in {list, dict, set, tuple}


def _is_field(default: Any) -> bool:
    kind = type(default)
    return kind.__name__ == "FieldInfo" and kind.__module__.startswith("pydantic.")


def _add_default(schema: dict[str, Any], default: Any, adapter: Any) -> None:
    """Add the default to the schema, if it has a JSON form."""
    try:
        if adapter is not None:
            default = adapter.dump_python(default, mode="json", warnings=False)
        json.dumps(default, allow_nan=False)
    except (TypeError, ValueError):
        return
    schema["default"] = default
