"""Tests of agents: recorded replies, replies for a script in any protocol, and faults.

The pytest plugin imports this package in every test run of an environment, so a name is imported
when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callslip.models._real_models import no_real_models
    from callslip.testing._called import Called, codes
    from callslip.testing._faults_model import Faults
    from callslip.testing._faulty_tools import FaultyTools, ToolFault
    from callslip.testing._recorded_model import RecordedError, RecordedModel
    from callslip.testing._recording import NotRecorded, Recording
    from callslip.testing._say import PROTOCOLS, Say

__all__ = [
    "PROTOCOLS",
    "Called",
    "Faults",
    "FaultyTools",
    "NotRecorded",
    "RecordedError",
    "RecordedModel",
    "Recording",
    "Say",
    "ToolFault",
    "codes",
    "no_real_models",
]

_HOMES = {
    "Called": "testing._called",
    "Faults": "testing._faults_model",
    "FaultyTools": "testing._faulty_tools",
    "NotRecorded": "testing._recording",
    "PROTOCOLS": "testing._say",
    "RecordedError": "testing._recorded_model",
    "RecordedModel": "testing._recorded_model",
    "Recording": "testing._recording",
    "Say": "testing._say",
    "ToolFault": "testing._faulty_tools",
    "codes": "testing._called",
    "no_real_models": "models._real_models",
}


# Hidden from type checkers, which would take any name for one of the module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            from callslip._base.attribute_names import unknown_name

            raise unknown_name("callslip.testing", name, __all__)
        found = getattr(import_module(f"callslip.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
