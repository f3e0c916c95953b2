"""What tests of OpenAPI documents share."""

import pytest

from callslip._runtime import tool_attempts


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No waiting between attempts, unless a server asks for it."""
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)
