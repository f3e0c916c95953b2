"""What must hold of a hostile script: what its case asks for, and what holds of every script."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox.cases import Case
from sandbox.scene import SECRET

BUSY = 30.0
"""Seconds that a machine with other work to do may add to what a case takes."""
STATUSES = {
    "ok", "error", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit",
    "prompt_limit", "idle_timeout", "cancelled", "killed",
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What came of a script, and what was seen around it."""

    # The fields of the result; for what was refused `{"refused": code}`.
    result: Mapping[str, Any]
    seconds: float
    artifacts: Path
    """Where the artifacts' files lie."""
    contacts: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Temporary files that are left."""
    events: list[str] = field(default_factory=list)


def problems(case: Case, outcome: Outcome) -> list[str]:
    """Each thing that doesn't hold, in words."""
    found = list(_around(outcome))
    for place in map(Path, case.check.get("absent", ())):
        if os.path.lexists(place):
            found.append(f"{place} is on the host")
            place.unlink()
    if case.kind == "deps":
        return found + list(_refusal(case.check, outcome))
    if "refused" in outcome.result:
        return [*found, f"the script was refused: {outcome.result}"]
    return found + list(_asked(case.check, outcome)) + list(_of_any(outcome))


def _around(outcome: Outcome) -> Iterator[str]:
    yield from outcome.disturbed
    if outcome.contacts:
        yield f"the listeners were reached: {outcome.contacts}"
    if outcome.processes:
        yield f"processes are left: {outcome.processes}"
    if outcome.files:
        yield f"temporary files are left: {outcome.files[:5]}"


def _refusal(check: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    # What is good is asked for, and denied there: nothing is installed.
    expected = "dependency_denied" if check["ok"] else "dependency_rejected"
    if outcome.result.get("refused") != expected:
        yield f"expected {expected}, came {outcome.result}"
    if outcome.events:
        yield f"something was begun: {outcome.events}"


def _asked(check: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    result = outcome.result
    if "status" in check and result["status"] not in check["status"]:
        shown = {name: result[name] for name in ("status", "exit_code", "signal")}
        tail = result["stderr"][-300:]
        yield f"expected a status of {check['status']}, came {shown}: {tail!r}"
    if "no" in check and check["no"] in result["stdout"]:
        yield f"{check['no']!r} is in the output: {result['stdout'][-200:]!r}"
    if "has" in check and check["has"] not in result["stdout"]:
        shown = result["stdout"][-200:] + result["stderr"][-400:]
        yield f"{check['has']!r} is not in the output: {shown!r}"
    for name in ("exit", "signal"):
        came = result["exit_code" if name == "exit" else name]
        if name in check and came != check[name]:
            yield f"expected {name} {check[name]}, came {came}"
    if "truncated" in check:
        cut = result["stdout_truncated"] or result["stderr_truncated"]
        if cut is not check["truncated"]:
            yield f"expected truncated {check['truncated']}, came {cut}"
    yield from _about_size(check, outcome)


def _about_size(check: Mapping[str, Any], outcome: Outcome) -> Iterator[str]:
    result = outcome.result
    for name in ("stdout", "stderr"):
        size = len(result[name].encode("utf-8", "surrogatepass"))
        if "max_out" in check and size > check["max_out"]:
            yield f"{size} bytes of {name} are kept"
    count = len(result["artifacts"])
    if not check.get("min_artifacts", 0) <= count <= check.get("max_artifacts", count):
        yield f"{count} artifacts: {[one['path'] for one in result['artifacts']]}"
    if outcome.seconds > check.get("max_ms", 60_000) / 1000 + BUSY:
        yield f"it took {outcome.seconds:.1f} s"


def _of_any(outcome: Outcome) -> Iterator[str]:
    result = outcome.result
    if result["status"] not in STATUSES:
        yield f"no status is called {result['status']!r}"
    for name in ("stdout", "stderr"):
        if SECRET in result[name]:
            yield f"the secret is in {name}"
        try:
            result[name].encode()
        except UnicodeEncodeError as error:
            yield f"{name} is no text: {error}"
    yield from _of_artifacts(result["artifacts"], outcome.artifacts)


def _of_artifacts(artifacts: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    told = set()
    for artifact in artifacts:
        name, file = artifact["path"], Path(artifact["file"])
        told.add(file.resolve())
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not name.isprintable():
            yield f"an artifact is called {name!r}"
        if not file.is_relative_to(folder):
            yield f"an artifact lies at {file}"
            continue
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_mode & 0o7111:
            yield f"artifact {name!r} has mode {oct(about.st_mode)}, links {about.st_nlink}"
            continue
        content = file.read_bytes()
        if SECRET.encode() in content:
            yield f"the secret is in artifact {name!r}"
        if len(content) != artifact["size"]:
            yield f"artifact {name!r} has {len(content)} bytes, told {artifact['size']}"
        if hashlib.sha256(content).hexdigest() != artifact["sha256"]:
            yield f"artifact {name!r} has another sha256 than told"
    if len(told) != len(artifacts):
        yield f"{len(artifacts)} artifacts share {len(told)} files"
    untold = {file.resolve() for file in folder.rglob("*") if not file.is_dir()} - told
    if untold:
        yield f"files that no artifact names: {sorted(map(str, untold))[:5]}"
