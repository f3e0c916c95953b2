"""JSON text of any value, without pydantic for plain values; and values of JSON text."""

from __future__ import annotations

import base64
import enum
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, MappingView, Sequence
from contextvars import ContextVar
from dataclasses import fields
from numbers import Number
from types import CoroutineType
from typing import Any, TypeVar, cast

from callslip import _core
from callslip._base import _lazy
from callslip._base.frame import table_of
from callslip.errors import UsageError
from callslip.parts import File, Marks, file_of

__all__ = ["ResultError", "from_json", "result_json", "to_json"]


FileT = TypeVar("FileT", bound=File | None)


class ResultError(ValueError):
    """A result has no JSON form, by a fault of its tool."""

    # Another attempt would return the like.
    _is_final = True


def to_json(value: object) -> str:
    """Return compact JSON text for any object.

    Strings, numbers, lists and dicts are written as they are. Pydantic models, dataclasses, enums,
    dates, paths, UUIDs and decimals as pydantic writes them; sets sorted, so that equal results
    have equal text; bytes as text if they are UTF-8, else in base64; data frames by rows, with
    their size first; arrays as lists; NaN, infinities and integers of more than 4,300 digits as
    strings, because few can read such numbers; numbers of other kinds and errors as `str(value)`.

    Raises:
        ResultError: Two keys of a dict are the same in JSON, something was not awaited, an object
            has no JSON form or contains itself, or the value is nested too deeply.
    """
    if type(value) is int and -(10**18) < value < 10**18:
        return str(value)
    try:
        text = _dumps(value)
        if type(value) in _NESTING:
            _check_keys(value)
    except ResultError:
        raise
    except Exception:  # noqa: BLE001  # any object of the program may raise anything while it is read
        try:
            text = _dumps(_to_plain(value, {}))
        except ResultError:
            raise
        except Exception:  # noqa: BLE001
            text = _dumps(_to_text(value))
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # The log is UTF-8, which cannot contain half of a surrogate pair.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_marks: ContextVar[Marks | None] = ContextVar("marks", default=None)
"""The images and files of the result that is being written."""


def result_json(value: object) -> tuple[str, list[_core.Part]]:
    """Return compact JSON text for a result, with marks for its images and files.

    Images of PIL and figures of matplotlib become PNG; bytes that are an image or a PDF become one.

    Raises:
        ResultError: As for `to_json`.
    """
    if type(value) in _WITHOUT_MARKS:
        return to_json(value), []
    marks = Marks()
    token = _marks.set(marks)
    try:
        text = to_json(value)
    finally:
        _marks.reset(token)
    # A value may have been written twice, if the first attempt failed.
    return text, [part for part in marks.parts if part.label in text] if marks.parts else []


_WITHOUT_MARKS = {str, int, float, bool, type(None)}
_NESTING = {dict, list, tuple}
_TEXT = {str}


def _check_keys(value: Any) -> None:
    """Check that no two keys are the same in JSON. The value has no cycles: it was written."""
    todo = [value]
    for one in todo:
        items = one
        if type(one) is dict:
            if not _TEXT.issuperset(map(type, one)):
                _check_own_keys(one)
            items = one.values()
        todo += [item for item in items if type(item) in _NESTING]


def _check_own_keys(value: dict[Any, Any]) -> None:
    known: dict[str, Any] = {}
    for key in value:
        text = _key(key)
        if text in known:
            raise ResultError(f"object keys collide in JSON: {known[text]!r} and {key!r}")
        known[text] = key


_LARGE = 10**4300
"""The first integer that Python does not convert to digits."""


