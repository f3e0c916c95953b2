"""The protocol `ticket`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag, check_seconds
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json

__all__ = ["TicketProtocol"]


_GRACE = 0.05
"""Seconds of a grace that the program has not chosen."""


@knows_names_of_class({"prompt": "template=…", "system_prompt": "template=…"})
@dataclass(frozen=True, kw_only=True)
class TicketProtocol(Protocol):
    """`<thoughts>`, then `<output>` with one JSON object: RETURN, CALL, AWAIT or LOAD_TICKET.

    Placeholders of a template: `{{tool_spec}}` (required), `{{instructions}}`.

    Attributes:
        await_loads: Whether an AWAIT also loads the ticket's result.
        inline_results: Whether the next message contains the result of a call that ends within the
            grace, if the result has up to 2,000 bytes as JSON. The model loads longer and later
            results with LOAD_TICKET.
        grace: Seconds that a call may take before the model continues without it. With the default,
            a `ScriptedModel` waits until its calls have ended, for 60 seconds at most.
    """

    name: ClassVar[ProtocolName] = "ticket"
    _call_form: ClassVar[CallForm] = CallForm("<output>", "route", "payload")
    _invented_result: ClassVar[str] = 'Result of ticket T1:\n"invented"'

    await_loads: bool = False
    inline_results: bool = True
    grace: float = _GRACE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("await_loads", self.await_loads)
        check_flag("inline_results", self.inline_results)
        check_seconds("grace", self.grace)

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:
        description = f"{tool}, call {number}"
        return _move(
            {"type": "CALL", "route": tool, "payload": arguments, "description": description}
        )

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        return _move({"type": "RETURN", "value": answer})

    def _own_options(self) -> dict[str, Any]:
        return {"await_loads": self.await_loads, "inline_results": self.inline_results}

    @property
    def _grace(self) -> float:
        return self.grace

    @property
    def _has_own_grace(self) -> bool:
        return self.grace != _GRACE


def _move(move: dict[str, Any]) -> str:
    return f"<thoughts>\n</thoughts>\n<output>\n{reply_json(move)}\n</output>"
