"""Models: any callable, client objects through `as_model`, and scripted ones for tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from callslip.models._reply import Message, Messages, Model, ModelChunk, ModelReply

if TYPE_CHECKING:
    from callslip.models._adapt import as_model
    from callslip.models._bounded import BoundedModel
    from callslip.models._bounds import Bounds

__all__ = [
    "BoundedModel",
    "Bounds",
    "Message",
    "Messages",
    "Model",
    "ModelChunk",
    "ModelReply",
    "as_model",
]

# Most programs need one of these or none, and importing callslip stays cheap.
_HOMES = {"BoundedModel": "_bounded", "Bounds": "_bounds", "as_model": "_adapt"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'callslip.models' has no attribute {name!r}")
    found = getattr(import_module(f"callslip.models.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
