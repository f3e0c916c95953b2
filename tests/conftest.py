"""What all tests share."""

import os

import pytest
from hypothesis import settings

from callslip import TicketStore

# CI tries the same examples each time; everywhere else new ones are looked for.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """An empty store of each kind."""
    with TicketStore(None if request.param == "memory" else tmp_path / "runs.sqlite") as store:
        yield store


@pytest.fixture
def path(tmp_path):
    """Where a store's file may be made."""
    return tmp_path / "runs.sqlite"


@pytest.fixture(params=["new", "old"])
def era(request, monkeypatch):
    """Without and with the handshake that MCP servers wanted before 2026."""
    if request.param == "old":
        import functools

        import mcp

        monkeypatch.setattr(mcp, "Client", functools.partial(mcp.Client, mode="legacy"))
    return request.param
