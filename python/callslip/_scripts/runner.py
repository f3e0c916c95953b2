"""How an agent runs scripts that call its tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from callslip.limits import Limits

if TYPE_CHECKING:
    from callslip._scripts.engine import Engine

__all__ = ["RUN_LIMITS", "CallableTools", "ScriptRunner"]

CallableTools: TypeAlias = Literal["all", "readonly"] | Sequence[str]

RUN_LIMITS: Final = Limits(turns=None, tickets=100, open_tickets=16)
"""The limits of one script."""


@dataclass(frozen=True, kw_only=True)
class ScriptRunner:
    """An interpreter for scripts, with their tools and limits.

    Attributes:
        engine: The interpreter.
        calls: The tools that a script can call: `"all"`, `"readonly"`, or their names.
        run_limits: The limits of one script.
        about: The description of the language for a model; empty for all of Python.
    """

    engine: Engine
    calls: CallableTools = "all"
    run_limits: Limits = RUN_LIMITS
    about: str = ""
