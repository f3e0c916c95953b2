"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Self

from callslip.models._client_model import ClientModel
from callslip.models._client_retries import without_client_retries
from callslip.models._clients import is_async_create
from callslip.models._grammar_forms import GrammarForm
from callslip.models._reply import Messages
from callslip.models._turns import split_system

__all__ = ["AnthropicModel"]

_DEFAULT_MAX_TOKENS = 4096


class AnthropicModel(ClientModel):
    """A model behind `client.messages.create`, sync or async; made by `as_model`.

    System messages go into the request's `system`; neighbours of one role are joined and empty
    messages left out, because the API requires alternating turns with text. A call returns the
    client's own result, an awaitable for an async client; errors of the client go through
    unchanged.

    Args:
        create: The client's method.
        model: The model's name.
        stream: Ask for a streamed reply, so that it can be stopped early. Default true.
        grammar: `"json_schema"` for structured output, which describes replies of the react
            protocol; `None` (default) for none.
        context: The tokens that the messages and the reply may have together. Default: not known.
        **options: Parameters of every request, as the client names them (`max_tokens`,
            `thinking`, `cache_control`, ...). They win over what a run offers; `None` means never
            sent. Without one and without an offer `max_tokens` is 4096 (the API requires it).

    Attributes:
        model: The model's name.
        accepts: The keywords it takes from a run: `stop`, `max_tokens` and perhaps `grammar`.
        grammar_form: As `grammar`.
        is_async: Whether the client is async.

    Raises:
        UsageError: An option that is not the caller's to set, or that the API does not have.
    """

    _SENT: Mapping[str, str] = {"stop": "stop_sequences", "max_tokens": "max_tokens"}
    _DECIDED = ("messages", "system")
    _FORMS = ("auto", "json_schema")

    def __init__(
        self,
        create: Callable[..., object],
        *,
        model: str | None = None,
        stream: bool = True,
        grammar: GrammarForm | None = None,
        context: int | None = None,
        **options: object,
    ) -> None:
        super().__init__(
            create,
            model=model,
            stream=stream,
            grammar=grammar,
            is_async=is_async_create(create),
            context=context,
            **options,
        )

    def _stops(self, stop: Sequence[str]) -> list[str] | None:
        # The API takes none of white space alone.
        return [text for text in stop if text.strip()] or None

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        system, turns = split_system(messages)
        if system:
            request["system"] = system
        request.setdefault("max_tokens", _DEFAULT_MAX_TOKENS)
        if self._stream:
            request["stream"] = True
        return self._client(model=self.model, messages=turns, **request)

    def without_retries(self) -> Self:
        """Return this model with a client that does not retry by itself."""
        model = copy(self)
        model._client = without_client_retries(self._client)
        return model

    def _put_grammar(
        self, request: dict[str, object], form: GrammarForm, text: str | Mapping[str, object]
    ) -> None:
        told: Any = request.get("output_config") or {}
        request["output_config"] = {**told, "format": {"type": form, "schema": text}}
