"""Models behind the clients of Google, Bedrock, Mistral, Cohere and Ollama."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from callslip.models._client_model import ClientModel
from callslip.models._grammar_forms import GrammarForm
from callslip.models._part_shapes import (
    BEDROCK,
    CHAT_IMAGE,
    GOOGLE,
    MISTRAL,
    Shapes,
    blocks_of,
    sent_messages,
    text_block,
)
from callslip.models._reply import Message, Messages
from callslip.models._turns import split_system
from callslip.models.native._google import GoogleReader, add_tools, contents_of
from callslip.models.native._reading import NativeReader
from callslip.models.native._reply import Offer
from callslip.parts import File, PartKind

__all__ = ["BedrockModel", "CohereModel", "GoogleModel", "MistralModel", "OllamaModel"]

_SCHEMA_FORMS: tuple[GrammarForm, ...] = ("auto", "json_schema")
_Grammar = str | Mapping[str, object]
_IMAGES: frozenset[PartKind] = frozenset({"image"})


def _text_blocks(message: Message, shapes: Shapes) -> list[Any]:
    blocks = blocks_of(message, shapes, lambda text: {"text": text})
    return blocks or [{"text": message["content"]}]


class GoogleModel(ClientModel):
    """`client.models.generate_content` of google-genai; `client.aio` for the async one.

    Options are fields of the request's `config`.
    """

    _SENT: Mapping[str, str] = {
        "stop": "stop_sequences",
        "seed": "seed",
        "max_tokens": "max_output_tokens",
    }
    _DECIDED = ("messages", "contents", "system_instruction")
    _FORMS = _SCHEMA_FORMS
    _SHAPES: ClassVar[Shapes] = GOOGLE
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset(GOOGLE)
    _TAKES_TOOLS = True

    def _find_provider(self) -> str | None:
        api = getattr(self._client, "_api_client", None)
        return "gcp.vertex_ai" if getattr(api, "vertexai", None) is True else "gcp.gemini"

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        system, turns = split_system(messages)
        if system:
            request["system_instruction"] = system
        contents = [
            {
                "role": "model" if turn["role"] == "assistant" else "user",
                "parts": _text_blocks(turn, GOOGLE),
            }
            for turn in turns
        ]
        return self._call(contents, request)

    def _call(self, contents: list[dict[str, Any]], request: dict[str, object]) -> object:
        models = self._client.models
        call = models.generate_content_stream if self._stream else models.generate_content
        return call(model=self.model, contents=contents, config=request)

    def _send_with_tools(
        self, messages: Messages, request: dict[str, object], offer: Offer
    ) -> object:
        config = dict(request)
        add_tools(config, offer)
        system, contents = contents_of(messages)
        if system:
            config["system_instruction"] = system
        return self._call(contents, config)

    def _reader(self, offer: Offer) -> NativeReader:
        del offer
        return GoogleReader()

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        del form
        request["response_mime_type"] = "application/json"
        request["response_json_schema"] = text


class BedrockModel(ClientModel):
    """`client.converse` of boto3's `bedrock-runtime`.

    Options are parameters of `converse`, or of its `inferenceConfig`.
    """

    _SENT: Mapping[str, str] = {"stop": "stopSequences", "max_tokens": "maxTokens"}
    _DECIDED = ("messages", "system")
    _LACKING = ("seed",)
    _FORMS = _SCHEMA_FORMS
    _SHAPES: ClassVar[Shapes] = BEDROCK
    _PARTS: ClassVar[frozenset[PartKind]] = frozenset(BEDROCK)
    _PROVIDER = "aws.bedrock"
    _INFERENCE = ("maxTokens", "stopSequences", "temperature", "topP")

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        system, turns = split_system(messages)
        _move(request, "inferenceConfig", self._INFERENCE)
        if system:
            request["system"] = [{"text": system}]
        call = self._client.converse_stream if self._stream else self._client.converse
        content = [{"role": turn["role"], "content": _text_blocks(turn, BEDROCK)} for turn in turns]
        return call(modelId=self.model, messages=content, **request)

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        del form
        schema = {"name": "reply", "schema": json.dumps(text)}
        wanted = {"type": "json_schema", "structure": {"jsonSchema": schema}}
        request["outputConfig"] = {"textFormat": wanted}


class MistralModel(ClientModel):
    """`client.chat.complete` of mistralai; its `complete_async` for the async one."""

    _SENT: Mapping[str, str] = {
        "stop": "stop",
        "seed": "random_seed",
        "max_tokens": "max_tokens",
    }
    _FORMS = _SCHEMA_FORMS
    _SHAPES: ClassVar[Shapes] = MISTRAL
    _PARTS: ClassVar[frozenset[PartKind]] = _IMAGES
    _PROVIDER = "mistral_ai"
    # `None` is the client's word for no retries, and it retries only if it was told to.
    _retries: Mapping[str, None] = MappingProxyType({})

    def without_retries(self) -> Self:
        """Return a model like this one whose client makes each request once."""
        other = self._like_this()
        other._retries = {"retries": None}
        return other

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        name = "stream" if self._stream else "complete"
        call = getattr(self._client, f"{name}_async" if self.is_async else name)
        turns = sent_messages(messages, self._SHAPES, text_block)
        return call(model=self.model, messages=turns, **request, **self._retries)

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        schema = {"name": "reply", "schema_definition": text, "strict": True}
        request["response_format"] = {"type": form, "json_schema": schema}


class CohereModel(ClientModel):
    """`client.chat` of cohere's `ClientV2` or `AsyncClientV2`."""

    _SENT: Mapping[str, str] = {
        "stop": "stop_sequences",
        "seed": "seed",
        "max_tokens": "max_tokens",
    }
    _FORMS = _SCHEMA_FORMS
    _SHAPES: ClassVar[Shapes] = CHAT_IMAGE
    _PARTS: ClassVar[frozenset[PartKind]] = _IMAGES
    _PROVIDER = "cohere"

    def without_retries(self) -> Self:
        """Return a model like this one whose client makes each request once."""
        options: Any = self._options.get("request_options") or {}
        return self._like_this(request_options={**options, "max_retries": 0})

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        call = self._client.chat_stream if self._stream else self._client.chat
        turns = sent_messages(messages, self._SHAPES, text_block)
        return call(model=self.model, messages=turns, **request)

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        request["response_format"] = {"type": "json_object", form: text}


