"""The process of one client, in the environment of its framework.

    python -m gateway_clients.client NAME URL KEY

A line of stdin is a task. Lines of stdout are the calls that ended well, as they are made, and the
answer or the error.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from eval_tools import TOOLS

from gateway_clients.job import Job

Report = Callable[[dict[str, Any]], None]


def reporter(out: TextIO) -> Report:
    def report(row: dict[str, Any]) -> None:
        out.write(json.dumps(row, default=str) + "\n")
        out.flush()

    return report


def recorded(function: Callable[..., Any], report: Report) -> Callable[..., Any]:
    """Return the function; a call that ends well is reported."""

    @functools.wraps(function)
    def record(**arguments: Any) -> Any:
        result = function(**arguments)
        report({"call": [function.__name__, arguments]})
        return result

    return record


def main(name: str, url: str, key: str) -> None:
    # Frameworks print; the harness reads the real stdout.
    report = reporter(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    sys.stdout = sys.stderr
    answer = importlib.import_module(f"gateway_clients.clients.{name}").answer
    report({"ready": True})
    for line in sys.stdin:
        task = json.loads(line)
        names = [form["function"]["name"] for form in task["forms"]]
        functions = [recorded(TOOLS[one], report) for one in names]
        try:
            found = answer(Job(task["text"], functions, task["forms"], url, key))
            report({"answer": "" if found is None else str(found)})
        except Exception as error:  # noqa: BLE001  # a client may raise anything
            report({"error": f"{type(error).__name__}: {error}"[:400]})


if __name__ == "__main__":
    main(*sys.argv[1:])
