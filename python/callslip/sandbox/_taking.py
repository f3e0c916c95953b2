"""What is made of the events of a script."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callslip.errors import (
    InterpreterMissing,
    IsolationUnavailable,
    RunnerLost,
    RunnerProtocolError,
    ScriptRefused,
)
from callslip.sandbox._events import ScriptEvent
from callslip.sandbox._result import Artifact, Isolation, ScriptResult
from callslip.sandbox._text import shown_prompt

if TYPE_CHECKING:
    from callslip.sandbox._folders import ArtifactFolder

__all__ = ["OnEvent", "Taking"]

OnEvent = Callable[[ScriptEvent], Any]

_TOLD = {
    "deps": ("stage", "message"),
    "started": ("profile", "layers"),
    "stdout": ("text",),
    "stderr": ("text",),
    "input_request": ("id", "prompt", "secret"),
    "artifact": ("path", "size", "sha256", "mime"),
    "limit_warning": ("limit", "message"),
}


class Taking:
    """Takes the events of one script: keeps its files, and its end.

    Args:
        listeners: Told of each event.
        folder: Where artifacts lie, or are put.

    Attributes:
        over: Whether the end has come.
    """

    def __init__(self, listeners: list[OnEvent], folder: ArtifactFolder | None = None) -> None:
        self._listeners = listeners
        self._folder = folder
        self._artifacts: dict[str, Artifact] = {}
        self._end: dict[str, Any] = {}
        self.over = False

    def take(self, event: dict[str, Any]) -> ScriptEvent | None:
        """Take an event. Returns what is to be told of it."""
        kind = event["type"]
        if kind in {"finished", "refused", "failed"}:
            self._end = event
            self.over = True
            if "result" not in event:
                return None
            told = {name: event["result"][name] for name in ("status", "exit_code")}
            return ScriptEvent("finished", told)
        told = {name: event[name] for name in _TOLD[kind]}
        if kind == "input_request":
            told["prompt"] = shown_prompt(event["prompt"])
        if kind == "artifact":
            artifact = self._artifacts[event["path"]] = self._artifact(event)
            told["file"] = artifact.file
            told["artifact"] = artifact
        return ScriptEvent(kind, told)

    def tell(self, event: ScriptEvent) -> Awaitable[Any] | None:
        """Tell the listeners. Returns what is to be awaited for it."""
        awaited = [
            said for listener in self._listeners if hasattr(said := listener(event), "__await__")
        ]
        return None if not awaited else _all(awaited)

    def path(self) -> str:
        """Return where installed packages are.

        Raises:
            CallslipError: As `result`.
        """
        self._raise()
        path: str = self._end["path"]
        return path

    def packages(self) -> tuple[list[str], str | None]:
        """Return what would be installed, and where it is, where it is installed already.

        Raises:
            CallslipError: As `result`.
        """
        self._raise()
        return self._end["packages"], self._end["path"]

    @property
    def status(self) -> str:
        """How the script ended, as far as it is known."""
        status: str = self._end.get("result", {}).get("status", "")
        return status

    @property
    def stderr(self) -> str:
        """What the script wrote to its standard error, as far as it is known."""
        text: str = self._end.get("result", {}).get("stderr", "")
        return text

    def result(self, hints: list[str]) -> ScriptResult:
        """Return the result.

        Args:
            hints: Further ones.

        Raises:
            ScriptRefused: It was not run.
            SandboxError: It could not be run.
        """
        self._raise()
        result = dict(self._end["result"])
        isolation = result.pop("isolation", {})
        artifacts = tuple(self._known(row) for row in result.pop("artifacts", ()))
        kept = {name: result[name] for name in _RESULT if name in result}
        kept.setdefault("stdout_bytes", len(result["stdout"].encode("utf-8", "replace")))
        kept.setdefault("stderr_bytes", len(result["stderr"].encode("utf-8", "replace")))
        return ScriptResult(
            **kept,
            artifacts=artifacts,
            isolation=Isolation(
                isolation.get("profile", "unknown"), tuple(isolation.get("layers", ()))
            ),
            hints=tuple(dict.fromkeys([*result.get("hints", ()), *hints])),
        )

    def _raise(self) -> None:
        end = self._end
        message = end.get("message", "")
        if end["type"] == "refused":
            raise ScriptRefused(message, end["code"])
        if end["type"] != "failed":
            return
        if end["error"] == "isolation_unavailable":
            raise IsolationUnavailable(
                message, end.get("stage"), end.get("errno"), end.get("remedy")
            )
        kinds = {"interpreter_missing": InterpreterMissing, "runner_protocol": RunnerProtocolError}
        raise kinds.get(end["error"], RunnerLost)(message)

    def _known(self, row: dict[str, Any]) -> Artifact:
        return self._artifacts.get(row["path"]) or self._artifact(row)

    def _artifact(self, event: dict[str, Any]) -> Artifact:
        about = {name: event[name] for name in ("path", "size", "sha256", "mime")}
        if "data" in event:
            assert self._folder is not None
            file = self._folder.put(event["path"], _content(event))
        else:
            file = Path(event["file"])
        return Artifact(**about, file=file, _folder=self._folder)


_RESULT = [
    "status",
    "exit_code",
    "signal",
    "stdout",
    "stderr",
    "stdout_truncated",
    "stderr_truncated",
    "stdout_bytes",
    "stderr_bytes",
    "duration_ms",
    "cpu_ms",
    "max_rss",
]


async def _all(awaited: list[Awaitable[Any]]) -> None:
    for one in awaited:
        await one


def _content(event: dict[str, Any]) -> bytes:
    """Return the content of an artifact that came with its event."""
    path = event["path"]
    try:
        content = base64.b64decode(event["data"], validate=True)
    except (binascii.Error, ValueError):
        raise RunnerProtocolError(f"expected the data of '{path}' in base64") from None
    if len(content) != event["size"] or hashlib.sha256(content).hexdigest() != event["sha256"]:
        raise RunnerProtocolError(
            f"expected {event['size']} bytes of '{path}' with the SHA-256 {event['sha256'][:64]}: "
            f"got {len(content)} others"
        )
    return content
