"""Recognition of client objects by their methods; no client library is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

__all__ = ["FoundClient", "Kind", "find_client", "find_method", "is_async_create"]

Kind: TypeAlias = Literal[
    "openai",
    "responses",
    "anthropic",
    "google",
    "bedrock",
    "mistral",
    "cohere",
    "ollama",
    "langchain",
    "llm",
    "pipeline",
    "vllm",
    "llama",
]
"""The interface of a client."""


class FoundClient(NamedTuple):
    """A client that was recognised.

    Attributes:
        kind: Its interface.
        client: The method that requests one reply (`"openai"`, `"responses"`, `"anthropic"`), or
            the object that has the methods.
        is_async: Whether its replies are awaited.
    """

    kind: Kind
    client: Any
    is_async: bool


_LITELLM: Final = ("completion", "acompletion")

# All of these methods are there; the first one tells whether the client is async. The order
# matters where a client has methods of several.
_METHODS: Final[tuple[tuple[Kind, tuple[str, ...]], ...]] = (
    ("openai", _LITELLM),
    ("openai", ("chat.completions.create",)),
    ("anthropic", ("messages.create",)),
    ("google", ("models.generate_content", "models.generate_content_stream")),
    ("bedrock", ("converse", "converse_stream")),
    ("mistral", ("chat.complete", "chat.stream")),
    ("cohere", ("chat", "chat_stream")),
    ("llama", ("create_chat_completion",)),
    ("vllm", ("chat", "get_default_sampling_params")),
    ("ollama", ("chat", "generate", "pull")),
    ("langchain", ("invoke", "ainvoke", "stream", "astream")),
)
_FUNCTIONS = frozenset({"openai", "anthropic"})


def find_client(client: object) -> FoundClient | None:
    """Return the interface of a client; `None` for an unknown client."""
    for kind, paths in _METHODS:
        methods = [_attribute(client, path) for path in paths]
        if not all(callable(method) for method in methods):
            continue
        found: object = methods[0] if kind in _FUNCTIONS else client
        if kind == "mistral":
            found = _attribute(client, "chat")
        return FoundClient(kind, found, is_async_create(methods[0]))
    if callable(_attribute(client, "prompt")) and isinstance(_attribute(client, "model_id"), str):
        # Its method returns the response of an async model at once.
        return FoundClient(
            "llm", client, any("Async" in one.__name__ for one in type(client).__mro__)
        )
    if _attribute(client, "task") == "text-generation" and callable(client):
        return FoundClient("pipeline", client, is_async=False)
    return None


def find_method(method: object) -> FoundClient | None:
    """Return the interface of a client's method, or of a function with its parameters."""
    owner = getattr(method, "__self__", None)
    name = getattr(method, "__name__", "")
    if name in ("ainvoke", "complete_async") and owner is not None:
        return FoundClient("langchain" if name == "ainvoke" else "mistral", owner, is_async=True)
    if name in _LITELLM and all(callable(_attribute(owner, one)) for one in _LITELLM):
        # Those of a router may have no named parameters.
        return FoundClient("openai", method, is_async=name == "acompletion")
    try:
        names = inspect.signature(method).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    kind: Kind | None = None
    if "model" in names and "input" in names:
        kind = "responses"
    elif "model" in names and "messages" in names:
        kind = "anthropic" if "stop_sequences" in names else "openai"
    return None if kind is None else FoundClient(kind, method, is_async_create(method))


def is_async_create(create: object) -> bool:
    """Whether a client's method is async, behind the decorators of its library."""
    if not callable(create):
        return False
    method: Callable[..., object] = inspect.unwrap(create)
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _attribute(value: object, path: str) -> object:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value
