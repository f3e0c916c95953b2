"""Messages for services that want the system prompt apart and turns that alternate."""

from __future__ import annotations

from callslip.models._reply import Message, Messages

__all__ = ["split_system"]


def split_system(messages: Messages) -> tuple[str, list[Message]]:
    """Return the system text, and the other messages: alternating, and none of them empty.

    Images and files of messages that are joined follow each other in `"parts"`.
    """
    system: list[str] = []
    turns: list[Message] = []
    for message in messages:
        role, content, parts = message["role"], message["content"], message.get("parts")
        if not content.strip() and not parts:
            continue
        if role == "system":
            system.append(content)
        elif turns and turns[-1]["role"] == role:
            said = turns[-1]["content"]
            turns[-1]["content"] = f"{said}\n\n{content}" if said and content else said or content
        else:
            turns.append({"role": role, "content": content})
        if parts and role != "system":
            turns[-1]["parts"] = [*turns[-1].get("parts", ()), *parts]
    return "\n\n".join(system), turns
