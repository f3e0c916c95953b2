"""Options that are a name or two marks."""

from __future__ import annotations

import re

from callslip.errors import UsageError

__all__ = ["tag_pair"]

_TAG_NAME = re.compile(r"[^\s<>/]+")


def tag_pair(option: str, tag: object) -> tuple[str, str]:
    """Return the opening and the closing mark of an option that is a name or these marks.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(tag, str):
        if not _TAG_NAME.fullmatch(tag):
            raise UsageError(
                f"expected the name of a tag in {option}, without brackets and blanks: got {tag!r}"
            )
        return f"<{tag}>", f"</{tag}>"
    match tag:
        case (str(start), str(end)) if start.strip() and end.strip() and start != end:
            return start, end
    raise UsageError(
        f"expected {option} to be names, or pairs of two different marks that are not empty: got "
        f"{tag!r}"
    )
