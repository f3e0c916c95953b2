"""Making a database ready for a store."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from callslip import _core
from callslip._base.log import GuardedLogger

__all__ = ["Migration", "make_ready", "migrate"]

_logger = GuardedLogger("callslip.fleet")


@dataclass(frozen=True, slots=True)
class Migration:
    """What making a database ready has done.

    Attributes:
        before: The version of the tables before; 0 for none.
        after: The version after.
        missing_roles: The roles that the user may not create, and nobody has created yet.
    """

    before: int
    after: int
    missing_roles: tuple[str, ...]

    @property
    def hint(self) -> str | None:
        """What to do about the missing roles; `None` if there are none."""
        if not self.missing_roles:
            return None
        create = " ".join(f"CREATE ROLE {role} NOLOGIN;" for role in self.missing_roles)
        return (
            f"expected the roles {' and '.join(self.missing_roles)}: got a user who may not "
            "create them, so that only the owner of the tables can use this database; call "
            f'"{create}" as a user with CREATEROLE, then `callslip migrate` again'
        )


def migrate(url: str) -> tuple[int, int]:
    """Make a database ready for a store, or bring its tables to this version.

    Call it before processes of this version begin; those of the version before go on meanwhile.
    The database needs pgmq, the queue: its extension is created if the server has it, and else its
    SQL is run, which the extra `postgres` brings. The roles `callslip_worker` and `callslip_client`
    are created and receive their rights, also after a restore into a server without them. If the
    user may not create roles, a warning names the missing ones.

    Args:
        url: The URL of the database, as for `TicketStore`. The user must be allowed to create
            schemas, and has to be the owner of tables that exist.

    Returns:
        The versions of the tables before and after; 0 for none.

    Raises:
        StoreError: The database cannot be reached, was made ready by a later version, or has no
            pgmq.
    """
    done = make_ready(url)
    if done.hint is not None:
        _logger.warning("%s", done.hint)
    return done.before, done.after


def make_ready(url: str) -> Migration:
    """Do what `migrate` does, and return what there is to report."""
    before, after, missing = _core.Store.migrate(url, _pgmq())
    return Migration(before, after, tuple(missing))


def _pgmq() -> str | None:
    try:
        # The package is not imported: it would bring another client of the database.
        place = distribution("pgmq").locate_file("pgmq/sql/pgmq.sql")
    except PackageNotFoundError:
        return None
    return Path(str(place)).read_text("utf-8")
