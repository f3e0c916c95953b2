"""Models behind LangChain's chat models and the models of simonw's llm."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, ClassVar

from callslip.models._client_model import ClientModel
from callslip.models._fields import field
from callslip.models._finish_reasons import read_finish
from callslip.models._grammar_forms import GrammarForm
from callslip.models._items import FaultItem
from callslip.models._part_shapes import CHAT, Shapes, sent_messages, text_block
from callslip.models._reply import Message, Messages, ModelChunk
from callslip.models.native._chat import check_own_tools
from callslip.models.native._frameworks import (
    LangChainReader,
    bound_call,
    langchain_fault,
    langchain_messages,
    service_of,
    takes_tools,
)
from callslip.models.native._reply import Offer
from callslip.parts import File, PartKind

__all__ = ["LLMModel", "LangChainModel"]


def _attachment(part: File) -> Any:
    return importlib.import_module("llm").Attachment(type=part.media_type, content=part.data)


def _attachments(message: Message) -> list[Any]:
    # Texts between them would be joined by plugins.
    parts = message.get("parts", ()) if message["role"] == "user" else ()
    return [_attachment(part) for part in parts]


class LangChainModel(ClientModel):
    """`model.invoke` of a chat model of LangChain; its `ainvoke` for the async one.

    Options are keywords of `invoke`. Replies with tool calls are always streamed: a whole message
    has the arguments as an object, without what was wrong with their text.
    """

    # The name of `max_tokens` is another one for each provider.
    _SENT: Mapping[str, str] = {"stop": "stop"}
    _NEEDS_NAME = False
    _SHAPES: ClassVar[Shapes] = CHAT
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset({"image"})

    def __init__(self, client: Any, **options: Any) -> None:
        self._TAKES_TOOLS = takes_tools(client)
        super().__init__(client, **options)
        self._sent_model = self.model
        # Integrations call it one or the other.
        names = (getattr(client, name, None) for name in ("model_name", "model", "model_id"))
        known = (name for name in names if isinstance(name, str))
        self.model = self.model or next(known, None)

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        name = "stream" if self._stream else "invoke"
        call = getattr(self._client, f"a{name}" if self.is_async else name)
        if self._sent_model is not None:
            request["model"] = self._sent_model
        return call(sent_messages(messages, self._SHAPES, text_block), **request)

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        check_own_tools(self._options)
        call, keywords = bound_call(self._client, "astream" if self.is_async else "stream", offer)
        if self._sent_model is not None:
            request["model"] = self._sent_model
        turns = langchain_messages(messages, service_of(self._client), self._SHAPES)
        return call(turns, **{**keywords, **request})

    def _reader(self, offer: Offer) -> LangChainReader:
        del offer
        return LangChainReader(service_of(self._client))

    def _fault(self, error: Exception) -> FaultItem | None:
        return langchain_fault(error)


class LLMModel(ClientModel):
    """`model.prompt` of a model of simonw's llm, sync or async.

    Options are options of the model, or parameters of `prompt`.
    """

    _NEEDS_NAME = False
    _FORMS = ("auto", "json_schema")
    _SHAPES: ClassVar[Shapes] = dict.fromkeys(("image", "pdf", "audio", "video"), _attachment)

    def __init__(self, client: Any, **options: Any) -> None:
        # The options of a model are its plugin's. Where it has `stop`, it is one string.
        fields = getattr(getattr(client, "Options", None), "model_fields", ())
        self._SENT = {name: name for name in ("seed", "max_tokens") if name in fields}
        super().__init__(client, **options)
        self.model = self.model or client.model_id

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        llm: Any = importlib.import_module("llm")
        make = {"system": llm.system, "user": llm.user, "assistant": llm.assistant}
        turns = [
            make[message["role"]](message["content"], *_attachments(message))
            for message in messages
        ]
        streams = self._stream and bool(getattr(self._client, "can_stream", False))
        response = self._client.prompt(messages=turns, stream=streams, **request)
        return _chunks(response) if hasattr(response, "__iter__") else _chunks_async(response)

    def _forms(self) -> tuple[GrammarForm, ...]:
        is_auto = self.grammar_form == "auto"
        return () if is_auto and not self._client.supports_schema else super()._forms()

    def _put_grammar(
        self, request: dict[str, object], form: GrammarForm, text: str | Mapping[str, object]
    ) -> None:
        del form
        request["schema"] = text


def _chunks(response: Any) -> Iterator[ModelChunk]:
    for event in response.stream_events():
        yield _chunk(event)
    yield _end(response, response.usage())


async def _chunks_async(response: Any) -> AsyncIterator[ModelChunk]:
    async for event in response.astream_events():
        yield _chunk(event)
    yield _end(response, await response.usage())


def _chunk(event: Any) -> ModelChunk:
    if event.type == "reasoning":
        return ModelChunk(reasoning=event.chunk or "")
    return ModelChunk(event.chunk if event.type == "text" else "")


def _end(response: Any, usage: Any) -> ModelChunk:
    counts = {"input_tokens": usage.input, "output_tokens": usage.output}
    known = {name: count for name, count in counts.items() if count is not None}
    # The plugins for OpenAI write it there, others mostly do not.
    told = response.response_json
    choices = field(told, "choices")
    reason = read_finish(field(choices[0] if isinstance(choices, list) else told, "finish_reason"))
    return ModelChunk("", reason, known or None)
