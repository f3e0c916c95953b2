"""Clients without retries of their own."""

from __future__ import annotations

from collections.abc import Callable

from callslip.models._clients import find_client

__all__ = ["without_client_retries"]


def without_client_retries(create: Callable[..., object]) -> Callable[..., object]:
    """Return the method that requests a reply, of a client that does not retry by itself.

    Args:
        create: A bound method of a client such as `client.chat.completions`, or a function, which
            is returned unchanged.
    """
    client = getattr(getattr(create, "__self__", None), "_client", None)
    with_options = getattr(client, "with_options", None)
    if not callable(with_options):
        return create
    found = find_client(with_options(max_retries=0))
    return create if found is None else found[1]
