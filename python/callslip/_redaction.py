"""Secrets that are given for a service: kept out of results, errors and logs."""

from __future__ import annotations

import base64
import functools
import html
import json
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from urllib.parse import quote, quote_plus

__all__ = ["Secrets"]

_MARK = "***"

_MOST_GIVEN = 256

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
        self._shortest = shortest
        self._lock = threading.Lock()
        self._lasting = {text: _forms(text) for text in texts}
        self._given: dict[str, set[str]] = {}
        self._gather()

    def add(self, texts: Iterable[str]) -> None:
        """Hide these too from now on; of all that were ever added, the last 256."""
        with self._lock:
            for text in texts:
                if text not in self._lasting:
                    known = self._given.pop(text, None)
                    self._given[text] = _forms(text) if known is None else known
                    if known is None:
                        while len(self._given) > _MOST_GIVEN:
                            del self._given[next(iter(self._given))]
                        self._gather()

    def _gather(self) -> None:
        forms = set[str]().union(*self._lasting.values(), *self._given.values())
        kept = (form for form in forms if len(form) >= self._shortest)
        self._written = sorted(kept, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._written)

    def hidden(self, text: str) -> str:
        """Return the text without them."""
        for form in self._written:
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

    @staticmethod
    def of_this_context() -> Secrets | None:
        """Return those that are kept out of what clients log in this context."""
        return _in_use.get()

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


def _forms(text: str) -> set[str]:
    """Return the forms of a secret in URLs, JSON, HTML, Python's logs and headers."""
    # What a server made of the bytes if it took them for Latin-1.
    misread = text.encode().decode("latin-1")
    plain = {text, misread, base64.b64encode(text.encode()).decode()}
    written = set(plain)
    for one in plain:
        for encoded in (
            *(quote(one, safe=safe) for safe in ("", "/", "!'()*")),
            *(quote_plus(one, safe=safe) for safe in ("", "/")),
        ):
            written |= {encoded, re.sub("%..", lambda code: code[0].lower(), encoded)}
        for single, double in product(("&#x27;", "&#39;", "'"), ("&quot;", "&#34;", '"')):
            page = html.escape(one, quote=False).replace("'", single)
            written.add(page.replace('"', double))
        for raw in (repr(one)[1:-1], repr(one.encode())[2:-1]):
            # Which quotes are escaped hangs on the others in the text around it.
            for shown in (raw, re.sub(r"(?<!\\)'", r"\'", raw)):
                written |= {shown, shown.replace("\\", r"\\")}
    for _ in range(2):
        # JSON, and JSON in a string of JSON.
        for one in list(written):
            for ascii_only in (True, False):
                string = json.dumps(one, ensure_ascii=ascii_only)[1:-1]
                written |= {string, string.replace("/", r"\/"), _without_markup(string)}
    return written


def _without_markup(string: str) -> str:
    return string.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


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
