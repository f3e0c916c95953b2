"""The protocol `chatty`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json
from callslip._protocols.retold import LINE_END, RetoldCall
from callslip._protocols.tags import tag_pair

__all__ = ["ChattyProtocol"]


@knows_names_of_class({"prompt": "template=…", "system_prompt": "template=…"})
@dataclass(frozen=True, kw_only=True)
class ChattyProtocol(Protocol):
    """A direct answer, or one tool block with calls that run concurrently.

    Placeholders of a template: `{AVAILABLE_TOOLS_INTERFACE}` (required), `{TOOL_TAG_START}` and
    `{TOOL_TAG_END}` (required if the template does not contain the tags), `${instructions}`.

    Attributes:
        tool_tag: A name, for `<name>` and `</name>`, or the opening and the closing tag.
        early_start: Whether a call of a `readonly` tool starts while the rest of its block is
            still arriving.
    """

    name: ClassVar[ProtocolName] = "chatty"
    _call_form: ClassVar[CallForm] = CallForm("<tool>", "tool_name", "arguments")
    _invented_result: ClassVar[str] = "TOOL_EXECUTION_RESULT\ncall_1: invented"
    _retells: ClassVar[bool] = True
    _reminds: ClassVar[bool] = True
    _tells_before_calls: ClassVar[bool] = True

    tool_tag: str | tuple[str, str] = "tool"
    early_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        tag_pair("tool_tag", self.tool_tag)
        check_flag("early_start", self.early_start)

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:
        call = {"call_id": f"call_{number}", "tool_name": tool, "arguments": arguments}
        return f"<tool>\n{reply_json([call])}\n</tool>"

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        return answer if isinstance(answer, str) else f"<answer>{reply_json(answer)}</answer>"

    def _own_options(self) -> dict[str, Any]:
        return {"tool_tag": tag_pair("tool_tag", self.tool_tag)}

    @property
    def _starts_early(self) -> bool:
        return self.early_start

    def _retold_calls(
        self, text: str, calls: Sequence[RetoldCall], number: int
    ) -> list[tuple[str, str]]:
        before = f"{text}\n\n" if text else ""
        made = [call for call in calls if not call.answer]
        if not made:
            (answer,) = calls[0].answer
            refusal = calls[0].content if calls[0].failed else ""
            reply = before + self._retold_answer(answer, is_typed=True)
            return [("assistant", reply), ("user", refusal)]
        rows, lines = [], ["TOOL_EXECUTION_RESULT"]
        for at, call in enumerate(made, number + 1):
            name = f"call_{at}"
            rows.append({"call_id": name, "tool_name": call.tool, "arguments": call.arguments})
            failed = "error: " if call.failed else ""
            lines.append(f"{call.tool} ({name}): {failed}{_on_one_line(call.content)}")
        opening, closing = tag_pair("tool_tag", self.tool_tag)
        block = f"{before}{opening}\n{reply_json(rows)}\n{closing}"
        return [("assistant", block), ("user", "\n".join(lines))]

    def _retold_answer(self, value: Any, *, is_typed: bool) -> str:
        if isinstance(value, str) and not is_typed:
            return value
        return f"<answer>{reply_json(value)}</answer>"


def _on_one_line(content: str) -> str:
    """Return a result as it is, or as JSON if it has several lines or looks like JSON text."""
    if LINE_END.search(content) is None and not content.startswith('"'):
        return content
    return LINE_END.sub(_escaped, reply_json(content))


def _escaped(end: re.Match[str]) -> str:
    return "".join(f"\\u{ord(mark):04x}" for mark in end[0])
