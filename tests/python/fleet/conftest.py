"""Stores of one database; and tests that are coroutines run on an event loop of their own."""

import asyncio
import inspect

import pytest

from callslip import TicketStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def store(database):
    """A store of the database, where nothing else is meant by it."""
    with TicketStore(database) as store:
        yield store


@pytest.fixture
def web(database):
    """The store of a process that drives nothing."""
    with TicketStore(database) as store:
        yield store


@pytest.fixture
def here(database):
    """The store of this process."""
    with TicketStore(database) as store:
        yield store


@pytest.fixture
def far(database):
    """The store of another process."""
    from fleets.boss import from_far

    with TicketStore(from_far(database)) as store:
        yield store
