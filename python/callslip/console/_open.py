"""The console of a store, to mount in an application."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection

from callslip._base.options import check_place
from callslip.console._access import Access
from callslip.console._app import Console
from callslip.console._options import Name, checked_name
from callslip.console._source import source_of
from callslip.errors import UsageError
from callslip.store import TicketStore
from callslip.web._options import LOOPBACK, checked_hosts, checked_token

__all__ = ["console"]


def console(
    store: TicketStore | str | os.PathLike[str],
    *,
    token: str | None = None,
    reader_token: str | None = None,
    hosts: Collection[str] | None = None,
    by: Name | None = None,
) -> Console:
    """Return the console of a store, as an application of ASGI to mount in another one.

    A person signs in once, with the token: at `login#token=…`, or on the page that asks for it.
    Everything that the runs contain can be read then, and each call that awaits approval can be
    approved or denied. Credentials are masked where they can be recognised by their form, but not
    in the arguments of a call that awaits approval.

    Args:
        store: The store. In the process that has its file open, pass the `TicketStore`; elsewhere
            the path of the file, which is only read as long as another process has it open.
        token: What a person presents, of 32 characters or more. Default: a new one, in the
            attribute `token` of what is returned.
        reader_token: What a person presents who may read, and decide nothing. Default: there are no
            such people.
        hosts: The names under which the pages are served, such as `"ops.example.com"`. A request
            for another name is refused. Default: those of this machine itself.
        by: Returns the name of the person who makes a request, as your application knows it. The
            log keeps it with the decision, and the address that it came from.

    Raises:
        UsageError: An option has a wrong value, or this process has the file open.
        StoreError: The file cannot be read, or is not a store.
    """
    if isinstance(store, str):
        check_place(store)
    secret = secrets.token_urlsafe(32) if token is None else checked_token(token)
    readers = None if reader_token is None else checked_token(reader_token)
    if readers == secret:
        raise UsageError("expected reader_token to be another one than token: got the same")
    names = LOOPBACK if hosts is None else checked_hosts(hosts)
    return Console(source_of(store), Access(secret, names, readers), checked_name(by), token=secret)
