"""Messages for services that want the system prompt apart and turns that alternate."""

from __future__ import annotations

from callslip.models._reply import Message, Messages

__all__ = ["split_system"]


def split_system(messages: Messages) -> tuple[str, list[Message]]:
    """Return the system text, and the other messages: alternating, and none of them empty."""
    system: list[str] = []
    turns: list[Message] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if not content.strip():
            continue
        if role == "system":
            system.append(content)
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{content}"
        else:
            turns.append({"role": role, "content": content})
    return "\n\n".join(system), turns
