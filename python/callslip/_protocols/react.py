"""The protocol `react`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json
from callslip._protocols.retold import LINE_END, RetoldCall

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
    _retells: ClassVar[bool] = True
    _answers_in_json: ClassVar[bool] = True

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:  # noqa: ARG003  # calls have no ids
        return reply_json({"thought": "", "action": tool, "args": arguments})

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        return cls._written_answer(answer, "")

    def _retold_calls(
        self,
        text: str,
        calls: Sequence[RetoldCall],
        number: int,  # noqa: ARG002  # calls have no ids
    ) -> list[tuple[str, str]]:
        # One call a reply: calls side by side are told one by one.
        told: list[tuple[str, str]] = []
        for call in calls:
            # No line of a result looks like one of the message.
            content = LINE_END.sub(lambda end: f"{end[0]}  ", call.words)
            observation = f"Observation: {content}"
            if call.answer:
                reply = self._written_answer(call.answer[0], text)
                # The user has read the answer. Only its refusal is told.
                observation = observation if call.failed else ""
            else:
                args: Any = reply_json(call.arguments) if self.strict else call.arguments
                # Models copy the thought of the example, and lose the thread where it is missing.
                thought = text or call.thought
                reply = reply_json({"thought": thought, "action": call.tool, "args": args})
            told += [("assistant", reply), ("user", observation)]
            text = ""
        return told

    def _retold_answer(self, value: Any, *, is_typed: bool) -> str:  # noqa: ARG002  # both are JSON
        return self._written_answer(value, "")

    def _retold_refusal(self, text: str) -> str:
        return f"Observation: {text}"

    def _template_of(self, prompt: str) -> str | None:
        return prompt.replace("{", "{{").replace("}", "}}") + "{tools}"

    @staticmethod
    def _written_answer(value: Any, thought: str) -> str:
        end = {"action": "FINISH", "final_answer": value, "task_successful": True}
        return reply_json({"thought": thought, **end})
