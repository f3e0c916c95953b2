"""The tools of requests. Clients send the same ones again and again, so they are read once."""

from __future__ import annotations

import json
import marshal
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from callslip._core import ToolSet
from callslip.gateway._fields import listed, mapping, refusal, text
from callslip.gateway._refused import Refused
from callslip.models import ToolForm

__all__ = ["checked_form", "tools_of"]

_MOST_TOOLS = 128
_MOST_KEPT = 64
_LONGEST_KEPT = 1_000_000
"""Bytes of tools that are kept for the next request."""

Read = Callable[[object, str], "ToolForm | None"]
"""Returns the tool of a field with its place; `None` for a tool that is left out."""

_lock = threading.Lock()
_by_list: OrderedDict[tuple[Read, int], tuple[list[Any], tuple[ToolForm, ...]]] = OrderedDict()
_kept: OrderedDict[tuple[Read, bytes], tuple[ToolForm, ...]] = OrderedDict()


def tools_of(rows: object, read: Read) -> tuple[ToolForm, ...]:
    """Return the tools of a request: the same object for the same tools.

    Args:
        rows: The field.
        read: Reads one of them.

    Raises:
        Refused: They can't be used.
    """
    found = listed(rows, "tools")
    if not found:
        return ()
    with _lock:
        known = _by_list.get((read, id(found)))
        if known is not None and known[0] is found:
            return known[1]
    # Of all ways to compare them, this takes the least time. Version 2 depends on values alone.
    key = read, marshal.dumps(found, 2)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            _remember(read, found, _kept[key])
            return _kept[key]
    rows_read = (read(row, f"tools[{at}]") for at, row in enumerate(found))
    forms = tuple(form for form in rows_read if form is not None)
    _check(forms)
    if len(key[1]) <= _LONGEST_KEPT:
        with _lock:
            _kept[key] = forms
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    return forms


def _remember(read: Read, rows: list[Any], forms: tuple[ToolForm, ...]) -> None:
    """Keep the tools of a list, which may come again as the same object."""
    _by_list[read, id(rows)] = rows, forms
    while len(_by_list) > _MOST_KEPT:
        _by_list.popitem(last=False)


def _check(forms: Sequence[ToolForm]) -> None:
    if len(forms) > _MOST_TOOLS:
        raise Refused(
            400,
            f"expected at most {_MOST_TOOLS} tools: got {len(forms)}; pass those that the task "
            "needs",
            param="tools",
        )
    names: set[str] = set()
    for form in forms:
        if form.name in names:
            raise Refused(
                400,
                f"expected a name for each tool: got {form.name} twice; use another name",
                param="tools",
            )
        names.add(form.name)


def checked_form(given: Mapping[str, Any], place: str, key: str) -> ToolForm:
    """Return a tool with a schema that is complete in itself.

    Args:
        given: Its description.
        place: The place of that in the request.
        key: The field with the schema of its arguments. Without one, there are no arguments.

    Raises:
        Refused: It has another form, or refers to other documents.
    """
    parameters = given.get(key)
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    schema = mapping(parameters, f"{place}.{key}")
    if schema.get("type", "object") != "object":
        raise refusal(f"{place}.{key}.type", "'object'", schema["type"])
    try:
        ToolSet.check_returns(json.dumps(schema))
    except ValueError as error:
        raise Refused(
            400,
            f"expected {place}.{key} to be a JSON Schema without references to other documents: "
            f"{error}; pass a schema that is complete in itself",
            param=f"{place}.{key}",
        ) from error
    name = text(given.get("name"), f"{place}.name")
    return ToolForm(name, text(given.get("description") or "", f"{place}.description"), schema)
