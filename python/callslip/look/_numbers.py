"""Times and numbers of a page in words."""

from __future__ import annotations

from datetime import UTC, datetime

from callslip._base.usage import Usage

__all__ = ["count", "duration", "moment", "usage_rows"]


def duration(seconds: float | None) -> str:
    """Return a time in words; a dash if it is not known."""
    if seconds is None:
        return "–"  # noqa: RUF001  # a dash
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(at: float) -> str:
    """Return a moment in UTC; a dash if there is no such date."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "–"  # noqa: RUF001  # a dash


def count(number: int, name: str) -> str:
    """Return a number with the name of the things."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def usage_rows(usage: Usage, more: str) -> list[tuple[str, str]]:
    """Return the rows of a usage. `more` follows numbers that are known only in part."""
    if more and not (usage.input_tokens or usage.output_tokens):
        return [("tokens", "not reported")]
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    rows = [
        ("tokens in", f"{usage.input_tokens:,}{more}{cached}"),
        ("tokens out", f"{usage.output_tokens:,}{more}"),
    ]
    return [*rows, ("cost", f"{usage.cost:.4f}{more}")] if usage.cost else rows
