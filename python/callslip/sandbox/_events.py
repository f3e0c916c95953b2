"""What happens while a script runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["InputRequest", "ScriptEvent", "ScriptEventKind"]

ScriptEventKind: TypeAlias = Literal[
    "deps",
    "started",
    "stdout",
    "stderr",
    "input_request",
    "artifact",
    "limit_warning",
    "finished",
]


@dataclass(frozen=True, slots=True)
class ScriptEvent:
    """One thing that happens while a script runs.

    Attributes:
        kind: What happens.
        data: Of `deps`, the installation of its packages, `stage` and `message`; of `started`
            `profile` and `layers`; of `stdout` and `stderr` a piece of `text`; of `input_request`
            `id`, `prompt` and `secret`; of `artifact` what an `Artifact` has, and itself as
            `artifact`; of `limit_warning` `limit` and `message`; of `finished` `status` and
            `exit_code`.
    """

    kind: ScriptEventKind
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A question of an interactive script.

    Attributes:
        prompt: As the script wrote it, without control characters and at most 2,000 characters:
            show it as coming from the script, and from nobody else.
        secret: Whether the answer is not to be shown while it is typed.
        number: Of the script's questions, from 1.
        asker: `script`; `callslip` where it asks for itself, whether packages may be installed.
    """

    prompt: str
    secret: bool = False
    number: int = 1
    asker: str = "script"
