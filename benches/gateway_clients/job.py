"""One task for a client. Both the benchmark and the process of each client import it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["MAX_REQUESTS", "MAX_TOKENS", "Job"]

MAX_REQUESTS = 6
"""Requests to the model for a task, as `eval.py` allows an agent."""
MAX_TOKENS = 200
"""Tokens of one reply."""


@dataclass(frozen=True)
class Job:
    """A task for a client.

    Attributes:
        text: The request of the user.
        functions: The tools as functions.
        forms: The same tools in OpenAI's form.
        url: The base URL of the model.
        key: Its key.
    """

    text: str
    functions: list[Callable[..., Any]]
    forms: list[dict[str, Any]]
    url: str
    key: str
