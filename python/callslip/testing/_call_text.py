"""The tool call in the text of a reply, and the same reply with another call in its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from callslip._protocols.protocol import CallForm
from callslip.errors import UsageError
from callslip.testing._say import Say

__all__ = ["CallText"]


# A text that JSON writes as it is.
_PLACE: Final = "the arguments of the call"


@dataclass(frozen=True, slots=True)
class CallText:
    """The first call in a reply.

    Attributes:
        before: The text before the object of the call.
        after: The text after it.
        call: The object.
        form: The keys of the protocol.
    """

    before: str
    after: str
    call: dict[str, Any]
    form: CallForm

    @classmethod
    def find(cls, reply: str, say: Say, fault: str) -> CallText:
        """Return the first call in a reply.

        Args:
            reply: The reply.
            say: Its protocol.
            fault: The name of the fault that needs a call, for the error.

        Raises:
            UsageError: The reply calls no tool.
        """
        form = say._protocol._call_form
        at = reply.find(form.tag)
        while at >= 0 and (at := reply.find("{", at)) >= 0:
            try:
                value, end = json.JSONDecoder().raw_decode(reply, at)
            except ValueError:
                at += 1
                continue
            if isinstance(value.get(form.tool), str) and isinstance(
                value.get(form.arguments), dict
            ):
                return cls(reply[:at], reply[end:], value, form)
            at = end
        raise UsageError(f"expected a reply with a tool call for {fault}: got {reply!r}")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call."""
        found: dict[str, Any] = self.call[self.form.arguments]
        return found

    def with_tool(self, name: str) -> str:
        """Return the reply with a call of another tool."""
        return self._written({**self.call, self.form.tool: name})

    def with_arguments(self, arguments: Mapping[str, Any]) -> str:
        """Return the reply with other arguments."""
        return self._written({**self.call, self.form.arguments: dict(arguments)})

    def with_arguments_text(self, text: str) -> str:
        """Return the reply with other arguments, which are text and may be no JSON."""
        written = self._written({**self.call, self.form.arguments: _PLACE})
        return written.replace(json.dumps(_PLACE), text, 1)

    def _written(self, call: Mapping[str, Any]) -> str:
        return self.before + json.dumps(call, ensure_ascii=False) + self.after
