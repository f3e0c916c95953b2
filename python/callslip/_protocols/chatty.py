"""The protocol `chatty`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json
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
