"""Whether a server has refused images or files as such: its model reads text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callslip._base.backoff import raised_from
from callslip._base.failure import message_of
from callslip.models._failures import is_context_full, is_refusal
from callslip.models._retry_rules import status_of
from callslip.parts import PartKind

__all__ = ["refused_kinds"]

_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
_READ = 4_000
"""Characters of a message that are read. Behind them some servers repeat the request."""

_KIND = (
    # Not in the name of a model, nor in a media type.
    r"(?<![\w/-])(?:images?|image_urls?|input_image|vision|multi-?modal(?:ity)?|audios?|"
    r"input_audio|videos?|pdfs?|files?|input_file|documents?)(?![\w/-])"
)
_UP_TO_THREE = r"[^\w./-]{0,3}(?:\w+ ){0,3}"
_ARE = r"(?:is|are|was|were) "

_MOSTLY = (
    # llama.cpp, xAI, Mistral, Google, OpenAI
    rf"{_KIND}{_UP_TO_THREE}(?:{_ARE})?(?:currently )?not (?:yet |currently )?"
    r"(?:supported|enabled)\b",
    # OpenAI: supported by certain models
    rf"{_KIND}{_UP_TO_THREE}(?:{_ARE})?only supported\b",
    # Ollama, LM Studio, Bedrock
    r"\b(?:do|does)(?:n.t| not) (?:currently )?(?:support|accept)\W{1,3}"
    rf"(?:\w+ ){{0,3}}?{_KIND}",
)
"""What is said of all images, and also of one."""
_ALWAYS = (
    # OpenRouter
    rf"\bno (?:endpoint|provider|model)s? (?:\w+ ){{0,3}}support(?:s|ing)? {_KIND}",
    # vLLM
    r"\bnot a (?:multi-?modal|vision(?:[- ]language)?) model\b",
    rf"\bat most 0 {_KIND}",
    # Servers whose content is one text
    r"\bcontent\b.{0,40}\b(?:must|should) be (?:a |of type )?(?:valid )?string\b",
    r"\bcontent\b.{0,80}\binput should be (?:a valid string|'text')",
    r"\binvalid type: (?:sequence|map), expected (?:a )?string\b",
    # Servers that know some types of blocks: DeepSeek, DashScope, vLLM, llama.cpp, Anthropic
    rf"\bunknown variant\W{{1,4}}{_KIND}",
    rf"\binvalid value\W{{1,4}}{_KIND}",
    rf"\binput tag\W{{1,4}}{_KIND}\W{{1,4}}found\b",
    r"\b(?:unknown|unsupported|unexpected|unrecognized) (?:chat )?(?:message )?"
    r"(?:content|part|item|content\[\]\.)[ .]?(?:part |block |item )?type\b"
    r"(?!\W{1,4}application)(?:\W{1,4}\w+)?",
    # LM Studio, Ollama, and others
    r"\bvision add-on is not loaded\b",
    r"\bmissing data required for image input\b",
    r"\b(?:model|endpoint|server) (?:only (?:supports|accepts)|(?:supports|accepts) only) text\b",
    r"\btext[- ]only model\b",
)
_WORDS = tuple(re.compile(pattern) for pattern in (*_MOSTLY, *_ALWAYS))
_OF_ONE = re.compile(
    r"format|mime|media type|image types?\b|image/|encod|decod|too (?:large|big|many|long)|"
    r"(?:larger|bigger|longer) than|exceed|resolution|dimension|base64|image data|\bsizes?\b"
)
_NEAR = 40
"""Characters around the words of a refusal that are looked at."""

_NAMED: dict[PartKind, re.Pattern[str]] = {
    "image": re.compile(r"image|vision|multi-?modal"),
    "pdf": re.compile(r"pdf|file|document"),
    "audio": re.compile(r"audio"),
    "video": re.compile(r"video"),
}


def refused_kinds(error: BaseException, sent: frozenset[PartKind]) -> frozenset[PartKind]:
    """Return the kinds of parts that a server does not take; none if the failure is another one.

    Args:
        error: The exception of a request with parts.
        sent: The kinds of its parts.
    """
    if is_context_full(error) or is_refusal(error):
        return frozenset()
    for one in raised_from(error):
        status = status_of(one)
        # A stream that began well reports its errors in events.
        if status is not None and status >= 400 and status not in _STATUSES:
            return frozenset()
        for words in _refusals(message_of(one)[:_READ].lower()):
            named = {kind for kind, pattern in _NAMED.items() if pattern.search(words)}
            return frozenset(named & sent or sent)
    return frozenset()


def _refusals(text: str) -> Iterator[str]:
    """Yield the words of a message that refuse parts as such."""
    for at, pattern in enumerate(_WORDS):
        for found in pattern.finditer(text):
            start, end = found.span()
            near = text[max(start - _NEAR, 0) : end + _NEAR]
            if at >= len(_MOSTLY) or not _OF_ONE.search(near):
                yield found[0]
