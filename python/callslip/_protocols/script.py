"""The protocol of scripts, in which an interpreter writes the replies. It is in no list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._protocols.protocol import CallForm, Protocol

__all__ = ["ScriptProtocol"]


@dataclass(frozen=True, kw_only=True)
class ScriptProtocol(Protocol):
    """One line of JSON for each step of an interpreter. No model sees any of it.

    Attributes:
        engine: The name and version of the interpreter.
    """

    name: ClassVar[Any] = "script"
    _call_form: ClassVar[CallForm] = CallForm("", "tool", "arguments")
    _invented_result: ClassVar[str] = ""

    engine: str = ""

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:
        raise NotImplementedError

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        raise NotImplementedError

    def _own_options(self) -> dict[str, Any]:
        return {"engine": self.engine}

    @property
    def _grace(self) -> float:
        # The interpreter receives outcomes of the same moment in one step.
        return 0.002
