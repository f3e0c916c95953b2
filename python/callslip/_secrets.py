"""Secrets that are given for a service: kept out of results, errors and logs."""

from __future__ import annotations

import base64
import functools
import json
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, quote_plus

__all__ = ["Secrets"]

_MARK = "***"

_LOGGERS = (
    "httpx",
    "httpx2",
    *(
        f"{library}.{part}"
        for library in ("httpcore", "httpcore2")
        for part in ("connection", "http11", "http2", "proxy", "socks")
    ),
    "hpack.hpack",
    "hpack.table",
    "urllib3.connectionpool",
    "aiohttp.client",
)
"""Those of the clients that send secrets, which tell of addresses and headers."""


class Secrets:
    """Texts that nobody is to see, in every form in which they may be written.

    Args:
        texts: The secrets.
        shortest: Characters of a secret; a shorter one would be found in any text.
    """

    def __init__(self, texts: Iterable[str], *, shortest: int = 4) -> None:
        found: set[str] = set()
        for text in texts:
            for plain in (text, base64.b64encode(text.encode()).decode()):
                found.update((plain, quote(plain, safe=""), quote_plus(plain)))
                found.update(
                    json.dumps(plain, ensure_ascii=escaped)[1:-1] for escaped in (True, False)
                )
        kept = (text for text in found if len(text) >= shortest)
        self._forms = sorted(kept, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def hidden(self, text: str) -> str:
        """Return the text without them."""
        for form in self._forms:
            text = text.replace(form, _MARK)
        return text

    def hidden_json(self, text: str) -> str:
        """Return compact JSON text without them: still JSON.

        They are hidden in strings and keys. A number that holds one becomes a string, and so does
        the whole where one goes over several values.
        """
        plain = _unescaped(text)
        if self.hidden(text) == text and (plain == text or self.hidden(plain) == plain):
            return text
        text = _values().sub(self._hidden_value, text)
        plain = _unescaped(text)
        clean = self.hidden(plain)
        return text if clean == plain else json.dumps(clean, ensure_ascii=False)

    def _hidden_value(self, match: re.Match[str]) -> str:
        value = match[0]
        plain = json.loads(value) if value.startswith('"') else value
        clean = self.hidden(plain)
        return value if clean == plain else json.dumps(clean, ensure_ascii=False)

    def begin(self) -> None:
        """Keep them out of what clients log in this context, to its end."""
        _in_use.set(self)
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            if _filter not in logger.filters:
                logger.addFilter(_filter)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep them out of what clients log meanwhile in this context."""
        before = _in_use.get()
        self.begin()
        try:
            yield
        finally:
            _in_use.set(before)


@functools.cache
def _values() -> re.Pattern[str]:
    """Return what fits the strings, numbers and words of JSON text. Compiled when it is needed."""
    return re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s"{}\[\],:]++')


def _unescaped(text: str) -> str:
    """Return JSON text as its strings read."""
    if "\\" not in text:
        return text
    return _escapes().sub(lambda escape: str(json.loads(f'"{escape[0]}"')), text)


@functools.cache
def _escapes() -> re.Pattern[str]:
    return re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")


class _Filter(logging.Filter):
    """Takes the secrets in use out of records."""

    def filter(self, record: logging.LogRecord) -> bool:
        secrets = _in_use.get()
        if secrets:
            message = record.getMessage()
            clean = secrets.hidden(message)
            if clean != message:
                record.msg, record.args = clean, ()
        return True


_filter = _Filter()
_in_use: ContextVar[Secrets | None] = ContextVar("callslip_secrets", default=None)
