"""The protocol `native`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag
from callslip._core import Protocol as CoreProtocol
from callslip._protocols import ProtocolName
from callslip._protocols.protocol import CallForm, Protocol, reply_json
from callslip.errors import UsageError
from callslip.models._envelope import envelope_of
from callslip.models._items import Envelope, NativeCall
from callslip.models._reply import ModelReply

__all__ = ["NativeProtocol"]


@knows_names_of_class({"prompt": "instructions=… of Agent", "system_prompt": "instructions=…"})
@dataclass(frozen=True, kw_only=True)
class NativeProtocol(Protocol):
    """The tool calls of the model's own interface: a reply is text, or calls side by side.

    The model is passed the tools with each request, so that there is no prompt of callslip's, and
    no example. `template`, `examples`, `thoughts`, `think_prefilled`, `tool_tokens` and
    `early_stop` have no meaning here: passing one is an error.

    Attributes:
        parallel: Whether a reply may have several calls. Default true.
        early_start: Whether a call of a `readonly` tool starts while the rest of its reply is
            still arriving. Default true.
    """

    name: ClassVar[ProtocolName] = "native"
    _call_form: ClassVar[CallForm] = CallForm("", "tool", "arguments")
    _invented_result: ClassVar[str] = "TOOL_RESULT invented"
    _tells_before_calls: ClassVar[bool] = True

    parallel: bool = True
    early_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("parallel", self.parallel)
        check_flag("early_start", self.early_start)
        unused = {
            "template": ("", "pass instructions=… to Agent"),
            "examples": (None, "say it in instructions=…"),
            "thoughts": (None, "limit the model's own reasoning where it is made"),
            "think_prefilled": (False, "leave it out"),
            "tool_tokens": (8_000, "all tools are in the request"),
            "early_stop": (True, "a reply is read to its end"),
        }
        for name, (default, hint) in unused.items():
            if getattr(self, name) != default:
                raise UsageError(
                    f"expected no {name} for the native protocol: got "
                    f"{getattr(self, name)!r}; {hint}"
                )

    def _native_for(self, *, needs_examples: bool) -> CoreProtocol:  # noqa: ARG002  # it has none
        return self.native

    @classmethod
    def _call_text(cls, tool: str, arguments: dict[str, Any], number: int) -> str:
        call = NativeCall(f"call_{number}", tool, reply_json(arguments))
        return Envelope(envelope_of(ModelReply(calls=[call])))

    @classmethod
    def _answer_text(cls, answer: Any) -> str:
        if isinstance(answer, str):
            return Envelope(envelope_of(ModelReply(answer)))
        arguments = reply_json({"answer": answer})
        call = NativeCall("call_answer", "final_answer", arguments)
        return Envelope(envelope_of(ModelReply(calls=[call])))

    def _for_one_call(self) -> NativeProtocol:
        return replace(self, parallel=False)

    def _own_options(self) -> dict[str, Any]:
        return {"parallel": self.parallel}

    @property
    def _joins_calls(self) -> bool:
        return self.parallel

    @property
    def _starts_early(self) -> bool:
        return self.early_start
