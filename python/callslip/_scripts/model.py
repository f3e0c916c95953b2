"""An interpreter in the place of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from callslip._scripts.engine import Engine

__all__ = ["EngineModel"]


class EngineModel:
    """Stands in for the model in the run of a script.

    Args:
        engine: The interpreter.
        value_level: How well the origins of values must be known, as the model of the run above
            asks for it; `None` for the default.

    Attributes:
        engine: The interpreter.
        value_level: As passed.
        model: The name of the interpreter, for the log.
        is_async: False: a step takes the processor.
    """

    is_async = False

    def __init__(self, engine: Engine, value_level: str | None) -> None:
        self.engine = engine
        self.value_level = value_level
        self.model: str = engine.version

    def __call__(self, messages: object, /) -> NoReturn:  # noqa: ARG002  # a script reads none
        """Raise: the run itself takes the steps."""
        raise AssertionError("expected a run of a script: got one of a model")
