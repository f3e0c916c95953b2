"""Making a database ready for a store."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from callslip import _core

__all__ = ["migrate"]


def migrate(url: str) -> tuple[int, int]:
    """Make a database ready for a store, or bring its tables to this version.

    Call it before processes of this version begin; those of the version before go on meanwhile.
    The database needs pgmq, the queue: its extension is created if the server has it, and else its
    SQL is run, which the extra `postgres` brings.

    Args:
        url: The URL of the database, as for `TicketStore`. The user must be allowed to create
            schemas.

    Returns:
        The versions of the tables before and after; 0 for none.

    Raises:
        StoreError: The database cannot be reached, was made ready by a later version, or has no
            pgmq.
    """
    return _core.Store.migrate(url, _pgmq())


def _pgmq() -> str | None:
    try:
        # The package is not imported: it would bring another client of the database.
        place = distribution("pgmq").locate_file("pgmq/sql/pgmq.sql")
    except PackageNotFoundError:
        return None
    return Path(str(place)).read_text("utf-8")
