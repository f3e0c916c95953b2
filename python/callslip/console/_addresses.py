"""The addresses of runs: an import may have any text as its id."""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

__all__ = ["key_of", "run_id_of"]

# An address that ends in .html or .jsonl is that of a file.
_PLAIN = re.compile(r"(?!.*\.(?:html|jsonl)$)[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


def key_of(run_id: str) -> str:
    """Return what stands for the id of a run in an address."""
    if _PLAIN.fullmatch(run_id):
        return run_id
    return f"~{urlsafe_b64encode(run_id.encode()).decode().rstrip('=')}"


def run_id_of(key: str) -> str:
    """Return the id of a run; an id that no run has for what is no key."""
    if not key.startswith("~"):
        return key
    text = key[1:]
    try:
        return urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}").decode()
    except (binascii.Error, ValueError):
        return ""
