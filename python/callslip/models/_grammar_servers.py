"""The form of grammar that an OpenAI-compatible server accepts, from its address or its models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from callslip.models._fields import field
from callslip.models._grammar_forms import GrammarForm

__all__ = ["form_of_models", "host_of", "known_form"]

# Services that bill requests are not asked for their models.
_HOSTS: Final[Mapping[str, GrammarForm | None]] = {
    "api.openai.com": "json_schema",
    "openai.azure.com": "json_schema",
    "services.ai.azure.com": "json_schema",
    "api.cerebras.ai": "json_schema",
    "api.deepseek.com": None,
    "api.fireworks.ai": "fireworks",
    "api.groq.com": "json_schema",
    "api.mistral.ai": "json_schema",
    "api.together.ai": "json_schema",
    "api.together.xyz": "json_schema",
    "api.x.ai": "json_schema",
    "generativelanguage.googleapis.com": "json_schema",
    "openrouter.ai": "json_schema",
}
_OWNERS: Final[Mapping[str, GrammarForm]] = {
    "llamacpp": "gbnf",
    "vllm": "vllm",
    "sglang": "sglang",
}


def host_of(client: object) -> str:
    """Return the host of a client's `base_url`; empty if there is none."""
    address = field(client, "base_url")
    return "" if address is None else urlsplit(str(address)).hostname or ""


def known_form(host: str) -> tuple[bool, GrammarForm | None]:
    """Return whether a host is known, and the form of grammar that it accepts."""
    for name, form in _HOSTS.items():
        if host == name or host.endswith(f".{name}"):
            return True, form
    return False, None


def form_of_models(listing: Any) -> GrammarForm | None:
    """Return the form of grammar of the server that lists these models."""
    models = field(listing, "data")
    for model in models if isinstance(models, (list, tuple)) else ():
        owner = field(model, "owned_by")
        if isinstance(owner, str) and owner in _OWNERS:
            return _OWNERS[owner]
    return None
