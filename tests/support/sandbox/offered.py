"""Which boxes this machine offers."""

from __future__ import annotations

import functools
import os

import pytest

from sandbox.cases import BOXED

ALL = (*BOXED, "unconfined")


@functools.cache
def missing(profile: str) -> str | None:
    """Why this machine has no such box; None where it has one."""
    from callslip import PythonRunner
    from callslip.errors import IsolationUnavailable

    try:
        with PythonRunner(profile=profile) as runner:
            runner.run("pass")
    except IsolationUnavailable as error:
        return str(error)
    return None


def need(profile: str) -> None:
    """Skip the test where a machine has no such box; one of CI must have it."""
    why = missing(profile)
    if why is not None:
        assert not os.environ.get("CI"), f"CI must offer {profile}: {why}"
        pytest.skip(why)
