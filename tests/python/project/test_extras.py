"""What is said where a package is missing that an extra installs."""

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules[sys.argv[1]] = None
import callslip
try:
    __import__(sys.argv[2])
except ModuleNotFoundError as error:
    print(error.name, "|", error)
"""


@pytest.mark.parametrize(
    ("package", "module", "requirement"),
    [
        ("opentelemetry", "callslip.otel", "callslip[otel]"),
        ("starlette", "callslip.console", "callslip[console]"),
        ("temporalio", "callslip.temporal", "callslip[temporal]"),
        ("hypothesis", "callslip.testing.strategies", "hypothesis"),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(package, module, requirement):
    command = [sys.executable, "-c", MISSING, package, module]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"{package} is not installed: use pip install '{requirement}'" in out
