"""What all tests share."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from callslip import TicketStore

# How long an example takes says more of the machine's other work than of what is tested. CI tries
# the same examples each time; everywhere else new ones are looked for.
settings.register_profile(
    "suite",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("suite")

# A shell has its background jobs ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than cores: many tests wait more than they work."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Half a surrogate pair, which some tests log, can't be sent from process to process."""
    report = yield
    report.sections = [
        (title, text.encode(errors="replace").decode()) for title, text in report.sections
    ]
    return report


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
