"""The seal of a call: a decision counts for exactly the call that was shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["seal_of"]


def seal_of(run_id: str, ticket_id: str, tool: str, arguments: Mapping[str, Any] | None) -> str:
    """Return the seal, in hexadecimal digits: SHA-256 of the call with all its arguments."""
    call = json.dumps([run_id, ticket_id, tool, arguments], sort_keys=True)
    return hashlib.sha256(call.encode()).hexdigest()
