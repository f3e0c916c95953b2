"""Client objects as models."""

from __future__ import annotations

from callslip.errors import UsageError
from callslip.models._clients import find_client, wire_of
from callslip.models.anthropic import AnthropicModel
from callslip.models.openai import OpenAIModel

__all__ = ["as_model"]


def as_model(
    client: object, *, model: str, stream: bool = True, **options: object
) -> OpenAIModel | AnthropicModel:
    """A client object as a model.

    The client is told by what it has, not by its class: `client.chat.completions.create` (OpenAI
    and the many that follow it) or `client.messages.create` (Anthropic, also on Bedrock and
    Vertex). A function with the parameters of one of these, such as `litellm.completion`, will
    do too. Async clients give async models.

    Args:
        client: The client, made and configured by the caller (key, address, timeouts, retries).
        model: The model's name at the server.
        stream: Ask for streamed replies, so that a reply is stopped as soon as its move is
            complete. Default true.
        **options: `usage=False` for an OpenAI-compatible server that refuses `stream_options`;
            `grammar="gbnf" | "lark" | "json_schema"` for one that takes a grammar; anything else
            is sent with every request as the client names it (`temperature=0`, ...). An option
            wins over what a run offers, and `None` means never sent (`stop=None`).

    Returns:
        A model to give to an `Agent`, or to call with messages.

    Raises:
        UsageError: Not a client that is known, or an option that cannot be.
    """
    found = find_client(client)
    if found is None and callable(client):
        wire = wire_of(client)
        found = (wire, client) if wire is not None else None
    if found is None:
        raise UsageError(_refusal(client))
    wire, create = found
    if wire == "anthropic":
        return AnthropicModel(create, model=model, stream=stream, **options)

    return OpenAIModel(create, model=model, stream=stream, **options)  # type: ignore[arg-type]


def _refusal(client: object) -> str:
    expected = (
        "expected a client with chat.completions.create or messages.create: got "
        f"{getattr(client, '__qualname__', type(client).__qualname__)}"
    )
    if callable(client):
        return f"{expected}: a callable from messages to text is a model already, pass it as it is"
    return f"{expected}: wrap it in a callable from messages to text"
