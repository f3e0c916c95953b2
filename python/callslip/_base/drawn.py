"""Images of PIL and figures of matplotlib, drawn as PNG. Neither library need be installed."""

from __future__ import annotations

from io import BytesIO
from typing import Any

__all__ = ["png_of"]

_MODES = {"La": "LA", "RGBa": "RGBA", "PA": "RGBA"}
"""The modes of PIL to convert those to that have transparency."""


def png_of(value: object) -> bytes | None:
    """Return an image of PIL or a figure of matplotlib as PNG; `None` for any other value."""
    if isinstance(value, type):
        return None
    draw: Any = getattr(value, "_repr_png_", None)
    if callable(draw):
        drawn = draw()
        if drawn is None:
            # PIL draws only the modes that PNG has.
            drawn = _draw_converted(value)
        return drawn if isinstance(drawn, bytes) else None
    save: Any = getattr(value, "savefig", None)
    if callable(save):
        written = BytesIO()
        save(written, format="png")
        return written.getvalue()
    return None


def _draw_converted(image: Any) -> object:
    """Return an image of PIL as PNG in a mode that PNG has; `None` if it cannot be converted."""
    mode = getattr(image, "mode", None)
    if not isinstance(mode, str) or not callable(getattr(image, "convert", None)):
        return None
    try:
        if mode.startswith(("I", "F")):
            return _in_grey_levels(image.convert("F"))._repr_png_()
        return image.convert(_MODES.get(mode, "RGB"))._repr_png_()
    except (ValueError, OSError):
        return None


def _in_grey_levels(image: Any) -> Any:
    """Return an image of numbers in 256 levels of grey.

    Values from 0 to 255 are levels, and those from 0 to 1 shares of white. All others are
    stretched: the lowest becomes black, and the highest white.
    """
    low, high = image.getextrema()
    if low < 0 or high > 255:
        scale = 255 / ((high - low) or 1)
        image = image.point(lambda value: value * scale - low * scale)
    elif high <= 1:
        image = image.point(lambda value: value * 255 + 0)
    return image.convert("L")
