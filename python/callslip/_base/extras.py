"""Packages that a part of callslip needs, and that an extra installs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needs"]


@contextmanager
def needs(requirement: str) -> Iterator[None]:
    """Import optional packages, or name the extra that installs them.

    Args:
        requirement: The argument of `pip install`, such as `"callslip[otel]"`.

    Raises:
        ModuleNotFoundError: A package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "callslip").partition(".")[0]
        if package == "callslip":
            raise
        raise ModuleNotFoundError(
            f"{package} is not installed: use pip install '{requirement}'", name=package
        ) from error
