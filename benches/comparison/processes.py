"""Measurements, each in a process of its own with a time limit."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comparison.environments import ROOT, python_of
from comparison.peers import Peer

LIMIT = 60.0
"""Seconds that a measurement may take."""
MARGIN = 15.0
"""Seconds for imports and for the runs that warm it up."""
QUIET = {
    "AGNO_TELEMETRY": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OPENAI_API_KEY": "none",
    "PYTHONPATH": str(ROOT / "benches"),
}

Reading = dict[str, Any]


def measure(
    peer: Peer,
    kind: str,
    *arguments: object,
    limit: float = LIMIT + MARGIN,
    environment: Mapping[str, str] | None = None,
) -> Reading:
    """Return what a process of the peer measures, `{"over": 60}` or its error."""
    command = [python_of(peer), "-m", "comparison.measure", kind, peer.name, *map(str, arguments)]
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            env={**os.environ, **QUIET, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=words,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"over": LIMIT}
        if process.returncode == 0:
            return dict(json.loads(said))
        words.seek(0)
        lines = words.read().decode(errors="replace").strip().splitlines() or [""]
        return {"failed": process.returncode, "error": lines[-1][:200]}


def seconds(python: Path, code: str) -> float:
    """Seconds of a fresh process that executes this code."""
    environment = {**os.environ, **QUIET}
    began = time.perf_counter()
    subprocess.run([python, "-c", code], env=environment, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def medians(readings: list[Reading]) -> Reading:
    """Return the median of each figure, or the reading that has none."""
    without = [one for one in readings if "over" in one or "failed" in one]
    if without:
        return without[0]
    return {key: statistics.median(one[key] for one in readings) for key in readings[0]}
