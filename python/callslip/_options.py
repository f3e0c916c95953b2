"""Checks of options that the type checker sees and a notebook does not."""

from __future__ import annotations

from callslip.errors import UsageError

__all__ = ["check_one_of", "check_text"]


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise `UsageError` where an option is none of the words it may be."""
    if value not in allowed:
        expected = " or ".join(repr(word) for word in allowed)
        raise UsageError(f"expected {name}={expected}: got {value!r}")


def check_text(what: str, text: object) -> None:
    """Raise `UsageError` where a text is none, or can't be written down."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be text: got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} contains half of a surrogate pair at {error.start}, which is not a "
            "character: decode the text again"
        ) from None
