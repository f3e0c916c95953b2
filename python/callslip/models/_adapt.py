"""Client objects as models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from callslip.errors import UsageError
from callslip.models._client_model import ClientModel
from callslip.models._clients import Kind, find_client, find_method
from callslip.models._frameworks import LangChainModel, LLMModel
from callslip.models._in_process import LlamaModel, PipelineModel, VllmModel
from callslip.models._late import SERVICES, LateModel, check_installed, client_of
from callslip.models._openai_client import OpenAIClientModel, own_responses
from callslip.models._responses import ResponsesModel
from callslip.models._services import (
    BedrockModel,
    CohereModel,
    GoogleModel,
    MistralModel,
    OllamaModel,
)
from callslip.models.anthropic import AnthropicModel
from callslip.models.openai import OpenAIModel

__all__ = ["as_model"]

# These read from the method whether it is async.
_OF_METHOD: Final[Mapping[Kind, Callable[..., ClientModel]]] = {
    "openai": OpenAIModel,
    "anthropic": AnthropicModel,
}
_OF_CLIENT: Final[Mapping[Kind, Callable[..., ClientModel]]] = {
    "responses": ResponsesModel,
    "google": GoogleModel,
    "bedrock": BedrockModel,
    "mistral": MistralModel,
    "cohere": CohereModel,
    "ollama": OllamaModel,
    "langchain": LangChainModel,
    "llm": LLMModel,
    "pipeline": PipelineModel,
    "vllm": VllmModel,
    "llama": LlamaModel,
}


def as_model(
    client: object, *, model: str | None = None, stream: bool = True, **options: Any
) -> ClientModel:
    """Return a model for a client object.

    The client is recognised by its methods, not by its class: OpenAI's and all that are like it,
    Anthropic's, google-genai's (`client` or `client.aio`), Bedrock's of boto3, mistralai's,
    cohere's, ollama's, `InferenceClient`, `litellm` and its `Router`, a chat model of LangChain, a
    model of simonw's llm, a text-generation pipeline, `vllm.LLM` and `llama_cpp.Llama`. The model
    of an async client is async.

    Pass a method where a client has several: `client.responses.create` for OpenAI's responses,
    which a client of OpenAI's own address uses by itself with `protocol="native"`;
    `litellm.acompletion`, `client.chat.complete_async` (Mistral) or `chat.ainvoke` (LangChain) for
    an async model. A function with the parameters of a method of OpenAI or Anthropic is accepted
    too.

    Where an agent has to exist before there is a key, as in a module that tests import, pass
    `"openai:gpt-5-mini"`, `"anthropic:NAME"` or a function without parameters that makes the
    client. The client is made at the first request, once for each event loop.

    Args:
        client: The client, configured by the caller (key, address, timeouts, retries); or the name
            of a service and a model, or a function that makes the client.
        model: The name of the model at the server. Clients of one model need none.
        stream: Whether to request streamed replies, which are stopped as soon as their move is
            complete. Default: `True`.
        **options: `grammar=` for a server that accepts a grammar, a `GrammarForm` such as
            `"auto"`; `context=`, the tokens that the messages and the reply may have together, so
            that a long run is shown in part before it fails; `parts=`, the kinds of images and
            files that are sent (`"image"`, `"pdf"`, `"audio"`, `"video"`), and `()` for none;
            `usage=False` for an OpenAI-compatible server that refuses `stream_options`. By default
            images are sent, and PDF files if the service takes them; models in this process and
            those of llm are sent none. A server that refuses them is sent none from then on.
            `stop`, `seed` and `max_tokens` have the meaning of a run's. Anything else is sent with
            every request under the client's own name for it (`temperature=0`). An option overrides
            the same keyword of a run; `None` means never sent (`stop=None`).

    Returns:
        A model for an `Agent`, or to call with messages.

    Raises:
        UsageError: The client is not recognised, or an option is invalid.
    """
    if isinstance(client, str) or _is_factory(client):
        return _late(client, model=model, stream=stream, **options)
    return _connected(client, model=model, stream=stream, **options)


def _connected(client: object, *, model: str | None, stream: bool, **options: Any) -> ClientModel:
    """Return the model of a client that there is."""
    found = find_client(client)
    # A method that is passed decides by itself.
    responses = None if found is None else own_responses(client)
    if found is None and callable(client):
        found = find_method(client)
    if found is None:
        raise UsageError(_refusal(client))
    for name in ("is_async", "create", "responses"):
        if name in options:
            raise UsageError(f"expected no {name}: the client says it; leave it out")
    if found.kind == "openai" and responses is not None:
        options = {"responses": responses, **options}
        return OpenAIClientModel(found.client, model=model, stream=stream, **options)
    if found.kind in _OF_METHOD:
        return _OF_METHOD[found.kind](found.client, model=model, stream=stream, **options)
    return _OF_CLIENT[found.kind](
        found.client, model=model, stream=stream, is_async=found.is_async, **options
    )


def _is_factory(client: object) -> bool:
    """Whether this is a function without parameters; no model and no method of a client is."""
    try:
        return inspect.isroutine(client) and not inspect.signature(client).parameters
    except (TypeError, ValueError):
        return False


def _late(client: Any, *, model: str | None, stream: bool, **options: Any) -> LateModel:
    """Return the model of a factory, or of a service and a name such as `openai:gpt-5-mini`."""
    if not isinstance(client, str):
        connect = partial(_connected, model=model, stream=stream, **options)
        return LateModel(client, connect, model=model, stream=stream, **options)
    service, _, name = client.partition(":")
    if service not in SERVICES or not name:
        known = ", ".join(f"'{one}:NAME'" for one in SERVICES)
        raise UsageError(f"expected a client, or one of {known}: got {client!r}; pass one of them")
    if model is not None:
        raise UsageError(f"expected no model= beside {client!r}: got {model!r}; leave it out")
    check_installed(service)
    return LateModel(
        partial(client_of, service),
        partial(_connected, model=name, stream=stream, **options),
        model=name,
        provider=service,
        is_async=True,
        stream=stream,
        **options,
    )


def _refusal(client: object) -> str:
    expected = (
        "expected the client of a known library, such as OpenAI() or Anthropic(): got "
        f"{getattr(client, '__qualname__', type(client).__qualname__)}"
    )
    if isinstance(client, type):
        name = client.__qualname__
        return f"expected a client object, such as {name}(): got the class {name}; pass {name}()"
    if callable(client):
        return f"{expected}: a callable from messages to text is a model already, pass it as it is"
    return f"{expected}: pass a callable from messages to text that calls it"
