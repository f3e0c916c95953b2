"""The document of each page, with its style and its script, and what it allows a browser to do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, Self

from callslip.look._markup import DOCTYPE, Markup, el, joined
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
    out_at: str,
    above: Markup | None = None,
    table: Sequence[str] = (),
) -> Markup:
    """Return a page whose pieces are replaced as they change.

    Args:
        title: The title, as text.
        sections: The parts of the page by name, each with its pieces.
        events: The address of its changes.
        out_at: The address that signs a person out.
        above: Markup that stays.
        table: The names of the columns if the rows are those of a table.
    """
    parts = []
    for name, pieces in sections.items():
        if name == "rows" and table:
            parts.append(_table(pieces, table))
        else:
            parts.append(el("div", map(_piece, pieces), data_section=name))
    live = el("p", "not live: the page needs JavaScript", id="live", role="status")
    said = el("p", id="said", role="status", tabindex="-1")
    out = el(
        "p", el("button", "Sign out", type="button", id="out", data_address=out_at), class_="out"
    )
    return _document(title, joined(above, live, said, parts, out), events)


def _piece(piece: Piece, tag: str = "div") -> Markup:
    return el(tag, Markup(piece.html), class_="piece", data_digest=piece.digest)


def _table(rows: Sequence[Piece], names: Sequence[str]) -> Markup:
    heads = el("thead", el("tr", (el("th", name, scope="col") for name in names)))
    return el("table", heads, el("tbody", (_piece(row, "tr") for row in rows), data_section="rows"))


def sign_in_page(message: str, action: str, *, again: bool) -> Markup:
    """Return the page that asks for the token.

    Args:
        message: Why it is shown.
        action: The address that takes the token.
        again: Whether it asks for its own address once more, as a link of its own.
    """
    refresh = el("meta", http_equiv="refresh", content="0") if again else None
    field = el("input", name="token", type="password", autocomplete="current-password")
    # Managers of passwords want a name beside it.
    name = el("input", name="name", value="console", autocomplete="username", hidden=True)
    form = el(
        "form",
        name,
        el("label", "Token ", field),
        el("button", "Sign in"),
        id="in",
        method="post",
        action=action,
    )
    content = joined(el("h1", "Sign in"), el("p", _TEXTS.line(message)), form)
    return _document("Sign in", content, more=refresh)


def message_page(title: str, message: str, base: str) -> Markup:
    """Return a page that says why something is not shown."""
    back = el("p", el("a", "Runs", href=f"{base}/"))
    return _document(title, joined(back, el("h1", _TEXTS.line(title)), _TEXTS.block(message)))


def _document(title: str, main: Markup, events: str = "", more: Markup | None = None) -> Markup:
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        more,
        el("title", _TEXTS.line(title)),
        el("style", Markup(_style())),
    )
    body = el("body", el("main", main), el("script", Markup(_script())))
    return joined(DOCTYPE, el("html", head, "\n", body, lang="en", data_events=events), "\n")
