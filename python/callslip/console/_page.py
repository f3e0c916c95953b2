"""The document of each page, with its style and its script, and what it allows a browser to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, Self

from callslip.look._style import page_style, policy_hash, shipped
from callslip.look._text import Texts

__all__ = ["Piece", "headers", "live_page", "message_page", "sign_in_page"]

_TEXTS = Texts(limit=5_000, redact=None)


class Piece(NamedTuple):
    """A piece of a page.

    Attributes:
        digest: Tells whether the piece has changed.
        html: The markup.
    """

    digest: str
    html: str

    @classmethod
    def of(cls, html: str) -> Self:
        """Return the piece of some markup."""
        return cls(hashlib.sha256(html.encode(errors="replace")).hexdigest()[:16], html)


@cache
def _style() -> str:
    return page_style() + shipped("callslip.console", "console.css")


@cache
def _script() -> str:
    return shipped("callslip.console", "console.js")


@cache
def headers() -> Mapping[str, str]:
    """Return the headers of every answer."""
    policy = (
        f"default-src 'none'; style-src {policy_hash(_style())}; "
        f"script-src {policy_hash(_script())}; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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


def live_page(
    title: str,
    sections: Mapping[str, Sequence[Piece]],
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


def _piece(piece: Piece, tag: str = "div") -> str:
    return f'<{tag} class="piece" data-digest="{piece.digest}">{piece.html}</{tag}>'


def _table(rows: Sequence[Piece], names: Sequence[str]) -> str:
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
    return (
        f'<!doctype html>\n<html lang="en" data-events="{events}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{more}<title>{_TEXTS.line(title)}</title><style>{_style()}</style></head>\n"
        f"<body><main>{main}</main><script>{_script()}</script></body></html>\n"
    )