def _image_bytes(part: File) -> bytes:
    return part.data


class OllamaModel(ClientModel):
    """`client.chat` of ollama's `Client` or `AsyncClient`.

    Options are parameters of `chat`, or else of its `options`.
    """

    _SENT: Mapping[str, str] = {
        "stop": "stop",
        "seed": "seed",
        "max_tokens": "num_predict",
    }
    _FORMS = _SCHEMA_FORMS
    _SHAPES: ClassVar[Shapes] = {"image": _image_bytes}
    _PARTS: ClassVar[frozenset[PartKind]] = _IMAGES
    _PROVIDER = "ollama"
    _PARAMETERS = frozenset(
        {"format", "keep_alive", "logprobs", "options", "think", "tools", "top_logprobs"}
    )

    def _send(self, messages: Messages, request: dict[str, object]) -> object:
        _move(request, "options", tuple(request.keys() - self._PARAMETERS))
        turns = [_with_images(message) for message in messages]
        return self._client.chat(model=self.model, messages=turns, stream=self._stream, **request)

    def _put_grammar(self, request: dict[str, object], form: GrammarForm, text: _Grammar) -> None:
        del form
        request["format"] = text


def _with_images(message: Message) -> dict[str, Any]:
    """Return a message with the bytes of its images, in the order of their labels in its text."""
    sent = dict(message)
    parts = sent.pop("parts", ())
    if parts and message["role"] == "user":
        sent["images"] = [_image_bytes(part) for part in parts]
    return sent


def _move(request: dict[str, object], place: str, names: tuple[str, ...]) -> None:
    """Move some parameters of a request into one of them."""
    moved = {name: request.pop(name) for name in names if name in request}
    there: Any = request.get(place) or {}
    if there or moved:
        request[place] = {**there, **moved}
