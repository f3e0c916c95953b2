"""Replies of a model, written in any protocol."""

from __future__ import annotations

import json
from typing import Any, Final

from callslip._base.options import check_text, shown
from callslip._core import ToolSet
from callslip._protocols import PROTOCOL_NAMES
from callslip.errors import UsageError
from callslip.protocols import Protocol, ProtocolName, find_protocol
from callslip.tools import Tool, Tools
from callslip.tools._toolbox import Toolbox

__all__ = ["PROTOCOLS", "Say"]

PROTOCOLS: Final[tuple[ProtocolName, ...]] = PROTOCOL_NAMES
"""The names of the protocols, for `pytest.mark.parametrize`."""


class Say:
    """Writes the replies of a model in one protocol.

    Args:
        protocol: The protocol of the agent, or its name.

    Raises:
        UsageError: There is no such protocol.
    """

    def __init__(self, protocol: ProtocolName | Protocol) -> None:
        self._protocol = find_protocol(protocol)
        self._calls = 0

    @property
    def protocol(self) -> ProtocolName:
        """The name of the protocol."""
        return self._protocol.name

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
        return self._protocol._call_text(tool, arguments, self._calls)

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
        return self._protocol._answer_text(answer)


def _sample_arguments(tool: Tool[..., Any]) -> dict[str, Any]:
    sample = ToolSet([tool._spec()]).sample_arguments(tool.name)
    if sample is None:
        raise UsageError(
            f"expected a schema that arguments can be made from: got that of the tool "
            f"{tool.name!r}: add `examples` to it, or use say.call(…)"
        )
    arguments: dict[str, Any] = json.loads(sample)
    return arguments
