"""Runners of both kinds, for tests that hold of any."""

import os
import sys

import pytest

from callslip import CommandRunner, PythonRunner
from callslip.sandbox import _runner, serve
from callslip.sandbox._native import has_sandbox

SERVE = [sys.executable, "-I", "-u", serve.__file__]


@pytest.fixture(autouse=True)
def _warned():
    """`auto` may come to less than there could be; that it is said once is tested on its own."""
    _runner._warned.set()


@pytest.fixture
def external():
    """Makes runners by the external runner of the package."""
    made = []

    def make(**options):
        made.append(PythonRunner(backend=CommandRunner(SERVE), **options))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


@pytest.fixture(params=["external", "native"])
def make(request, external):
    """Makes runners: by the external runner, and in a box of this machine."""
    if request.param == "external":
        yield external
        return
    if not has_sandbox() and not os.environ.get("CI"):
        pytest.skip("this machine can't keep scripts apart")
    made = []

    def native(**options):
        made.append(PythonRunner(**options))
        return made[-1]

    yield native
    for runner in made:
        runner.close()
