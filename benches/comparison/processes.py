"""Measurements, each in a process of its own with a limit of CPU time."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comparison.environments import ROOT, python_of
from comparison.peers import Peer

LIMIT = 60.0
"""Seconds of CPU that a measurement may take."""
MARGIN = 15.0
"""The same for imports and for the runs that warm it up."""
PATIENCE = 600.0
"""Seconds, after which it hangs."""
QUIET = {
    "AGNO_TELEMETRY": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OPENAI_API_KEY": "none",
    "PYTHONPATH": str(ROOT / "benches"),
}

Reading = dict[str, Any]


def surroundings(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that measures: it may keep what Python compiles."""
    inherited = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**inherited, **QUIET, **more}


def measure(
    peer: Peer,
    kind: str,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
) -> Reading:
    """Return what a process of the peer measures, `{"over": 60}` or its error."""
    words = [kind, peer.name, int(LIMIT + MARGIN), *arguments]
    command = [python_of(peer), "-m", "comparison.measure", *map(str, words)]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env=surroundings(environment or {}),
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"over": LIMIT}
        if process.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
            return {"over": LIMIT}
        if process.returncode == 0:
            return dict(json.loads(said))
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines() or [""]
        return {"failed": process.returncode, "error": lines[-1][:200]}


def cpu_of(python: Path, code: str) -> float:
    """Seconds of CPU of a fresh process that executes this code."""
    environment = surroundings({})
    process = subprocess.Popen([python, "-c", code], env=environment, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"expected {code!r} to succeed: got exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def medians(readings: list[Reading]) -> Reading:
    """Return the median of each figure, or the reading that has none."""
    without = [one for one in readings if "over" in one or "failed" in one]
    if without:
        return without[0]
    return {key: statistics.median(one[key] for one in readings) for key in readings[0]}
