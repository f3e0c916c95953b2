"""The protocol `react`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json

__all__ = ["ReactProtocol"]


@knows_names_of_class({"prompt": "template=…", "system_prompt": "template=…"})
@dataclass(frozen=True, kw_only=True)
class ReactProtocol(Protocol):
    """One JSON object `{thought, action, args}` a reply, until `FINISH`.

    Placeholders of a template: `{tools}` (required), `{instructions}` or, by another name,
    `{persona}`; braces in the text are doubled.
    """

    name: ClassVar[ProtocolName] = "react"
    _call_form: ClassVar[CallForm] = CallForm("", "action", "args")
    _invented_result: ClassVar[str] = "Observation: invented"

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:  # noqa: ARG003  # calls have no ids
        return reply_json({"thought": "", "action": tool, "args": arguments})

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        end = {"action": "FINISH", "final_answer": answer, "task_successful": True}
        return reply_json({"thought": "", **end})
