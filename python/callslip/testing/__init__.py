"""Tests of agents: recorded replies, replies for a script in any protocol, and faults.

The pytest plugin imports this package in every test run of an environment, so a name is imported
when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.testing._faults_model import Faults
    from callslip.testing._recorded_model import RecordedError, RecordedModel
    from callslip.testing._recording import NotRecorded, Recording
    from callslip.testing._say import PROTOCOLS, Say

__all__ = [
    "PROTOCOLS",
    "Faults",
    "NotRecorded",
    "RecordedError",
    "RecordedModel",
    "Recording",
    "Say",
]

_HOMES = {
    "Faults": "_faults_model",
    "NotRecorded": "_recording",
    "PROTOCOLS": "_say",
    "RecordedError": "_recorded_model",
    "RecordedModel": "_recorded_model",
    "Recording": "_recording",
    "Say": "_say",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'callslip.testing' has no attribute {name!r}")
    found = getattr(import_module(f"callslip.testing.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
