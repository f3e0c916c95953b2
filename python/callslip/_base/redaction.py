"""Redaction: secrets are kept out of results, errors and logs.

There are two policies. `Secrets` redacts known secrets, in every escaped form.
`redact_likely_secrets` redacts texts that look like a secret.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from typing import TYPE_CHECKING, Any

from callslip._base import _lazy

if TYPE_CHECKING:
    import logging

__all__ = ["Secrets", "redact_credentials", "redact_likely_secrets"]

_MARK = "***"

_MOST_ADDED = 256

_LONGEST_TEXT = 10_000

# Bounded, so that no text takes long to search.
_BEFORE = r"(?<![\w-])[\w-]{0,40}?"
_KEY = (
    r"(?:access|account|admin|apim?|auth|client|encryption|license|master|private|secret|security"
    r"|service|shared|signing|subscription)[ _-]?key"
)
_PHRASE = r"secret|passw(?:or)?d|passphrase|pwd"
# Not `token` alone: a parser's "unexpected token: 'x'" holds no secret.
_SECRET = rf"{_BEFORE}(?:{_KEY}|{_PHRASE}|[_-]token|cookie|authorization|x-auth)"
_CREDENTIAL = rf"{_BEFORE}(?:{_KEY}|{_PHRASE}|token|credentials?|signature)"
# Quotes, including escaped ones of JSON inside a JSON string.
_QUOTE = r"\\{0,4}['\"]"
_ALONE = r"(?<![\w/.+=-])"
_SCHEME = r"(?:[A-Za-z][\w-]{1,30}\s{1,3})?"


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
"""Loggers of HTTP clients that write addresses and headers into the log."""


class Secrets:
    """Texts to redact, in every escaped form.

    Args:
        texts: The secrets.
        shortest: The least number of characters of a secret. A shorter one would be found in any
            text, and is ignored.
    """

    def __init__(self, texts: Iterable[str], *, shortest: int = 4) -> None:
        self._shortest = shortest
        self._lock = threading.Lock()
        self._permanent = {text: _forms(text) for text in texts}
        self._added: dict[str, set[str]] = {}
        self._collect_forms()

    def add(self, texts: Iterable[str]) -> None:
        """Redact these too from now on. Of all secrets that were added, the last 256 are kept."""
        with self._lock:
            for text in texts:
                if text not in self._permanent:
                    known = self._added.pop(text, None)
                    self._added[text] = _forms(text) if known is None else known
                    if known is None:
                        while len(self._added) > _MOST_ADDED:
                            del self._added[next(iter(self._added))]
                        self._collect_forms()

    def _collect_forms(self) -> None:
        forms = set[str]().union(*self._permanent.values(), *self._added.values())
        kept = (form for form in forms if len(form) >= self._shortest)
        self._forms = sorted(kept, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def redact(self, text: str) -> str:
        """Return a text with each secret replaced by `***`."""
        for form in self._forms:
            text = text.replace(form, _MARK)
        return text

    def redact_json(self, text: str) -> str:
        """Return compact JSON text with each secret replaced; the result is still JSON.

        Secrets are replaced in strings and keys. A number that contains one becomes a string. If a
        secret spans several values, the whole text becomes one string.
        """
        plain = _unescape(text)
        if self.redact(text) == text and (plain == text or self.redact(plain) == plain):
            return text
        text = _json_values().sub(self._redact_value, text)
        plain = _unescape(text)
        clean = self.redact(plain)
        return text if clean == plain else json.dumps(clean, ensure_ascii=False)

    def _redact_value(self, match: re.Match[str]) -> str:
        value = match[0]
        plain = json.loads(value) if value.startswith('"') else value
        clean = self.redact(plain)
        return value if clean == plain else json.dumps(clean, ensure_ascii=False)

    def redact_value(self, value: Any) -> Any:
        """Return a JSON value with the secrets replaced in its strings and keys."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_value(one) for one in value]
        if isinstance(value, dict):
            return {self.redact(name): self.redact_value(one) for name, one in value.items()}
        return value

    def redact_schema(self, schema: Any) -> Any:
        """Return a JSON Schema with the secrets replaced in its descriptions.

        Names and allowed values stay, because the server knows them in no other form. A default
        or an example that contains a secret is removed.
        """
        if isinstance(schema, list):
            return [self.redact_schema(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        clean: dict[str, Any] = {}
        for name, one in schema.items():
            if name in {"description", "title", "$comment"} and isinstance(one, str):
                clean[name] = self.redact(one)
            elif name in {"properties", "$defs", "definitions"} and isinstance(one, dict):
                clean[name] = {inner: self.redact_schema(part) for inner, part in one.items()}
            elif name not in {"default", "examples"} or self.redact_value(one) == one:
                clean[name] = self.redact_schema(one)
        return clean

    @staticmethod
    def of_this_context() -> Secrets | None:
        """Return the secrets that are redacted in the logs of this context."""
        return _in_logs.get()

    def redact_logs(self) -> None:
        """Redact the log records of HTTP clients in this context, until the context ends."""
        _in_logs.set(self)
        for name in _LOGGERS:
            logger = _lazy.logging.getLogger(name)
            if _redact_record not in logger.filters:
                logger.addFilter(_redact_record)

    @contextmanager
    def redacting_logs(self) -> Iterator[None]:
        """Redact the log records of HTTP clients in this context while the block is open."""
        before = _in_logs.get()
        self.redact_logs()
        try:
            yield
        finally:
            _in_logs.set(before)


def _forms(text: str) -> set[str]:
    """Return the forms of a secret in URLs, JSON, HTML, Python's logs and headers."""
    # A server may have read the bytes as Latin-1.
    misread = text.encode().decode("latin-1")
    plain = {text, misread, b2a_base64(text.encode(), newline=False).decode()}
    written = set(plain)
    for one in plain:
        for encoded in (
            *(_lazy.urllib_parse.quote(one, safe=safe) for safe in ("", "/", "!'()*")),
            *(_lazy.urllib_parse.quote_plus(one, safe=safe) for safe in ("", "/")),
        ):
            written |= {encoded, re.sub("%..", lambda code: code[0].lower(), encoded)}
        for single, double in product(("&#x27;", "&#39;", "'"), ("&quot;", "&#34;", '"')):
            page = _lazy.html.escape(one, quote=False).replace("'", single)
            written.add(page.replace('"', double))
        for raw in (repr(one)[1:-1], repr(one.encode())[2:-1]):
            # Which quotes are escaped depends on the text around them.
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
def _json_values() -> re.Pattern[str]:
    """Return a pattern of the strings, numbers and words of JSON text. Compiled at first use."""
    return re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s"{}\[\],:]++')


def _unescape(text: str) -> str:
    """Return JSON text with the escapes of its strings resolved."""
    if "\\" not in text:
        return text
    return _escapes().sub(lambda escape: str(json.loads(f'"{escape[0]}"')), text)


@functools.cache
def _escapes() -> re.Pattern[str]:
    return re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")


def _redact_record(record: logging.LogRecord) -> bool:
    """Redact a record: a filter of loggers."""
    secrets = _in_logs.get()
    if secrets:
        message = record.getMessage()
        clean = secrets.redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
    return True


_in_logs: ContextVar[Secrets | None] = ContextVar("callslip_secrets", default=None)


def redact_likely_secrets(text: str) -> str:
    """Return the first 10,000 characters, with private-looking texts redacted.

    Removed are directories of this machine, memory addresses, and anything in the form of a
    credential.
    """
    text = redact_credentials(text[:_LONGEST_TEXT])
    for pattern, replacement in _places():
        text = pattern.sub(replacement, text)
    return text


def redact_credentials(text: str) -> str:
    """Return a text of any length without anything in the form of a credential."""
    folded = text.casefold()
    if not any(word in folded for word in _WORDS) and not _beginnings().search(text):
        return text
    for pattern, replacement in _credentials():
        text = pattern.sub(replacement, text)
    return text


@functools.cache
def _beginnings() -> re.Pattern[str]:
    """Return a pattern that every key without one of `_WORDS` matches."""
    return re.compile(rf"[A-Za-z0-9]{{15}}|AQ\.|hvs\.|SG\.|\d:|(?:{'|'.join(_PREFIXES)})[-_]")


# Each pattern of `_credentials` needs one of these or of `_beginnings`. Most texts have none.
_WORDS = (
    *("key", "secret", "token", "pass", "pwd", "credential", "signature", "sig=", "auth"),
    *("cookie", "bearer", "basic", "://", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xox", "eyj"),
    *("ya29", "glpat"),
)

_PREFIXES = (
    *("api_org", "bedrock-api-key", "csk", "dckr_pat", "dop_v1", "esecret", "figd", "fw", "gsk"),
    *("GOCSPX", "github_pat", "hf", "jina", "lin_api", "lsv2_pt", "lsv2_sk", "npm", "ntn", "nvapi"),
    *("PMAK", "pplx", "pypi", "r8", "shpat", "shpca", "shppa", "shpss", "tgp_v1", "tvly", "whsec"),
    *("xai", "xapp", "gh[pousr]", "gl[a-z]{2,5}"),
)
"""Beginnings of keys before `-` or `_`."""
_FORMS = (
    r"(?:sk|pk|rk)[-_][\w-]{16,}",
    rf"(?:{'|'.join(_PREFIXES)})[-_](?=[\w-]*(?:\d|[a-z][A-Z]|[A-Z]{{2}}))[\w-]{{16,}}",
    r"xox[a-z]-[\w-]{10,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    r"ABSK[\w+/=]{20,}",
    r"AIza[\w-]{20,}",
    r"AQ\.[\w-]{20,}",
    r"ya29\.[\w-]+",
    r"dapi[0-9a-f]{32}",
    r"hvs\.[\w-]{20,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    r"eyJ[\w-]{10,}\.[\w.-]+",
    # Telegram's and GLM's: two parts without a mark.
    r"\d{8,10}:[\w-]{35}\b",
    r"[0-9a-f]{32}\.[A-Za-z0-9]{16}\b",
)
_IDS = (
    r"(?:asst|batch|call|chatcmpl|cmpl|ctc|evt|fc|file|fp|gen|item|msg|ray|req|request|resp|rs|run"
    r"|session|span|srvtoolu|step|thread|toolu|trace|vs)"
)
"""Beginnings of ids, which are no secrets. Other texts of this form may be keys."""


@functools.cache
def _credentials() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    """Return each pattern with its replacement. Compiled for the first failure, not at import."""
    return (
        (
            re.compile(
                r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?"
                r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
            ),
            "…",
        ),
        (re.compile(r"(?<=://)[^/\s@'\"]+@"), "…@"),
        (re.compile(r"(?<=[?&])((?:key|sig|auth)=)[^&\s'\"]+", re.IGNORECASE), r"\1…"),
        # By the name before them: in quotes, and then without.
        (
            re.compile(
                rf"((?:{_CREDENTIAL}=|{_SECRET}\s{{0,9}}[:=]\s{{0,9}}))(?:'[^']*'|\"[^\"]*\")",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
        (re.compile(rf"({_CREDENTIAL}=)['\"]?[^&\s'\",;)…]+", re.IGNORECASE), r"\1…"),
        (
            re.compile(
                rf"((?:{_CREDENTIAL}|{_SECRET}){_QUOTE}\s*:\s*){_QUOTE}[^'\"]*['\"]", re.IGNORECASE
            ),
            r"\1…",
        ),
        (re.compile(r"(\b(?:x-api-key|cookie)['\"]?\s*[:=]\s*)[^\s,]+", re.IGNORECASE), r"\1…"),
        # Header tuples of clients: ('api-key', 'x').
        (
            re.compile(rf"({_SECRET}{_QUOTE},\s{{0,3}}b?){_QUOTE}[^'\"]*['\"]", re.IGNORECASE),
            r"\1…",
        ),
        (
            re.compile(
                r"(\b(?:proxy-)?authorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?" + _SCHEME + r")"
                r"[\w.~+/=:-]{8,}",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
        # It does not match "password: required".
        (
            re.compile(
                rf"({_SECRET}\s{{0,9}}[:=]\s{{0,9}}{_SCHEME})"
                r"(?=[^\s,;&'\"]*\d|[^\s,;&'\"]{20})[^\s,;&'\")}\]…]{8,}",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
        # Not "Basic authentication is required".
        (
            re.compile(
                r"\b((?:Bearer|Basic|Token)\s+)(?=\S*\d|\S{20})[\w.~+/=-]{8,}", re.IGNORECASE
            ),
            r"\1…",
        ),
        *_by_form(),
    )


def _by_form() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns of keys by their form, and of random words after the mention of a key."""
    return (
        # Keys with a known form.
        (re.compile(r"(?<![A-Za-z0-9])" + rf"(?:{'|'.join(_FORMS)})"), "…"),
        (
            re.compile(
                r"(?<![\w./+-])" + rf"(?!{_IDS}[-_])[A-Za-z][A-Za-z0-9]{{1,11}}"
                r"(?:[-_][A-Za-z0-9]{1,8}){0,2}[-_]"
                r"(?=[A-Za-z]*\d)(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{24,}[\w-]*"
            ),
            "…",
        ),
        # A long random word a little behind such a name: "Incorrect API key provided: …".
        (
            re.compile(
                rf"((?:{_KEY}|{_PHRASE}|token|credential|bearer)s?\b[^\n]{{0,40}}?)"
                rf"{_ALONE}(?=[A-Za-z_-]*\d)(?=[0-9_-]*[A-Za-z])"
                r"(?=[\w-]*?[A-Za-z0-9]{16})[\w+/-]{16,}=*",
                re.IGNORECASE,
            ),
            r"\1…",
        ),
    )


@functools.cache
def _places() -> tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]:
    return (
        # A memory address makes equal failures different.
        (re.compile(r" at 0x[0-9a-fA-F]+"), ""),
        (
            re.compile(r"(?:file://|(?<![\w:/.~-]))(/(?:[^\s/'\"<>|:,;()\[\]]+/)+)(?=[^\s/])"),
            _replace_directory,
        ),
        (
            re.compile(r"(?<![\w/])~(?:[A-Za-z_][\w-]*)?/(?:[^\s/'\"<>|:,;()\[\]]+/)*(?=[^\s/])"),
            "…/",
        ),
        (re.compile(r"\b[A-Za-z]:(?:\\+[^\\\s'\"<>|:]+)*\\+(?=[^\\\s])"), r"…\\"),
    )


def _replace_directory(path: re.Match[str]) -> str:
    """Replace `/home/me/data/` by `…/` if this machine has `/home`; else it may be a route."""
    _, first, *_ = path[1].split("/")
    return "…/" if os.path.isdir(f"/{first}") else path[0]  # noqa: PTH112  # `pathlib` is slow to import
