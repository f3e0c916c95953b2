"""The events of one script, collected into its result."""

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
from callslip.sandbox._text import clean_prompt

if TYPE_CHECKING:
    from callslip.sandbox._folders import ArtifactFolder

__all__ = ["EventCollector", "OnEvent"]

OnEvent = Callable[[ScriptEvent], Any]

_EVENT_FIELDS = {
    "deps": ("stage", "message"),
    "started": ("profile", "layers"),
    "stdout": ("text",),
    "stderr": ("text",),
    "input_request": ("id", "prompt", "secret"),
    "artifact": ("path", "size", "sha256", "mime"),
    "limit_warning": ("limit", "message"),
}


class EventCollector:
    """Collects the events of one script: its artifacts and its end.

    Args:
        listeners: Functions that are called with each event.
        folder: The folder of the artifacts.

    Attributes:
        over: Whether the script has ended.
    """

    def __init__(self, listeners: list[OnEvent], folder: ArtifactFolder | None = None) -> None:
        self._listeners = listeners
        self._folder = folder
        self._artifacts: dict[str, Artifact] = {}
        self._end: dict[str, Any] = {}
        self.over = False

    def collect(self, event: dict[str, Any]) -> ScriptEvent | None:
        """Record an event. Returns the event for the listeners; `None` if there is none."""
        kind = event["type"]
        if kind in {"finished", "refused", "failed"}:
            self._end = event
            self.over = True
            if "result" not in event:
                return None
            data = {name: event["result"][name] for name in ("status", "exit_code")}
            return ScriptEvent("finished", data)
        data = {name: event[name] for name in _EVENT_FIELDS[kind]}
        if kind == "input_request":
            data["prompt"] = clean_prompt(event["prompt"])
        if kind == "artifact":
            artifact = self._artifacts[event["path"]] = self._make_artifact(event)
            data["file"] = artifact.file
            data["artifact"] = artifact
        return ScriptEvent(kind, data)

    def notify(self, event: ScriptEvent) -> Awaitable[Any] | None:
        """Call the listeners. Returns an awaitable, if one of them is async."""
        awaited = [
            said for listener in self._listeners if hasattr(said := listener(event), "__await__")
        ]
        return None if not awaited else _await_all(awaited)

    def path(self) -> str:
        """Return the folder of the installed packages.

        Raises:
            CallslipError: As in `result`.
        """
        self._raise_failure()
        path: str = self._end["path"]
        return path

    def packages(self) -> tuple[list[str], str | None]:
        """Return the resolved packages, and their folder if they are installed already.

        Raises:
            CallslipError: As in `result`.
        """
        self._raise_failure()
        return self._end["packages"], self._end["path"]

    @property
    def status(self) -> str:
        """The status of the script, as far as it is known."""
        status: str = self._end.get("result", {}).get("status", "")
        return status

    @property
    def stderr(self) -> str:
        """The standard error of the script, as far as it is known."""
        text: str = self._end.get("result", {}).get("stderr", "")
        return text

    def result(self, hints: list[str]) -> ScriptResult:
        """Return the result.

        Args:
            hints: Further hints for the model.

        Raises:
            ScriptRefused: The script was not run.
            SandboxError: The script could not be run.
        """
        self._raise_failure()
        result = dict(self._end["result"])
        isolation = result.pop("isolation", {})
        artifacts = tuple(self._find_artifact(row) for row in result.pop("artifacts", ()))
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

    def _raise_failure(self) -> None:
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

    def _find_artifact(self, row: dict[str, Any]) -> Artifact:
        return self._artifacts.get(row["path"]) or self._make_artifact(row)

    def _make_artifact(self, event: dict[str, Any]) -> Artifact:
        about = {name: event[name] for name in ("path", "size", "sha256", "mime")}
        if "data" in event:
            assert self._folder is not None
            file = self._folder.put(event["path"], _decode_content(event))
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


async def _await_all(awaited: list[Awaitable[Any]]) -> None:
    for one in awaited:
        await one


def _decode_content(event: dict[str, Any]) -> bytes:
    """Return the content of an artifact from its event."""
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
