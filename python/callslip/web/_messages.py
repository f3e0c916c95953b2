"""Server-sent events as text, as the HTML standard defines them."""

from __future__ import annotations

__all__ = ["KEEP_ALIVE", "RETRY", "SILENCE", "message"]

SILENCE = 15.0
"""Seconds after which a comment tells proxies that the connection is alive."""

KEEP_ALIVE = b": \n\n"
"""A comment, which browsers ignore."""

RETRY = b"retry: 1000\n\n"
"""Lets a browser connect again after a second."""


def message(event: str, data: str, seq: int | None = None) -> bytes:
    """Return one message.

    Args:
        event: Its kind, which the page listens for.
        data: JSON in one line.
        seq: The number that the browser sends as `Last-Event-ID` when it connects again. Default:
            none, and the browser keeps the one before.
    """
    place = "" if seq is None else f"id: {seq}\n"
    return f"{place}event: {event}\ndata: {data}\n\n".encode()
