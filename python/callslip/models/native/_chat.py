"""Tool calls of OpenAI's chat completions, and of the servers and libraries that offer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from callslip._base.options import shown
from callslip.errors import ModelError, UsageError
from callslip.models._fields import field, first_field
from callslip.models._finish_reasons import is_tool_call, quote_body
from callslip.models._items import CallItem, FaultItem, Item, TextItem, ToolForm
from callslip.models._piece import Piece, Reading, check_end
from callslip.models._shapes import read_chat, read_shape
from callslip.models.native._chat_messages import BLOCKS
from callslip.models.native._reply import Offer
from callslip.models.native._thoughts import Thoughts
from callslip.models.native._tracks import CallTracks, arguments_text

__all__ = ["ChatReader", "check_own_tools", "tool_fields", "tool_form"]

_CALL_FIELDS = ("extra_content", "provider_specific_fields")
"""Those of a call: Gemini's signature, by its own server and by LiteLLM."""


def check_own_tools(options: Mapping[str, object]) -> None:
    """Check that a model has no tools beside those of a run.

    Raises:
        UsageError: It has.
    """
    for name in ("tools", "tool_choice", "functions", "function_call"):
        if options.get(name) is not None:
            raise UsageError(
                f"expected no {name} in the options of a model of a native run, which offers its "
                f"own: got {shown(options[name])}; leave it out of as_model, and pass tools= to "
                "the agent"
            )


def tool_form(tool: ToolForm) -> dict[str, Any]:
    """Return a tool as a chat completion takes it."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def tool_fields(offer: Offer) -> dict[str, Any]:
    """Return the fields of a request that offer tools; servers refuse them without any."""
    if not offer.tools:
        return {}
    fields: dict[str, Any] = {"tools": [tool_form(tool) for tool in offer.tools]}
    choice = offer.choice
    if choice.tool is not None:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.tool}}
    elif choice.mode != "auto":
        fields["tool_choice"] = choice.mode
    if not choice.parallel:
        fields["parallel_tool_calls"] = False
    return fields


# ---- the reply


class ChatReader:
    """Reads one reply of a server of chat completions.

    Args:
        service: The key of the server in `data`.
    """

    __slots__ = ("_said", "_service", "_thoughts", "_tracks")

    def __init__(self, service: str) -> None:
        self._service = service
        self._tracks = CallTracks()
        self._thoughts = Thoughts(service)
        # For chunks that repeat the reply so far.
        self._said = Reading(takes_calls=True)

    def take(self, item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
        """As of `NativeReader`."""
        read = read_chat(item, whole=whole)
        if read is None:
            return _other(item, whole=whole)
        piece, part, reason = read
        piece.is_service = True
        is_repeat = piece.is_repeat
        if is_repeat or piece.text or piece.reasoning:
            self._said.take(piece)
            piece.is_repeat = False
        items: list[Item] = [*self._reasoning(part, piece.reasoning)]
        if piece.text:
            items += [*self._thoughts.end(), TextItem(piece.text)]
        calls = () if is_repeat and self._tracks.count else tuple(self._calls(part))
        items += [*self._thoughts.end(), *calls] if calls else ()
        if reason is None:
            return piece, tuple(items)
        fault = _fault_in(reason)
        is_own = fault is not None or (isinstance(reason, str) and is_tool_call(reason.lower()))
        check_end(piece, "stop" if is_own else reason)
        items += self._thoughts.end()
        if self._tracks.count and (whole or piece.finish_reason == "stop"):
            items += self._tracks.ends(but_last=piece.finish_reason != "stop")
        return piece, (*items, fault) if fault else tuple(items)

    def _reasoning(self, part: object, text: str) -> Sequence[Item]:
        for name in BLOCKS:
            blocks = field(part, name)
            if blocks:
                return self._thoughts.blocks(name, blocks)
        if not text:
            return ()
        is_content = bool(field(part, "reasoning_content"))
        return self._thoughts.text(text, field_name="reasoning_content" if is_content else "")

    def _calls(self, part: object) -> Iterator[CallItem]:
        calls = field(part, "tool_calls")
        if not isinstance(calls, (list, tuple)):
            # The older interface has one call, without an id.
            legacy = field(part, "function_call")
            calls = [{"function": legacy}] if legacy else ()
        keys: set[object] = set()
        for at, call in enumerate(calls):
            index = field(call, "index")
            key = index if isinstance(index, int) else at
            function = field(call, "function") or field(call, "custom")
            told = (_text(field(call, "id")), _text(field(function, "name")))
            arguments = arguments_text(first_field(function, "arguments", "input"))
            # One list never has two pieces of one call.
            is_new = key in keys and bool(told[1])
            keys.add(key)
            yield self._tracks.piece(key, told, arguments, self._data(call), is_new=is_new)

    def _data(self, call: object) -> dict[str, Any] | None:
        kept = {name: field(call, name) for name in _CALL_FIELDS}
        data = {name: value for name, value in kept.items() if value}
        return {self._service: data} if data else None


def _other(item: object, *, whole: bool) -> tuple[Piece, tuple[Item, ...]]:
    """Read what is no chat completion: a text, an error report, an event of a server's own."""
    piece = Piece(item) if isinstance(item, str) else read_shape(item, whole=whole)
    if piece is None and isinstance(field(item, "type"), str) and not whole:
        return Piece(), ()
    if piece is None:
        raise ModelError(
            "expected a chat completion from the model's server: got another object: "
            f"{quote_body(item)}; pass the right address to the client (base_url)"
        )
    return piece, (TextItem(piece.text),) if piece.text else ()


def _fault_in(reason: object) -> FaultItem | None:
    """Return the fault that a finish reason tells of: Gemini's, by its chat completions."""
    word = reason.lower() if isinstance(reason, str) else ""
    is_fault = "malformed" in word or "unexpected_tool_call" in word
    return FaultItem(f"{reason}") if is_fault else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
