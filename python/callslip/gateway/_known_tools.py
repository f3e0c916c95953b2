"""Bodies whose tools were read before. Clients send the same tools with each request."""

from __future__ import annotations

import json
import marshal
import re
import secrets
import threading
from collections import OrderedDict
from typing import Any

from callslip.web._bodies import loads

__all__ = ["parsed"]

_FIELD = re.compile(r'"tools"\s*:\s*')
_LEAST = 2_000
"""Characters of tools that are worth the search."""
_MOST = 200_000
_MOST_KEPT = 16

_lock = threading.Lock()
_kept: OrderedDict[str, list[Any]] = OrderedDict()
# No client can write it.
_PLACE = secrets.token_hex(16)
_PLACE_FIELD = f'"tools":"{_PLACE}"'


def parsed(text: str) -> Any:
    """Return the JSON value of a body. The same tools give the same list, which is not changed.

    Raises:
        ValueError: The body is not JSON.
        RecursionError: It is nested too deeply.
    """
    if len(text) < _LEAST:
        return loads(text)
    with _lock:
        known = list(_kept.items())
    for field, rows in reversed(known):
        before, found, after = text.partition(field)
        if not found:
            continue
        # The text of a field has quotes, so that it can't be found inside of a string.
        body = loads(f"{before}{_PLACE_FIELD}{after}")
        if isinstance(body, dict) and body.get("tools") == _PLACE:
            body["tools"] = rows
            return body
        break
    body = loads(text)
    if isinstance(body, dict) and isinstance(rows := body.get("tools"), list):
        _keep(text, rows)
    return body


def _keep(text: str, rows: list[Any]) -> None:
    start = _FIELD.search(text)
    if start is None:
        return
    try:
        value, end = json.JSONDecoder().raw_decode(text, start.end())
    except ValueError:
        # It was the text of a string.
        return
    # Version 2 depends on values alone.
    is_same = value == rows and marshal.dumps(value, 2) == marshal.dumps(rows, 2)
    if is_same and _LEAST <= end - start.start() <= _MOST:
        with _lock:
            _kept[text[start.start() : end]] = rows
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
