"""The steps of an interpreter as replies: a line of JSON each, which is compared byte for byte."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from callslip._scripts.engine import CallsDue, ScriptEnd, ScriptError, Step

__all__ = ["end_reply", "hash_of", "reply_of"]


def reply_of(step: Step) -> str:
    """Return the line for a step. A value that is not JSON ends the script with a `TypeError`."""
    try:
        return _line(step)
    except (TypeError, ValueError, RecursionError) as error:
        what = "arguments" if isinstance(step, CallsDue) else "value"
        message = f"expected JSON values as {what}: got another: {error}"
        return _line(ScriptEnd(error=ScriptError("TypeError", message), printed=step.printed))


def _line(step: Step) -> str:
    if isinstance(step, CallsDue):
        calls = [
            {"tool": call.tool, "arguments": dict(call.arguments), "line": call.line}
            for call in step.calls
        ]
        return _dumped({"calls": calls}, step.printed)
    if step.error is None:
        return end_reply("ok", printed=step.printed, value=step.value)
    error = {"type": step.error.type, "message": step.error.message, "line": step.error.line}
    return end_reply("error", printed=step.printed, error=error)


def end_reply(status: str, *, printed: str = "", **more: Any) -> str:
    """Return the line with which a script ends.

    Raises:
        TypeError: A value is not JSON, like the other exceptions.
        ValueError: A number is not finite, or a text has half a surrogate pair.
    """
    return _dumped({"end": {"status": status, **more}}, printed)


def _dumped(line: dict[str, Any], printed: str) -> str:
    if printed:
        line["printed"] = printed.encode("utf-8", "replace").decode()
    text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text


def hash_of(reply: str) -> str:
    """Return the SHA-256 of a reply in hexadecimal digits, as the core keeps it."""
    return hashlib.sha256(reply.encode()).hexdigest()
