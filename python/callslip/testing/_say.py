"""Replies of a model, written in any of the three protocols."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from callslip._base.options import check_text, shown
from callslip._core import ToolSet
from callslip.errors import UsageError
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.tools import Tool, Tools
from callslip.tools._toolbox import Toolbox

__all__ = ["PROTOCOLS", "Say"]

PROTOCOLS: Final[tuple[ProtocolName, ...]] = ("ticket", "chatty", "react")
"""The names of the protocols, for `pytest.mark.parametrize`."""


class Say:
    """Writes the replies of a model in one protocol.

    Args:
        protocol: The protocol of the agent, or its name.

    Raises:
        UsageError: There is no such protocol.
    """

    def __init__(self, protocol: ProtocolName | Protocol) -> None:
        self._name: ProtocolName = find_protocol(protocol).name
        self._calls = 0

    @property
    def protocol(self) -> ProtocolName:
        """The name of the protocol."""
        return self._name

    def call(self, tool: str, /, **arguments: Any) -> str:
        """Return a reply that calls one tool.

        Args:
            tool: The name of the tool.
            **arguments: The arguments of the call, which JSON can hold.

        Raises:
            UsageError: `tool` is not text, or an argument is no JSON value.
        """
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
        if not isinstance(tool, str) and isinstance(name, str):
            raise UsageError(f"expected the name of a tool: got {shown(tool)}; pass {name!r}")
        check_text("the name of a tool", tool)
        self._calls += 1
        return _CALLS[self._name](tool, arguments, self._calls)

    def calls_of(self, tools: Tools, *, answer: Any = "done") -> list[str]:
        """Return a script that calls each tool once, and then ends the run.

        The arguments are the required ones, with a value that the schema names for each
        (`examples`, `default`, `enum`), or one that is made up and that the schema allows.

        Args:
            tools: The tools, as for `Agent`.
            answer: The answer at the end, as for `finish`. Default: `"done"`.

        Raises:
            UsageError: No arguments were found that the schema of a tool allows.
            ToolError: As for `Agent`.
        """
        calls = [self.call(one.name, **_sample_arguments(one)) for one in Toolbox(tools)]
        return [*calls, self.finish(answer)]

    def finish(self, answer: Any) -> str:
        """Return a reply that ends the run.

        Args:
            answer: The answer: text, or what JSON can hold.

        Raises:
            UsageError: It is not a JSON value.
        """
        return _ANSWERS[self._name](answer)


def _sample_arguments(tool: Tool[..., Any]) -> dict[str, Any]:
    sample = ToolSet([tool._spec()]).sample_arguments(tool.name)
    if sample is None:
        raise UsageError(
            f"expected a schema that arguments can be made from: got that of the tool "
            f"{tool.name!r}: add `examples` to it, or use say.call(…)"
        )
    arguments: dict[str, Any] = json.loads(sample)
    return arguments


def _ticket_call(tool: str, arguments: dict[str, Any], number: int) -> str:
    move = {
        "type": "CALL",
        "route": tool,
        "payload": arguments,
        "description": f"{tool}, call {number}",
    }
    return _ticket_move(move)


def _ticket_move(move: dict[str, Any]) -> str:
    return f"<thoughts>\n</thoughts>\n<output>\n{_json(move)}\n</output>"


def _chatty_call(tool: str, arguments: dict[str, Any], number: int) -> str:
    call = {"call_id": f"call_{number}", "tool_name": tool, "arguments": arguments}
    return f"<tool>\n{_json([call])}\n</tool>"


def _react_call(tool: str, arguments: dict[str, Any], _number: int) -> str:
    return _json({"thought": "", "action": tool, "args": arguments})


def _ticket_answer(answer: Any) -> str:
    return _ticket_move({"type": "RETURN", "value": answer})


def _chatty_answer(answer: Any) -> str:
    return answer if isinstance(answer, str) else f"<answer>{_json(answer)}</answer>"


def _react_answer(answer: Any) -> str:
    end = {"action": "FINISH", "final_answer": answer, "task_successful": True}
    return _json({"thought": "", **end})


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"expected JSON values in a reply: got another: {error}") from None


_CALLS: Final[dict[str, Callable[[str, dict[str, Any], int], str]]] = {
    "ticket": _ticket_call,
    "chatty": _chatty_call,
    "react": _react_call,
}
_ANSWERS: Final[dict[str, Callable[[Any], str]]] = {
    "ticket": _ticket_answer,
    "chatty": _chatty_answer,
    "react": _react_answer,
}
