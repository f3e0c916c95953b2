"""Models: any callable, client objects through `as_model`, and scripted ones for tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from callslip._base.attribute_names import unknown_name
from callslip.models._reply import Message, Messages, Model, ModelChunk, ModelReply

if TYPE_CHECKING:
    from callslip.models._adapt import as_model
    from callslip.models._bounded import BoundedModel
    from callslip.models._bounds import Bounds
    from callslip.models._client_model import ClientModel
    from callslip.models._fallback import Fallback
    from callslip.models._grammar_forms import GrammarForm
    from callslip.models._items import CallDelta, NativeCall, ToolChoice, ToolForm
    from callslip.models._priced import Priced
    from callslip.models._retrying import Retrying

__all__ = [
    "BoundedModel",
    "Bounds",
    "CallDelta",
    "ClientModel",
    "Fallback",
    "GrammarForm",
    "Message",
    "Messages",
    "Model",
    "ModelChunk",
    "ModelReply",
    "NativeCall",
    "Priced",
    "Retrying",
    "ToolChoice",
    "ToolForm",
    "as_model",
]

# Most programs need one of these or none, and importing callslip stays cheap.
_HOMES = {
    "BoundedModel": "_bounded",
    "Bounds": "_bounds",
    "CallDelta": "_items",
    "Fallback": "_fallback",
    "NativeCall": "_items",
    "Priced": "_priced",
    "Retrying": "_retrying",
    "ToolChoice": "_items",
    "ToolForm": "_items",
    "ClientModel": "_client_model",
    "GrammarForm": "_grammar_forms",
    "as_model": "_adapt",
}


# Hidden from type checkers, which would take any name for one of the module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise unknown_name("callslip.models", name, __all__)
        found = getattr(import_module(f"callslip.models.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
