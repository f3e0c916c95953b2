"""The limits of a script."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from callslip._base.option_names import knows_names_of_class
from callslip.errors import UsageError

__all__ = ["ScriptLimits"]

_MAY_BE_NONE_AT_ALL = ("artifacts", "artifact_bytes", "prompts")
OF_PACKAGES = ("package_bytes", "package_files")
"""The limits of an installation, which no script has."""
_SECONDS = ("wall_seconds", "idle_seconds")
_LEAST = {"files": 16, "memory_bytes": 32 << 20}
"""With less, an interpreter does not even start."""
_MOST = 2**63 - 1


@knows_names_of_class(
    {"timeout": "wall_seconds=…", "seconds": "wall_seconds=…", "memory": "memory_bytes=…"}
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """The limits of a script.

    Attributes:
        wall_seconds: Seconds from start to end, without the time of waiting for a person.
        cpu_seconds: CPU seconds of all its processes together.
        memory_bytes: Memory of all its processes together; at least 32 MiB.
        processes: Processes and threads at the same time.
        files: Open files of one process; at least 16.
        kept_bytes: Bytes of each output stream that the result keeps: its beginning and its end.
        output_bytes: Bytes of both output streams. A script that writes more is stopped.
        disk_bytes: Bytes of the files that it creates.
        disk_files: The number of files and folders that it creates.
        artifacts: The number of files of `out/` in the result; 0 for none.
        artifact_bytes: Bytes of all artifacts together.
        prompts: The number of questions of an interactive script.
        idle_seconds: Seconds for the answer to one question.
        package_bytes: Bytes of all packages that are installed for it, with their dependencies.
        package_files: The number of files of these packages.

    Raises:
        UsageError: A limit is not a number, or out of range.
    """

    wall_seconds: float = 60.0
    cpu_seconds: int = 30
    memory_bytes: int = 1 << 30
    processes: int = 64
    files: int = 256
    kept_bytes: int = 64 * 1024
    output_bytes: int = 64 << 20
    disk_bytes: int = 64 << 20
    disk_files: int = 4096
    artifacts: int = 64
    artifact_bytes: int = 32 << 20
    prompts: int = 100
    idle_seconds: float = 300.0
    package_bytes: int = 1 << 30
    package_files: int = 50_000

    def __post_init__(self) -> None:
        values: dict[str, Any] = asdict(self)
        for name, value in values.items():
            is_time = name in _SECONDS
            kind = "a number" if is_time else "a whole number"
            is_right = isinstance(value, (int, float) if is_time else int)
            if not is_right or isinstance(value, bool) or not value < math.inf:
                raise UsageError(f"expected ScriptLimits({name}=…) to be {kind}: got {value!r}")
            if value < 0 or (value == 0 and name not in _MAY_BE_NONE_AT_ALL):
                bound = "0 or more" if name in _MAY_BE_NONE_AT_ALL else "more than 0"
                raise UsageError(f"expected ScriptLimits({name}=…) to be {bound}: got {value}")
            if value < (least := _LEAST.get(name, 0)):
                raise UsageError(
                    f"expected ScriptLimits({name}=…) to be at least {least}: got {value} (with "
                    "less, no Python begins)"
                )
            if value > _MOST:
                raise UsageError(f"expected ScriptLimits({name}=…) to be at most {_MOST}")

    def to_dict(self) -> dict[str, float]:
        """Return the limits as a dict, as runners receive them."""
        return asdict(self)
