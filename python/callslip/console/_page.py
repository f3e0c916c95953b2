"""The document of each page, with its style and its script, and what it allows a browser to do."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from callslip.look._style import page_style
from callslip.look._text import Texts

__all__ = ["digest_of", "headers", "live_page", "message_page", "sign_in_page"]

_TEXTS = Texts(limit=5_000, redact=None)


@dataclass(frozen=True, slots=True)
class _Assets:
    style: str
    script: str


@cache
def _assets() -> _Assets:
    return _Assets(page_style() + _file("console.css"), _file("console.js"))


def _file(name: str) -> str:
    text = resources.files("callslip.console").joinpath(name).read_text("utf-8")
    # A browser reads the ends of lines so, and takes the hash of what it has read.
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def headers() -> Mapping[str, str]:
    """Return the headers of every answer."""
    assets = _assets()
    policy = (
        f"default-src 'none'; style-src {_hash(assets.style)}; script-src {_hash(assets.script)}; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def digest_of(piece: str) -> str:
    """Return what tells whether a piece of a page has changed."""
    return hashlib.sha256(piece.encode(errors="replace")).hexdigest()[:16]


def live_page(
    title: str,
    sections: Mapping[str, Sequence[str]],
    *,
    events: str,
    above: str = "",
    table: Sequence[str] = (),
) -> str:
    """Return a page whose pieces are replaced as they change.

    Args:
        title: The title, as text.
        sections: The parts of the page by name, each with its pieces.
        events: The address of its changes.
        above: Markup that stays.
        table: The names of the columns if the rows are those of a table.
    """
    parts = []
    for name, pieces in sections.items():
        if name == "rows" and table:
            parts.append(_table(pieces, table))
        else:
            parts.append(f'<div data-section="{name}">{"".join(map(_piece, pieces))}</div>')
    live = '<p id="live" role="status">not live: the page needs JavaScript</p>'
    said = '<p id="said" role="status" tabindex="-1"></p>'
    return _document(title, f"{above}{live}{said}{''.join(parts)}", events)


def _piece(html: str, tag: str = "div") -> str:
    return f'<{tag} class="piece" data-digest="{digest_of(html)}">{html}</{tag}>'


def _table(rows: Sequence[str], names: Sequence[str]) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(_piece(row, "tr") for row in rows)
    return (
        f'<table><thead><tr>{heads}</tr></thead><tbody data-section="rows">{body}</tbody></table>'
    )


def sign_in_page(message: str, action: str, *, again: bool) -> str:
    """Return the page that asks for the token.

    Args:
        message: Why it is shown.
        action: The address that takes the token.
        again: Whether it asks for its own address once more, as a link of its own.
    """
    refresh = '<meta http-equiv="refresh" content="0">' if again else ""
    return _document(
        "Sign in",
        f'<h1>Sign in</h1><p>{_TEXTS.line(message)}</p><form method="post" action="{action}">'
        '<label>Token <input name="token" type="password" autocomplete="current-password">'
        "</label><button>Sign in</button></form>",
        more=refresh,
    )


def message_page(title: str, message: str, base: str) -> str:
    """Return a page that says why something is not shown."""
    return _document(
        title,
        f'<p><a href="{base}/">Runs</a></p><h1>{_TEXTS.line(title)}</h1>{_TEXTS.block(message)}',
    )


def _document(title: str, main: str, events: str = "", more: str = "") -> str:
    assets = _assets()
    return (
        f'<!doctype html>\n<html lang="en" data-events="{events}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{more}<title>{_TEXTS.line(title)}</title><style>{assets.style}</style></head>\n"
        f"<body><main>{main}</main><script>{assets.script}</script></body></html>\n"
    )
