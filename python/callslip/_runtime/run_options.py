"""The options of one run, which are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callslip import _core
from callslip.errors import UsageError
from callslip.parts import read_content

if TYPE_CHECKING:
    from callslip._runtime.driven_agent import DrivenAgent

__all__ = ["check_deps", "check_messages", "refuse_deps"]


def check_deps(agent: DrivenAgent, deps: object) -> None:
    """Check that a run has deps if a function of its agent, or of one that it starts, needs them.

    Raises:
        UsageError: It has none.
    """
    if deps is None and (needing := agent._needs_deps) is not None:
        refuse_deps(needing, "the run")


def refuse_deps(needing: str, given_to: str) -> None:
    """Raise `UsageError`: a function needs deps, and there are none."""
    raise UsageError(f"expected deps for {needing}: got none; pass deps=… to {given_to}")


def check_messages(
    messages: Sequence[Mapping[str, Any]],
) -> list[tuple[str, str, list[_core.Part]]]:
    """Return role, content and parts of each message of an earlier conversation.

    Raises:
        UsageError: They are not such messages.
    """
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        is_run = hasattr(messages, "messages")
        hint = "; call run.send(…) to continue a run, or agent.hand_over(run)" if is_run else ""
        raise UsageError(
            "expected messages=[{'role': 'user', 'content': '…'}, …]: got "
            f"{type(messages).__name__}{hint}"
        )
    return [_check_message(at, message) for at, message in enumerate(messages, 1)]


def _check_message(at: int, message: object) -> tuple[str, str, list[_core.Part]]:
    if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
        kind = type(message).__name__
        got = f"the keys {list(message)}" if isinstance(message, Mapping) else kind
        raise UsageError(
            f"expected message {at} of messages=… as a dict with 'role' and 'content': got {got}"
        )
    role, content = message["role"], message["content"]
    if role == "system":
        raise UsageError(
            f"expected message {at} of messages=… to be of the user or the assistant: got the role "
            "'system'. Pass its text as Agent(instructions=…), and leave out the prompt of an "
            "earlier run"
        )
    if role not in ("user", "assistant"):  # it may be unhashable
        raise UsageError(
            f"expected the role 'user' or 'assistant' in message {at} of messages=…: got {role!r}"
        )
    said = read_content(f"the content of message {at} of messages=…", content)
    return role, said.text, said.parts
