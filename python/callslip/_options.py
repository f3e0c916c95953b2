"""Checks of options, for programs that no type checker has seen."""

from __future__ import annotations

from callslip.errors import UsageError

__all__ = ["check_one_of", "check_text", "is_url"]


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that an option is one of some words.

    Raises:
        UsageError: It is not.
    """
    if value not in allowed:
        expected = " or ".join(repr(word) for word in allowed)
        raise UsageError(f"expected {name}={expected}: got {value!r}")


def check_text(what: str, text: object) -> None:
    """Check that a value is text that can be written down as UTF-8.

    Raises:
        UsageError: It is not.
    """
    if not isinstance(text, str):
        raise UsageError(f"expected {what} to be text: got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} contains half of a surrogate pair at {error.start}, which is not a "
            "character: decode the text again"
        ) from None


def is_url(name: str) -> bool:
    """Whether this is the URL of a database, and no path of a file."""
    return name.startswith(("postgresql://", "postgres://"))
