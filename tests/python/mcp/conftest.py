"""What tests of MCP share."""

import functools

import pytest


@pytest.fixture(params=["new", "old"])
def era(request, monkeypatch):
    """Without and with the handshake that MCP servers wanted before 2026."""
    import mcp

    if request.param == "old":
        monkeypatch.setattr(mcp, "Client", functools.partial(mcp.Client, mode="legacy"))
    return request.param
