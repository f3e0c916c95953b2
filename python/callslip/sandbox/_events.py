"""Events and questions of scripts."""

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
    """An event of a running script.

    Attributes:
        kind: The kind of event. `deps` reports the installation of packages.
        data: The fields of the event. `deps`: `stage` and `message`. `started`: `profile` and
            `layers`. `stdout` and `stderr`: a piece of `text`. `input_request`: `id`, `prompt` and
            `secret`. `artifact`: the fields of an `Artifact`, and itself as `artifact`.
            `limit_warning`: `limit` and `message`. `finished`: `status` and `exit_code`.
    """

    kind: ScriptEventKind
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A question of an interactive script.

    Attributes:
        prompt: The text of the script, without control characters and at most 2,000 characters
            long. Show clearly that it comes from the script.
        secret: Whether the answer must not be shown while it is typed. Default: `False`.
        number: The number of the question in the script, from 1.
        asker: `"script"`; or `"callslip"` for its own question, whether packages may be installed.
    """

    prompt: str
    secret: bool = False
    number: int = 1
    asker: str = "script"