def from_json(text: str) -> Any:
    """Read JSON text. An integer with too many digits for Python becomes a `Decimal`."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        return _decimal(digits)


def _decimal(digits: str | int) -> Any:
    return _lazy.decimal.Decimal(digits)


def _dumps(value: object) -> str:
    return _encoder.encode(value)


def _to_json_type(value: object) -> Any:  # a line for each kind
    """Convert an object to a type of JSON, one level deep."""
    if isinstance(value, File):
        return _mark(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _dump_model(dump)
    if hasattr(type(value), "__dataclass_fields__"):
        return {one.name: getattr(value, one.name) for one in fields(cast("Any", value))}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(value))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda item: (type(item).__name__, str(item)))

    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, MappingView)):
        return list(cast("Iterable[Any]", value))
    return _from_library(value)


def _mark(file: File) -> str:
    """Return the mark of an image or file."""
    marks = _marks.get()
    if marks is None:
        kind = type(file).__name__
        raise ResultError(f"expected a value that has JSON: got an {kind}, which only results have")
    return marks.mark(file)


def _of_bytes(data: bytes) -> str:
    """Return the mark of an image or a PDF, and the text of any other bytes."""
    if _marks.get() is not None and _core.Part.guess_type(data, None) is not None:
        return _mark(_made(File, data))
    return _bytes_text(data)


def _made(make: Callable[[Any], FileT], value: object) -> FileT:
    """Return the image or file of a value, or fail the call if it is too large."""
    try:
        return make(value)
    except UsageError as error:
        raise ResultError(str(error)) from error


def _dump_model(dump: Callable[..., Any]) -> Any:
    try:
        return dump(mode="json")
    except Exception:  # noqa: BLE001  # bytes that are no text, a value of an unknown type
        return dump()


def _array_to_list(array: Any) -> Any:
    kind = getattr(getattr(array, "dtype", None), "kind", "")
    if kind in {"M", "m"}:
        # With nanoseconds, `tolist` would return integers.
        array = array.astype("datetime64[us]" if kind == "M" else "timedelta64[us]")
    return array.tolist()


def _from_library(value: object) -> Any:
    """Convert an object of a library by its own methods, without importing the library."""
    if not isinstance(value, type):
        if hasattr(value, "__await__"):
            if isinstance(value, CoroutineType):
                value.close()
            kind = type(value).__name__
            raise ResultError(f"a {kind} was not awaited: await it first")
        if type(value).__name__ in {"NaTType", "NAType"}:
            # A missing value of pandas.
            return None
        table = table_of(value)
        if table is not None:
            return table
        if callable(getattr(value, "tolist", None)):
            return _array_to_list(value)
        if _marks.get() is not None and (file := _made(file_of, value)) is not None:
            return _mark(file)
    try:
        return _lazy.pydantic_core.to_jsonable_python(
            value, fallback=_to_text, inf_nan_mode="strings"
        )
    except ResultError:
        raise
    except Exception:  # noqa: BLE001  # an object that can't be read
        return _to_text(value)


_DEEPEST = 200
"""The levels of nested objects that are read here, since each level takes Python frames."""


def _to_plain(value: Any, above: dict[int, object]) -> Any:
    """Replace values that the encoder refuses: NaN, other keys than strings, other objects.

    `above` has the objects that contain this one, by their `id`. An object among them has no end.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and abs(value) >= _LARGE:
        return str(_decimal(int(value)))
    if value is None or isinstance(value, (str, int, float)):
        return value
    if id(value) in above:
        raise _shape_error(f"{_kind(value)} that contains itself")
    if len(above) >= _DEEPEST:
        raise _shape_error(f"{_kind(next(iter(above.values())))} with more than {_DEEPEST} levels")
    above[id(value)] = value
    try:
        if isinstance(value, dict):
            _check_own_keys(value)
            return {_key(key): _to_plain(item, above) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_to_plain(item, above) for item in value]
        return _to_plain(_to_json_type(value), above)
    finally:
        del above[id(value)]


def _shape_error(what: str) -> ResultError:
    return ResultError(
        f"expected a result that has JSON: got an object of {what}. Return the parts of it that "
        "are to be read"
    )


def _key(key: object) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, bytes):
        return _bytes_text(key)
    if key is None or isinstance(key, (bool, int, float)):
        return _to_plain(key, {}) if isinstance(_to_plain(key, {}), str) else json.dumps(key)
    return str(key)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def _to_text(value: object) -> str:
    """Return the text of a number or an error; the text of any other object is useless."""
    if isinstance(value, Number | BaseException):
        return _text(value)
    raise _not_json_error(value)


def _not_json_error(value: object) -> ResultError:
    return ResultError(
        f"expected a result that has JSON: got an object of {_kind(value)}. Return what it holds: "
        "text, numbers, lists, dicts, a dataclass or a pydantic model"
    )


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _text(value: object) -> str:
    try:
        # A memory address makes equal results different.
        return re.sub(r" at 0x[0-9a-fA-F]+>", ">", str(value))
    except Exception:  # noqa: BLE001  # the object's own __str__ is at fault
        return f"<{type(value).__qualname__}>"


# Made once: `json.dumps` with options makes a new encoder for each call.
_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_to_json_type
)
