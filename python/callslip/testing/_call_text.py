"""The tool call in the text of a reply, and the same reply with another call in its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from callslip._protocols.protocol import CallForm
from callslip.errors import UsageError
from callslip.testing._reply_text import text_of
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
        reply = text_of(reply, say)
        at = reply.find(form.tag)
        while at >= 0 and (at := reply.find("{", at)) >= 0:
            try:
                value, end = json.JSONDecoder().raw_decode(reply, at)
            except ValueError:
                at += 1
                continue
            if isinstance(value.get(form.tool), str) and _is_object(value.get(form.arguments)):
                return cls(type(reply)(reply[:at]), reply[end:], value, form)
            at = end
        raise UsageError(f"expected a reply with a tool call for {fault}: got {reply!r}")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call."""
        found = self.call[self.form.arguments]
        arguments: dict[str, Any] = json.loads(found) if self._is_text else found
        return arguments

    def with_tool(self, name: str) -> str:
        """Return the reply with a call of another tool."""
        return self._written({**self.call, self.form.tool: name})

    def with_arguments(self, arguments: Mapping[str, Any]) -> str:
        """Return the reply with other arguments."""
        if self._is_text:
            return self.with_arguments_text(json.dumps(dict(arguments), ensure_ascii=False))
        return self._written({**self.call, self.form.arguments: dict(arguments)})

    def with_arguments_text(self, text: str) -> str:
        """Return the reply with other arguments, which are text and may be no JSON."""
        if self._is_text:
            return self._written({**self.call, self.form.arguments: text})
        written = self._written({**self.call, self.form.arguments: _PLACE})
        return written.replace(json.dumps(_PLACE), text, 1)

    def followed_by(self, arguments: Mapping[str, Any]) -> str:
        """Return the reply, followed by the same call with other arguments."""
        between = "" if self._is_text else "\n"
        kind = type(self.before)
        return kind(f"{self._written(self.call)}{between}{self.with_arguments(arguments)}")

    @property
    def _is_text(self) -> bool:
        return isinstance(self.call[self.form.arguments], str)

    def _written(self, call: Mapping[str, Any]) -> str:
        # The lines of native replies have no blanks.
        separators = (",", ":") if self._is_text else None
        written = json.dumps(call, ensure_ascii=False, separators=separators)
        return type(self.before)(f"{self.before}{written}{self.after}")


def _is_object(arguments: object) -> bool:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return False
    return isinstance(arguments, dict)
