"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

from callslip.models._client_model import ClientModel
from callslip.models._client_retries import without_client_retries
from callslip.models._clients import is_async_create
from callslip.models._grammar_forms import GrammarForm
from callslip.models._offered import check_create
from callslip.models._part_shapes import ANTHROPIC, Shapes, sent_messages, text_block
from callslip.models._providers import provider_of
from callslip.models._reply import Messages
from callslip.models._turns import split_system
from callslip.models.native._anthropic import (
    SERVICE,
    AnthropicReader,
    messages_request,
    refuses_thinking,
)
from callslip.models.native._asking import ask, check_no_tools
from callslip.models.native._reply import Offer
from callslip.models.native._turns import turns_of
from callslip.parts import PartKind

__all__ = ["AnthropicModel"]

_DEFAULT_MAX_TOKENS = 4096


class AnthropicModel(ClientModel):
    """A model behind `client.messages.create`, sync or async; made by `as_model`.

    System messages go into the request's `system`; neighbours of one role are joined and empty
    messages left out, because the API requires alternating turns with text. A call returns the
    client's own result, an awaitable for an async client; errors of the client go through
    unchanged. A reply to a request with tools is always streamed, because only a stream has the
    text of the arguments.

    Args:
        create: The client's method.
        model: The model's name.
        stream: Ask for a streamed reply, so that it can be stopped early. Default true.
        grammar: `"json_schema"` for structured output, which describes replies of the react
            protocol; `None` (default) for none.
        context: The tokens that the messages and the reply may have together. Default: not known.
        parts: The kinds of images and files that are sent. Default: `"image"` and `"pdf"`.
        **options: Parameters of every request, as the client names them (`max_tokens`,
            `thinking`, `cache_control`, ...). They win over what a run offers; `None` means never
            sent. Without one and without an offer `max_tokens` is 4096 (the API requires it).

    Attributes:
        model: The model's name.
        provider: The provider, by the address of the client; `"anthropic"` for an address that is
            not known, and `None` without one.
        accepts: The keywords it takes from a run: `stop`, `max_tokens`, `tools`, `tool_choice` and
            perhaps `grammar`.
        grammar_form: As `grammar`.
        is_async: Whether the client is async.
        parts: The kinds of images and files that are sent.

    Raises:
        UsageError: An option that is not the caller's to set, or that the API does not have.
    """

    _SENT: Mapping[str, str] = {"stop": "stop_sequences", "max_tokens": "max_tokens"}
    _DECIDED = ("messages", "system")
    _LACKING = ("seed",)
    _FORMS = ("auto", "json_schema")
    _SHAPES: ClassVar[Shapes] = ANTHROPIC
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset({"image", "pdf"})
    _TAKES_TOOLS = True

    def __init__(
        self,
        create: Callable[..., object],
        *,
        model: str | None = None,
        stream: bool = True,
        grammar: GrammarForm | None = None,
        context: int | None = None,
        parts: Collection[PartKind] | None = None,
        **options: object,
    ) -> None:
        check_create(create, "messages.create")
        super().__init__(
            create,
            model=model,
            stream=stream,
            grammar=grammar,
            is_async=is_async_create(create),
            context=context,
            parts=parts,
            **options,
        )

    def _find_provider(self) -> str | None:
        client = getattr(getattr(self._client, "__self__", None), "_client", None)
        return provider_of(client, "anthropic")

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
        sent = sent_messages(turns, self._SHAPES, text_block)
        return self._client(model=self.model, messages=sent, **request)

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        check_no_tools(self._options)
        options = {"max_tokens": _DEFAULT_MAX_TOKENS, **request, "stream": True}
        service = [SERVICE]

        def send() -> object:
            turns = turns_of(messages, service[-1])
            fields = messages_request(turns, offer, self._SHAPES, options)
            return self._client(model=self.model, **fields)

        def learn(error: Exception) -> bool:
            is_news = service[-1] == SERVICE and refuses_thinking(error)
            # Without a service, `turns_of` leaves out all data.
            service.append("")
            return is_news

        return ask(send, learn)

    def _reader(self, offer: Offer) -> AnthropicReader:  # noqa: ARG002  # as of `ClientModel`
        return AnthropicReader()

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
