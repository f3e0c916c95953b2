"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

from callslip.models._client_model import ClientModel
from callslip.models._events import REPLY_TOOL
from callslip.models._grammar_forms import GrammarForm
from callslip.models._part_shapes import RESPONSES, Shapes, sent_messages
from callslip.models._providers import provider_of
from callslip.models._reply import Messages
from callslip.models.native._asking import ask, check_no_tools
from callslip.models.native._reply import Offer
from callslip.models.native._responses import (
    ENCRYPTED,
    SERVICE,
    ResponsesReader,
    input_of,
    refuses_encryption,
    refuses_reasoning,
    tool_fields,
)
from callslip.models.native._turns import turns_of
from callslip.parts import PartKind

__all__ = ["ResponsesModel"]


class ResponsesModel(ClientModel):
    """`client.responses.create`, sync or async."""

    # The API has neither stop sequences nor a seed.
    _SENT: Mapping[str, str] = {"max_tokens": "max_output_tokens"}
    _DECIDED = ("messages", "input")
    _LACKING = ("stop", "seed")
    _FORMS = ("auto", "json_schema", "custom_tool")
    _SHAPES: ClassVar[Shapes] = RESPONSES
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset({"image", "pdf"})
    _TAKES_TOOLS = True
    # Not all models can encrypt their reasoning.
    _is_encrypted: bool = True

    def _find_provider(self) -> str | None:
        client = getattr(getattr(self._client, "__self__", None), "_client", None)
        return provider_of(client, "openai")

    def without_retries(self) -> Self:
        """Return a model like this one whose client makes each request once."""
        client = getattr(getattr(self._client, "__self__", None), "_client", None)
        with_options: Any = getattr(client, "with_options", None)
        other = copy(self)
        if callable(with_options):
            other._client = with_options(max_retries=0).responses.create
        return other

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        if self._stream:
            request["stream"] = True
        turns = sent_messages(messages, self._SHAPES, _input_text)
        return self._client(model=self.model, input=turns, **request)

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        check_no_tools(self._options)
        if self._stream:
            request["stream"] = True
        if "store" not in self._options:
            request["store"] = False
        told: Any = request.pop("include", None) or ()
        service = [SERVICE]

        def send() -> object:
            include = [*told, *([ENCRYPTED] if self._is_encrypted else [])]
            extra = {"include": list(dict.fromkeys(include))} if include else {}
            turns = input_of(turns_of(messages, service[-1]), self._SHAPES)
            fields = {**request, **extra, **tool_fields(offer)}
            return self._client(model=self.model, input=turns, **fields)

        def learn(error: Exception) -> bool:
            if self._is_encrypted and refuses_encryption(error):
                self._is_encrypted = False
                return ENCRYPTED not in told
            is_news = service[-1] == SERVICE and refuses_reasoning(error)
            # Without a service, `turns_of` leaves out all data.
            service.append("")
            return is_news

        return ask(send, learn)

    def _reader(self, offer: Offer) -> ResponsesReader:  # noqa: ARG002  # as of `ClientModel`
        return ResponsesReader()

    def _put_grammar(
        self, request: dict[str, object], form: GrammarForm, text: str | Mapping[str, object]
    ) -> None:
        if form == "json_schema":
            told = request.get("text")
            named = {"type": form, "name": "reply", "schema": text, "strict": True}
            request["text"] = {**(told if isinstance(told, Mapping) else {}), "format": named}
            return
        # The input of the tool is the whole reply.
        wanted = {"type": "grammar", "syntax": "lark", "definition": text}
        request["tools"] = [{"type": "custom", "name": REPLY_TOOL, "format": wanted}]
        request["tool_choice"] = {"type": "custom", "name": REPLY_TOOL}
        request["parallel_tool_calls"] = False


def _input_text(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}
