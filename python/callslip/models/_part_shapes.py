"""Images and files of messages, in the shape that each service takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from callslip.models._reply import Message, Messages
from callslip.parts import File, PartKind

__all__ = [
    "ANTHROPIC",
    "BEDROCK",
    "CHAT",
    "CHAT_IMAGE",
    "GOOGLE",
    "MISTRAL",
    "RESPONSES",
    "Shapes",
    "blocks_of",
    "sent_messages",
    "text_block",
]

Shapes: TypeAlias = Mapping[PartKind, Callable[[File], Any]]
"""How a service takes each kind of part. A shape is `None` for a file that it does not take."""


def sent_messages(
    messages: Messages, shapes: Shapes, text: Callable[[str], Any]
) -> list[dict[str, Any]]:
    """Return messages with the parts of the user's messages as blocks; others as they are.

    Services refuse images and files in messages of the model, which tell their text only.

    Args:
        messages: The messages, with those parts only that the model takes.
        shapes: The shapes of the service.
        text: Returns the service's block of a text.
    """
    return [
        {"role": message["role"], "content": blocks_of(message, shapes, text) or message["content"]}
        if "parts" in message
        else dict(message)
        for message in messages
    ]


def blocks_of(message: Message, shapes: Shapes, text: Callable[[str], Any]) -> list[Any]:
    """Return a message as blocks, its text first; an empty list if its text is all that is sent.

    Arguments as of `sent_messages`.
    """
    blocks: list[Any] = []
    for part in message.get("parts", ()) if message["role"] == "user" else ():
        shape = shapes[part.kind](part)
        if shape is None:
            continue
        if part.label is not None:
            # Which of them the text speaks of.
            blocks.append(text(f"{part.label}:"))
        blocks.append(shape)
    # Services refuse empty texts.
    return [text(message["content"]), *blocks] if blocks and message["content"].strip() else blocks


def text_block(text: str) -> dict[str, Any]:
    """Return a text as most services take it."""
    return {"type": "text", "text": text}


def _name(part: File) -> str:
    return part.name or f"{part.label or 'file'}.pdf"


# ---- OpenAI's chat completions, and what is like them


def _chat_image(part: File) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": part.to_url()}}


def _chat_file(part: File) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": _name(part), "file_data": part.to_url()}}


def _chat_audio(part: File) -> dict[str, Any] | None:
    known = _AUDIO.get(part.media_type)
    if known is None:
        return None
    return {"type": "input_audio", "input_audio": {"data": part.to_base64(), "format": known}}


_AUDIO = {
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
    "audio/vnd.wave": "wav",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}
CHAT_IMAGE: Shapes = {"image": _chat_image}
CHAT: Shapes = {**CHAT_IMAGE, "pdf": _chat_file, "audio": _chat_audio}


# ---- OpenAI's responses


def _response_image(part: File) -> dict[str, Any]:
    return {"type": "input_image", "detail": "auto", "image_url": part.to_url()}


def _response_file(part: File) -> dict[str, Any]:
    return {"type": "input_file", "filename": _name(part), "file_data": part.to_url()}


RESPONSES: Shapes = {"image": _response_image, "pdf": _response_file}


# ---- Anthropic


def _base64_source(part: File) -> dict[str, Any]:
    return {"type": "base64", "media_type": part.media_type, "data": part.to_base64()}


def _anthropic_image(part: File) -> dict[str, Any]:
    return {"type": "image", "source": _base64_source(part)}


def _anthropic_document(part: File) -> dict[str, Any]:
    return {"type": "document", "title": _name(part), "source": _base64_source(part)}


ANTHROPIC: Shapes = {"image": _anthropic_image, "pdf": _anthropic_document}


# ---- Google


def _inline_data(part: File) -> dict[str, Any]:
    return {"inline_data": {"data": part.data, "mime_type": part.media_type}}


GOOGLE: Shapes = dict.fromkeys(("image", "pdf", "audio", "video"), _inline_data)


# ---- Bedrock


def _bedrock_image(part: File) -> dict[str, Any]:
    form = part.media_type.partition("/")[2]
    return {"image": {"format": form, "source": {"bytes": part.data}}}


def _bedrock_document(part: File) -> dict[str, Any]:
    # It takes few characters, and reads a name as if it were part of the prompt.
    name = re.sub(r"[^A-Za-z0-9]", "-", part.label or "file")
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": part.data}}}


BEDROCK: Shapes = {"image": _bedrock_image, "pdf": _bedrock_document}


# ---- Mistral


def _mistral_image(part: File) -> dict[str, Any]:
    return {"type": "image_url", "image_url": part.to_url()}


def _mistral_document(part: File) -> dict[str, Any]:
    return {"type": "document_url", "document_url": part.to_url(), "document_name": _name(part)}


MISTRAL: Shapes = {"image": _mistral_image, "pdf": _mistral_document}
