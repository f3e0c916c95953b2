"""OpenAI at its own address: chat completions for text, responses for tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from callslip.models._grammar_servers import host_of
from callslip.models._part_shapes import RESPONSES
from callslip.models._reply import Messages
from callslip.models._responses import ResponsesModel
from callslip.models.openai import OpenAIModel

__all__ = ["OpenAIClientModel", "own_responses"]

_SAME: Final = frozenset(
    {
        "extra_body",
        "extra_headers",
        "extra_query",
        "include",
        "max_output_tokens",
        "max_tokens",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "text",
        "timeout",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
"""The options that responses have under the same name."""
_NESTED: Final[Mapping[str, tuple[str, str]]] = {
    "reasoning_effort": ("reasoning", "effort"),
    "verbosity": ("text", "verbosity"),
}
"""Those that they have inside of another one."""


def own_responses(client: object) -> Callable[..., object] | None:
    """Return the method for responses of a client of OpenAI's own address; `None` for others."""
    method = getattr(getattr(client, "responses", None), "create", None)
    return method if host_of(client) == "api.openai.com" and callable(method) else None


class OpenAIClientModel(OpenAIModel):
    """A client of OpenAI's own address; made by `as_model`.

    A request with tools uses responses, because they keep the model's reasoning between calls.
    Other requests use chat completions. So does a request with tools if the model has an option or
    a kind of parts that only chat completions have.

    Args:
        create: The client's method for chat completions.
        responses: The client's method for responses.
        options: As for `OpenAIModel`.
    """

    _TAKES_TOOLS = True

    def __init__(
        self, create: Callable[..., object], *, responses: Callable[..., object], **options: Any
    ) -> None:
        super().__init__(create, **options)
        self._responses: ResponsesModel | None = None
        known = ("model", "stream", "context", "parts")
        parts = options.get("parts") or ()
        own = {k: v for k, v in options.items() if k not in (*known, "usage", "grammar")}
        fields = _response_fields(own)
        if fields is not None and set(parts) <= RESPONSES.keys():
            fields |= {name: options[name] for name in known if name in options}
            self._responses = ResponsesModel(responses, is_async=self.is_async, **fields)

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Request the reply to `messages`. Arguments as of `ClientModel`."""
        if self._responses is not None and offered.get("tools") is not None:
            return self._responses(messages, **offered)
        return super().__call__(messages, **offered)

    def without_retries(self) -> Self:
        """Return this model with a client that does not retry by itself."""
        model = super().without_retries()
        if self._responses is not None:
            model._responses = self._responses.without_retries()
        return model


def _response_fields(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of chat completions by the names of responses; `None` if one has none."""
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name in _NESTED:
            outer, inner = _NESTED[name]
            if value is not None:
                fields[outer] = {**(fields.get(outer) or options.get(outer) or {}), inner: value}
        elif name == "max_completion_tokens":
            fields["max_tokens"] = value
        elif name in _SAME:
            fields.setdefault(name, value)
        elif value is not None:
            return None
    return fields
