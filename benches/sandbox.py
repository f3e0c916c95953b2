"""From the call to the result of a script, beside Python's own start and others, as Markdown.

    python benches/sandbox.py [--rounds 40]

Rounds go through all rows in turn; the least and the median of each are printed, in milliseconds.
Nothing is kept between calls but what a program keeps: the runner, or the executor. `print(1)` is
what a call costs; the loop of 200,000 steps is what running Python costs.

smolagents' local executor walks the syntax tree within this process: it starts nothing, and holds
a script back by what it doesn't implement.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

Row = Callable[[str], str]
"""Runs a script and returns what it printed."""

SCRIPTS = {
    "`print(1)`, ms": ("print(1)", "1"),
    "a loop, ms": (
        "total = 0\nfor number in range(200_000):\n    total += number % 7\nprint(total)",
        "599994",
    ),
}


def bare(code: str) -> str:
    """The interpreter as a box starts it, with nothing around it."""
    command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def plain(code: str) -> str:
    """What one writes without thinking further."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def runner(profile: str) -> Row:
    from callslip import PythonRunner

    made = PythonRunner(profile=profile)

    def run(code: str) -> str:
        result = made.run(code)
        assert result.ok, result
        return result.stdout

    return run


def smolagents() -> Row:
    from smolagents.local_python_executor import LocalPythonExecutor

    executor = LocalPythonExecutor([])
    executor.send_tools({})

    def run(code: str) -> str:
        return str(executor(code).logs)

    return run


def rows() -> dict[str, Row]:
    made: dict[str, Row] = {
        "`python -I -S -B` alone": bare,
        "`subprocess.run([python, …])`": plain,
    }
    for profile in ("unconfined", "restricted", "isolated"):
        made[f"callslip, `{profile}`"] = runner(profile)
    made["smolagents' local executor, in process"] = smolagents()
    return made


def offered(made: dict[str, Row]) -> dict[str, Row]:
    """Those that run here; why the others don't is told beside the table."""
    from callslip.errors import IsolationUnavailable

    running = {}
    for name, row in made.items():
        try:
            row("print(1)")
        except IsolationUnavailable as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            running[name] = row
    return running


def measure(row: Row, code: str, printed: str) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    text = row(code)
    taken = time.perf_counter() - began
    assert text.strip() == printed, text
    return taken * 1000


def main(rounds: int) -> None:
    running = offered(rows())
    readings: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for script, (code, printed) in SCRIPTS.items():
            for name, row in running.items():
                readings.setdefault((name, script), []).append(measure(row, code, printed))
    version = importlib.metadata.version("smolagents")
    print(f"Python {platform.python_version()}, smolagents {version}, {rounds} rounds.\n")
    heads = [f"{script}: {which}" for script in SCRIPTS for which in ("least", "median")]
    print(f"| | {' | '.join(heads)} |")
    print("|" + "---|" * (len(heads) + 1))
    for name in running:
        cells = []
        for script in SCRIPTS:
            taken = readings[name, script]
            cells += [f"{min(taken):.1f}", f"{statistics.median(taken):.1f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    main(parser.parse_args().rounds)
