"""Options of a console that have a wrong type."""

import re

import pytest

from callslip import TicketStore, UsageError
from callslip.console import console, serve

STORES = [
    ("", "expected the path of a file: got ''"),
    (":memory:", "expected the path of a file: got ':memory:'; use TicketStore() for memory"),
    (
        "mysql://user:secret@x/y",
        "expected the path of a file, or a URL that begins with postgresql",
    ),
]


@pytest.mark.parametrize(("store", "words"), STORES)
def test_what_names_no_store(store, words):
    with pytest.raises(UsageError, match=f"^{re.escape(words)}") as wrong:
        console(store)
    assert "secret" not in str(wrong.value)


def test_what_names_nobody():
    for by in (lambda: "x", lambda request, more: "x"):
        with (
            TicketStore() as store,
            pytest.raises(UsageError, match="^expected by to take the req"),
        ):
            console(store, by=by)


def test_what_opens_no_browser():
    for value in ("no", 0, None):
        with TicketStore() as store, pytest.raises(UsageError, match="^expected open_browser=True"):
            serve(store, open_browser=value)
