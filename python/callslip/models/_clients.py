"""Telling client objects by what they can do; no client library is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Literal, TypeAlias

__all__ = ["Wire", "find_client", "is_async_create", "wire_of"]

Wire: TypeAlias = Literal["openai", "anthropic"]
"""Whose parameters a client's `create` takes."""


def find_client(client: object) -> tuple[Wire, Callable[..., object]] | None:
    """The method of a client object that asks for one reply, or `None` if it is no known client."""
    create = _attribute(client, "chat", "completions", "create")
    if callable(create):
        return "openai", create
    create = _attribute(client, "messages", "create")
    if callable(create):
        return "anthropic", create
    return None


def wire_of(create: object) -> Wire | None:
    """Whose parameters a function takes that is itself such a method, like LiteLLM's."""
    try:
        names = inspect.signature(create).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if "model" not in names or "messages" not in names:
        return None
    return "anthropic" if "stop_sequences" in names else "openai"


def is_async_create(create: object) -> bool:
    """Whether a client's method is async, behind the decorators of its library."""
    if not callable(create):
        return False
    return inspect.iscoroutinefunction(inspect.unwrap(create))


def _attribute(value: object, *names: str) -> object:
    for name in names:
        value = getattr(value, name, None)
    return value
