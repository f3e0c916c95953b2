"""The context of a model: its size in tokens, and the tokens of texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TypeAlias, TypeGuard

from callslip._base.failure import message_of
from callslip.errors import CallslipError, UsageError
from callslip.models._reply import Message
from callslip.parts import File, Image

__all__ = [
    "CountTokens",
    "TokenCounter",
    "check_context",
    "context_of",
    "counter_of",
    "estimate",
    "message_tokens",
]

CountTokens: TypeAlias = Callable[[str], int]
"""A function from a text to the number of its tokens."""

_BYTES = 3
"""The estimated UTF-8 bytes of a token. Prose has more, JSON and source code have fewer."""

_PIXELS = 750
"""Pixels of a token."""
_IMAGE = 1_600
"""Tokens of an image, at most: services make larger ones smaller."""
_FILE_BYTES = 50
"""The estimated bytes of a token of a PDF file or a recording."""
_FILE = 20_000
"""The most tokens that one of them is taken to have."""

_MARKS = 6
"""Tokens for the role of a message, and for the marks around it."""


def estimate(text: str) -> int:
    """Return the estimated number of tokens of a text: one for three bytes of UTF-8."""
    return -(-_length(text) // _BYTES)


def _length(text: str) -> int:
    """Return the number of UTF-8 bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def message_tokens(message: Message, count: CountTokens) -> int:
    """Return the tokens of a message with its images and files.

    Args:
        message: The message, with those of its parts that the model takes.
        count: Returns the tokens of its text.
    """
    parts = message.get("parts")
    return count(message["content"]) + (sum(map(_part_tokens, parts)) if parts else 0)


def _part_tokens(part: File) -> int:
    if isinstance(part, Image) and part.width is not None and part.height is not None:
        # https://docs.anthropic.com/en/docs/build-with-claude/vision
        return min(part.width * part.height // _PIXELS + 1, _IMAGE)
    # Of pages and of seconds nothing is known here.
    return _IMAGE if part.kind == "image" else min(part.size // _FILE_BYTES + 1, _FILE)


def check_context(context: object) -> int | None:
    """Return the size of a context in tokens.

    Raises:
        UsageError: It is neither `None` nor a whole number from 1.
    """
    if context is None or _is_size(context):
        return context
    raise UsageError(f"expected context to be a number of tokens from 1: got {context!r}")


def context_of(model: object) -> int | None:
    """Return the tokens that the context of a model holds; `None` if that is not known.

    A function with `functools.wraps` has that of the model it wraps.
    """
    context = getattr(_stating(model, "context"), "context", None)
    # An attribute of that name may be anything.
    return context if _is_size(context) else None


def _stating(model: object, name: str) -> object:
    """Return the model inside of `functools.wraps` that has an attribute; the innermost if none."""
    while not hasattr(model, name) and hasattr(model, "__wrapped__"):
        model = model.__wrapped__
    return model


def calls_with_context(model: object) -> bool:
    """Whether a function refers to a model whose context is known."""
    if not inspect.isfunction(model):
        return False
    try:
        names = inspect.getclosurevars(model)
    except ValueError:  # a variable that has no value yet
        return False
    used = (*names.nonlocals.values(), *names.globals.values())
    return any(callable(one) and context_of(one) is not None for one in used)


def _is_size(context: object) -> TypeGuard[int]:
    return isinstance(context, int) and not isinstance(context, bool) and context >= 1


def counter_of(model: object) -> CountTokens | None:
    """Return the function of a model that counts tokens; `None` if it has none."""
    count = getattr(_stating(model, "count_tokens"), "count_tokens", None)
    return count if callable(count) and not inspect.iscoroutinefunction(count) else None


class TokenCounter:
    """Counts the tokens of messages, each text once.

    A count that fails is replaced by an estimate, and so are all later ones.

    Args:
        count: The model's own count; `None` for an estimate.

    Attributes:
        is_exact: Whether the model itself counts.
    """

    __slots__ = ("_count", "_counts", "is_exact")

    def __init__(self, count: CountTokens | None) -> None:
        self._count = count
        self._counts: dict[str, int] = {}
        self.is_exact: bool = count is not None

    def __call__(self, text: str) -> int:
        """Return the tokens of a message with this text."""
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = self._tokens(text) + _MARKS
        return known

    def at_most(self, text: str) -> int:
        """Return a number that is no smaller, without counting."""
        if text in self._counts:
            return self._counts[text]
        return _length(text) + _MARKS

    def _tokens(self, text: str) -> int:
        if self._count is None:
            return estimate(text)
        try:
            tokens = self._count(text)
            if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
                raise UsageError(f"expected a number of tokens from count_tokens: got {tokens!r}")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001  # a run does not end because of it
            self._count, self.is_exact = None, False
            if not isinstance(error, CallslipError) or isinstance(error, UsageError):
                warnings.warn(
                    f"count_tokens of the model failed, and tokens are estimated from now on: "
                    f"{type(error).__name__}: {message_of(error)}",
                    stacklevel=2,
                )
            return estimate(text)
        return tokens
