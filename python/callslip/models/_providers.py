"""The names of providers, as the conventions of OpenTelemetry for generative AI have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from callslip.models._grammar_servers import host_of

__all__ = ["provider_of"]

_HOSTS: Final[Mapping[str, str]] = {
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "amazonaws.com": "aws.bedrock",
    "api.anthropic.com": "anthropic",
    "api.cohere.ai": "cohere",
    "api.cohere.com": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.openai.com": "openai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
}


def provider_of(client: object, default: str) -> str | None:
    """Return the provider that a client's `base_url` belongs to.

    Args:
        client: The client.
        default: The provider whose interface the client has. By the conventions it is the provider
            if the address is not known.

    Returns:
        The provider; `None` if the client has no address.
    """
    host = host_of(client)
    if not host:
        return None
    for name, provider in _HOSTS.items():
        # Vertex AI has a host for each region: `europe-west1-aiplatform.googleapis.com`.
        if host == name or host.endswith((f".{name}", f"-{name}")):
            return provider
    return default
