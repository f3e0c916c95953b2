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
        data: `deps`: `stage` and `message` of the installation of its packages. `started`:
            `profile` and `layers`. `stdout`, `stderr`: a piece of its `text`. `input_request`: `id`,
            `prompt` and `secret`. `artifact`: `path`, `size`, `sha256`, `mime` and `file`, the path
            of the copy. `limit_warning`: `limit` and `message`. `finished`: `status` and
            `exit_code`.
    """

    kind: ScriptEventKind
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A question of an interactive script.

    Attributes:
        prompt: As the script wrote it: show it as coming from the script, and from nobody else.
        secret: Whether the answer is not to be shown while it is typed.
        number: Of the script's questions, from 1.
        asker: `script`; `callslip` where it asks for itself, whether packages may be installed.
    """

    prompt: str
    secret: bool = False
    number: int = 1
    asker: str = "script"
