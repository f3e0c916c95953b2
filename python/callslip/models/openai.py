"""OpenAI's chat completions, and the many servers that offer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import copy
from typing import Any, ClassVar, Self, cast

from callslip._base.options import check_flag
from callslip.models._client_model import ClientModel
from callslip.models._client_retries import without_client_retries
from callslip.models._clients import is_async_create
from callslip.models._grammar_forms import GrammarForm
from callslip.models._grammar_servers import form_of_models, host_of, known_form
from callslip.models._items import FaultItem
from callslip.models._offered import check_create
from callslip.models._part_shapes import CHAT, Shapes, sent_messages, text_block
from callslip.models._providers import provider_of
from callslip.models._real_models import check_real_models
from callslip.models._reply import Messages
from callslip.models.native._chat import ChatReader, check_own_tools, tool_fields
from callslip.models.native._chat_messages import chat_messages, dialect_of
from callslip.models.native._faults import fault_of
from callslip.models.native._reply import Offer
from callslip.parts import PartKind

__all__ = ["GrammarForm", "OpenAIModel"]

_GRAMMAR_FIELDS: Mapping[GrammarForm, str] = {
    "gbnf": "grammar",
    "lark": "grammar",
    "sglang": "ebnf",
}


class OpenAIModel(ClientModel):
    """A model behind `client.chat.completions.create`, sync or async; made by `as_model`.

    A call returns the client's own result, an awaitable for an async client; errors of the client
    go through unchanged.

    Args:
        create: The client's method, or a function with its parameters.
        model: The model's name at the server.
        stream: Ask for a streamed reply, so that it can be stopped early. Default true.
        usage: Ask for the token counts of a streamed reply; false for a server that refuses
            `stream_options`. Default true.
        grammar: The form in which the server takes a grammar; `None` (default) if it takes none.
            With `"auto"` the server is asked for its models once, unless its address is known.
        context: The tokens that the messages and the reply may have together. Default: not known.
        parts: The kinds of images and files that are sent: `"image"`, `"pdf"` and `"audio"` (WAV
            and MP3). Default: the first two.
        **options: Parameters of every request, as the client names them (`temperature`,
            `extra_body`, ...). They win over what a run offers; `None` means never sent, so
            `stop=None` suits a server that refuses `stop`. With `max_completion_tokens` here no
            `max_tokens` is sent.

    Attributes:
        model: The model's name.
        provider: The provider, by the address of the client; `"openai"` for an address that is not
            known, and `None` without one.
        accepts: The keywords it takes from a run.
        grammar_form: As `grammar`.
        is_async: Whether the client is async.
        parts: The kinds of images and files that are sent.

    Raises:
        UsageError: An unknown form of grammar, or an option that is not the caller's to set.
    """

    _FORMS = ("auto", "gbnf", "lark", "vllm", "sglang", "fireworks", "json_schema")
    _SHAPES: ClassVar[Shapes] = CHAT
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset({"image", "pdf"})
    _TAKES_TOOLS = True

    def __init__(
        self,
        create: Callable[..., object],
        *,
        model: str | None = None,
        stream: bool = True,
        usage: bool = True,
        grammar: GrammarForm | None = None,
        context: int | None = None,
        parts: Collection[PartKind] | None = None,
        **options: object,
    ) -> None:
        check_create(create, "chat.completions.create")
        check_flag("usage", usage)
        self._usage = usage
        self._server = getattr(getattr(create, "__self__", None), "_client", None)
        host = host_of(self._server)
        if host == "api.openai.com" or options.get("max_completion_tokens") is not None:
            # Its reasoning models refuse the older name.
            self._SENT = {**self._SENT, "max_tokens": "max_completion_tokens"}
        self._dialect = dialect_of(create, host, model)
        # Of a server that has not been asked, the form is not known yet.
        self._is_form_known, self._known_form = known_form(host)
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
        return provider_of(self._server, "openai")

    def without_retries(self) -> Self:
        """Return this model with a client that does not retry by itself."""
        model = copy(self)
        model._client = without_client_retries(self._client)
        return model

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Request the reply to `messages`. Arguments as of `ClientModel`."""
        check_real_models(self)
        is_asked = self.grammar_form == "auto" and offered.get("grammar") is not None
        if not is_asked or self._is_form_known:
            return super().__call__(messages, **offered)
        listing = getattr(getattr(self._server, "models", None), "list", None)
        if not callable(listing):
            self._is_form_known = True
        elif self.is_async:
            return self._ask_and_call(listing, messages, offered)
        else:
            try:
                self._learn_form(listing())
            except Exception:  # noqa: BLE001  # a server without a list of models: no known one
                self._is_form_known = True
        return super().__call__(messages, **offered)

    async def _ask_and_call(
        self, listing: Callable[[], Any], messages: Messages, offered: Mapping[str, object]
    ) -> object:
        try:
            self._learn_form(await listing())
        except Exception:  # noqa: BLE001  # a server without a list of models: no known one
            self._is_form_known = True
        return await cast("Awaitable[object]", super().__call__(messages, **offered))

    def _learn_form(self, listing: object) -> None:
        self._known_form = form_of_models(listing)
        self._is_form_known = True

    def _forms(self) -> tuple[GrammarForm, ...]:
        if self.grammar_form != "auto":
            return super()._forms()
        return () if self._known_form is None else (self._known_form,)

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        return self._create(sent_messages(messages, self._SHAPES, text_block), request)

    def _create(self, turns: list[dict[str, Any]], request: dict[str, object]) -> object:
        if self._stream:
            request["stream"] = True
            if self._usage and "stream_options" not in self._options:
                request["stream_options"] = {"include_usage": True}
        return self._client(model=self.model, messages=turns, **request)

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        check_own_tools(self._options)
        turns = chat_messages(messages, self._dialect, self._SHAPES)
        return self._create(turns, {**tool_fields(offer), **request})

    def _reader(self, offer: Offer) -> ChatReader:
        del offer
        return ChatReader(self._dialect.service)

    def _fault(self, error: Exception) -> FaultItem | None:
        return fault_of(error)

    def _put_grammar(
        self, request: dict[str, object], form: GrammarForm, text: str | Mapping[str, object]
    ) -> None:
        if form == "fireworks":
            request["response_format"] = {"type": "grammar", "grammar": text}
            return
        told = cast("Mapping[str, object]", request.get("extra_body") or {})
        if form == "json_schema":
            named = {"name": "reply", "strict": True, "schema": text}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
            if host_of(self._server) == "openrouter.ai":
                # Otherwise it may choose a provider that ignores the schema.
                request["extra_body"] = {"provider": {"require_parameters": True}, **told}
            return
        body: dict[str, object] = dict(told)
        if form == "vllm":
            body["structured_outputs"] = {"grammar": text}
        else:
            body[_GRAMMAR_FIELDS[form]] = text
        if form in ("gbnf", "lark"):
            # llama.cpp applies the grammar to reasoning too, so there would be no reply behind it.
            body.setdefault("chat_template_kwargs", {"enable_thinking": False})
        request["extra_body"] = body
