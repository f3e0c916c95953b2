"""What all tests share."""

import gc
import logging
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import payments
from browsing import CHROMIUM, OPTIONS
from callslip import TicketStore
from optional import why_missing
from random_cases import cases
from shared import SHARED

# How long an example takes, and which ones are drawn, says more of the machine and of the seed than
# of what is tested.
LUCK = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)


def pytest_configure(config):
    """Try the same examples each time, unless a seed is given: `make seeds` draws one."""
    settings.register_profile(
        "suite",
        database=None,
        deadline=None,
        derandomize=config.getoption("--hypothesis-seed", None) is None,
        max_examples=cases(100),
        suppress_health_check=LUCK,
    )
    settings.load_profile("suite")


# While tests are collected there is only more of them: a third of that time.
gc.disable()

# pytest's own handlers would receive the log of every run,
# and runs that nobody logs would be tested no more.
logging.getLogger("callslip.run").setLevel(logging.CRITICAL + 1)

# A shell has its background jobs ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than cores: many tests wait more than they work."""
    return (os.cpu_count() or 1) + 1


def skip_if_missing(report, error, path):
    """Skip what failed because an optional package is not installed."""
    if report.failed and (reason := why_missing(error)):
        report.outcome = "skipped"
        report.longrepr = (str(path), 0, f"Skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file that imports an optional package, instead of ending the collection."""
    report = yield
    if report.failed:
        skip_if_missing(report, report.call.excinfo.value, collector.path)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip tests of missing packages.

    Half a surrogate pair, which some tests log, can't be sent from process to process.
    """
    report = yield
    if report.failed:
        skip_if_missing(report, call.excinfo.value, item.path)
    report.sections = [
        (title, text.encode(errors="replace").decode()) for title, text in report.sections
    ]
    return report


def process_state():
    """What other tests of this process depend on."""
    own = ("callslip", *(f"callslip.{name}" for name in ("tools", "openapi", "mcp", "run")))
    loggers = [logging.getLogger(name) for name in ("", *own)]
    return {
        "levels and filters of logs": [
            (one.name, one.level, one.disabled, one.propagate, *one.filters) for one in loggers
        ],
        "logging.disable": logging.root.manager.disable,
        "working directory": Path.cwd(),
        "environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """A test that changes this state and leaves it so makes another one fail, far from here."""
    item.before = process_state()
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item, nextitem):
    result = yield
    if nextitem is None or nextitem.path != item.path:
        # Collections pass over what a file has imported: some libraries are half a million objects.
        gc.collect()
        gc.freeze()
    after = process_state()
    changed = [name for name, value in item.before.items() if after[name] != value]
    assert not changed, f"the test left changed: {', '.join(changed)}"
    return result


LONGEST = (
    # Of `make test-shared`; elsewhere it takes a second.
    "protocols/test_templates.py",
    "sandbox/test_hostile_scripts.py",
    "store/test_faults.py",
    "fleet/test_crash.py",
    "models/test_local_agent.py",
    "models/test_local_model.py",
    "openapi/test_secrets.py",
    "mcp/test_failures.py",
    "console/test_in_browser.py",
    "sandbox/test_amounts.py",
    "runtime/test_soak.py",
)


def pytest_collection_modifyitems(config, items):
    """Leave out what means nothing with a store that processes share. The longest files begin."""
    left_out = [
        item
        for item in items
        if item.get_closest_marker("one_process") and "postgres" in item.callspec.id.split("-")
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    # One that began last would leave all workers but its own without work.
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_collection_finish(session):
    """Have collections pass over the thousands of tests themselves: each would take a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item):
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip("only `make test-shared` reads other people's texts")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_store(request, tmp_path):
    """An empty store of each kind."""
    places = {"memory": lambda: None, "sqlite": lambda: tmp_path / "runs.sqlite"}
    place = places.get(request.param, lambda: request.getfixturevalue("database"))
    with TicketStore(place()) as store:
        yield store


@pytest.fixture
def store(any_store):
    """The same, where a folder has no other one."""
    return any_store


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL of this process, with which the tests share no database."""
    # Some tests are run where there is none: those of a wheel.
    from postgres import Server, find_postgres

    if not os.environ.get("CI"):
        try:
            find_postgres()
        except RuntimeError as why:
            pytest.skip(str(why))
    with Server() as server:
        yield server


@pytest.fixture
def database(postgres):
    """The URL of a new database that is ready for a store."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: install it with the system's packages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def path(tmp_path):
    """Where a store's file may be made."""
    return tmp_path / "runs.sqlite"


@pytest.fixture
def no_payments():
    """No payments were made before the test."""
    payments.made.clear()
