"""Results of tools as JSON text, without pydantic where the values are plain; and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["from_json", "to_json"]


def to_json(value: object) -> str:
    """Return compact JSON text for any object; never raises for what a tool may return.

    Strings, numbers, lists and dicts are written as they are. Pydantic models, dataclasses, enums,
    dates, paths, UUIDs and decimals as pydantic writes them; sets sorted, so that equal results
    have equal text; bytes as text where they are UTF-8, else in base64; NaN, infinities and
    integers of more than 4,300 digits as strings, because few can read such numbers; anything else
    as `str(value)`.
    """
    if type(value) is int and -(10**18) < value < 10**18:
        return str(value)
    try:
        text = _dumps(value)
    except Exception:  # noqa: BLE001  # a foreign object may raise anything while it is read
        try:
            text = _dumps(_plain(value, 0))
        except Exception:  # noqa: BLE001
            text = _dumps(_text(value))
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no place in UTF-8, and so none in a log.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_LARGE = 10**4300
"""Integers that Python doesn't write in digits."""


def from_json(text: str) -> Any:
    """Read JSON text; an integer of more digits than Python reads becomes a `Decimal`."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        from decimal import Decimal

        return Decimal(digits)


def _dumps(value: object) -> str:
    return _encoder.encode(value)


def _known(value: object) -> Any:  # a line for each kind
    """Turn an object that JSON does not know into one it does, one level deep."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    fields: dict[str, Any] | None = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_text(bytes(value))
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda item: (type(item).__name__, str(item)))
    import enum

    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    to_list = getattr(value, "tolist", None)
    if callable(to_list) and not isinstance(value, type):
        return to_list()
    return _foreign(value)


def _foreign(value: object) -> Any:
    import pydantic_core

    try:
        return pydantic_core.to_jsonable_python(value, fallback=_text, inf_nan_mode="strings")
    except Exception:  # noqa: BLE001  # last resort for an object that can't be read
        return _text(value)


def _plain(value: Any, depth: int) -> Any:
    """Replace what the short way refuses: NaN, keys that are no strings, values too deep."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if depth > 100:
        return _text(value)
    if isinstance(value, dict):
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, int) and abs(value) >= _LARGE:
        from decimal import Decimal

        return str(Decimal(int(value)))
    if value is None or isinstance(value, (str, int, float)):
        return value
    return _plain(_known(value), depth + 1)


def _key(key: object) -> str:
    import enum

    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, bytes):
        return _bytes_text(key)
    if key is None or isinstance(key, (bool, int, float)):
        return _plain(key, 0) if isinstance(_plain(key, 0), str) else json.dumps(key)
    return str(key)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return base64.b64encode(data).decode()


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # the object's own __str__ is at fault
        return f"<{type(value).__qualname__}>"


# Made once: `json.dumps` with options of its own makes one for each call.
_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_known
)
