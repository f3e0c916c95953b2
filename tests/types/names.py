"""Names that no module has, and the run of an exception. Read by `make types`, not run."""

from typing import Any, assert_type

import callslip
from callslip import (
    ModelError,
    Run,
    RunFailed,
    ScriptedModel,
)
from callslip.models import Retriyng  # type: ignore[attr-defined]
from callslip.testing import Sayy  # type: ignore[attr-defined]
from callslip.web import Gaurd  # type: ignore[attr-defined]

wrong: list[Any] = [callslip.Agnet, Retriyng, Sayy, Gaurd, ScriptedModel]  # type: ignore[attr-defined]


def run_of(error: ModelError) -> str:
    assert_type(error.run, Run | Any)
    return f"{error.run.id} {error.run.violations}"


def is_alone(error: RunFailed) -> bool:
    return error.run is None
