"""What goes wrong between a session and its server, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from callslip._base import _lazy
from callslip.tools import Fail

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "SILENT",
    "Refusal",
    "ServerFailure",
    "SessionLost",
    "describe_fault",
    "first_cause",
    "location",
]

SILENT = "it failed without saying why."
"""What is said of an error without a message."""


class Refusal(Fail):
    """A call that a server over HTTP refused.

    Attributes:
        headers: The headers of its response, which may ask to wait.
    """

    def __init__(self, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.headers = headers


class ServerFailure(Refusal):
    """A failed call, with the server's own message."""


class SessionLost(Exception):  # noqa: N818  # the model reads it as a failure
    """The session ended before a call was answered.

    Attributes:
        is_safe: Whether the call cannot have reached the server.
    """

    def __init__(self, message: str, *, is_safe: bool) -> None:
        super().__init__(message)
        self.is_safe = is_safe


def first_cause(error: BaseException) -> BaseException:
    """Return the first error of a group, at any depth."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe_fault(error: RuntimeError | ValidationError) -> str:
    """Say what is wrong with a message, without the message.

    The SDK's words, and those of what it checks with, quote it cut or wrapped: a secret in it would
    not be found.
    """
    if isinstance(error, _lazy.pydantic.ValidationError):
        place = location(error)
        return f"its answer has a fault at '{place}'" if place else "its answer has a fault"
    if (path := getattr(error.__cause__, "absolute_path", None)) is not None:
        place = "".join(f"/{step}" for step in path)
        return f"its structured result does not fit its output schema at '{place}'"
    if str(error).startswith("Invalid schema"):
        return "its output schema is invalid"
    return str(error)


def location(error: ValidationError) -> str:
    """Return the place of the first error in the message: `tools.0.name`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(step) for step in first["loc"])
