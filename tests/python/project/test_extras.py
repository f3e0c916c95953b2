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


WEB = """
import sys
sys.modules["starlette"] = None
from callslip.web import Guard, error_body, event_stream, item_json, status_of
try:
    from callslip.web import event_response
except ModuleNotFoundError as error:
    print(error)
"""


def test_only_a_part_of_web_needs_starlette():
    command = [sys.executable, "-c", WEB]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert out == "starlette is not installed: use pip install 'callslip[web]'\n"
