"""Messages with roles that alternate, as many services and chat templates require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callslip.models._reply import Message

__all__ = ["OPENING", "alternating", "split_system"]

OPENING = "Hello."
"""The user's message before one of the model that begins a conversation."""


def alternating(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return messages of which the roles alternate: the system's first, then the user's.

    Neighbours of one role are joined, and empty messages left out. Chat templates refuse others,
    such as those of Gemma and Mistral.
    """
    system, turns = split_system(messages)
    if not turns:
        return [dict(message) for message in messages]
    return [{"role": "system", "content": system}, *turns] if system else turns


def split_system(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Message]]:
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
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": OPENING})
    return "\n\n".join(system), turns
