"""Validation of the events of an external runner, and of their order."""

from __future__ import annotations

import json
from typing import Any, get_args

from callslip.errors import RunnerProtocolError
from callslip.sandbox._result import ScriptStatus, safe_path

__all__ = ["TERMINAL", "EventChecks"]

TERMINAL = frozenset({"finished", "refused", "failed"})

_STATUSES = get_args(ScriptStatus)
_NUMBER, _TEXT, _WHOLE = (int, float), (str,), (int,)
_OPTIONAL_WHOLE, _OPTIONAL_TEXT = (int, type(None)), (str, type(None))
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "started": {"profile": _TEXT, "layers": (list,)},
    "deps": {"stage": _TEXT, "message": _TEXT},
    "stdout": {"text": _TEXT},
    "stderr": {"text": _TEXT},
    "input_request": {"id": _WHOLE, "prompt": _TEXT, "secret": (bool,)},
    "artifact": {
        "path": _TEXT,
        "size": _WHOLE,
        "sha256": _TEXT,
        "mime": _TEXT,
        "data": _TEXT,
    },
    "limit_warning": {"limit": _TEXT, "message": _TEXT},
    "finished": {"result": (dict,)},
    "refused": {"code": _TEXT, "message": _TEXT},
    "failed": {"error": _TEXT, "message": _TEXT},
}
_RESULT: dict[str, tuple[type, ...]] = {
    "status": _TEXT,
    "exit_code": _OPTIONAL_WHOLE,
    "stdout": _TEXT,
    "stderr": _TEXT,
}
# What a simple runner need not know.
_MORE_OF_RESULT: dict[str, tuple[type, ...]] = {
    "signal": _OPTIONAL_WHOLE,
    "stdout_truncated": (bool,),
    "stderr_truncated": (bool,),
    "stdout_bytes": _WHOLE,
    "stderr_bytes": _WHOLE,
    "duration_ms": _NUMBER,
    "cpu_ms": _NUMBER,
    "max_rss": _WHOLE,
    "artifacts": (list,),
    "isolation": (dict,),
    "hints": (list,),
}
_SHOWN = 200


class EventChecks:
    """The events of one script, in their order.

    Args:
        interactive: Whether the script may ask.
        artifacts: How many files it may hand over.
        artifact_bytes: How many bytes all of them may have.
    """

    def __init__(self, *, interactive: bool, artifacts: int, artifact_bytes: int) -> None:
        self._interactive = interactive
        self._artifacts = artifacts
        self._artifact_bytes = artifact_bytes
        self._paths: set[str] = set()
        self._question_ids: set[int] = set()
        self._started = False

    def read(self, line: bytes) -> dict[str, Any]:
        """Read one line.

        Raises:
            RunnerProtocolError: It is no event, or not one that may come now.
        """
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise RunnerProtocolError(
                f"expected a line of JSON from the runner: got {_shown(line)} (what a program "
                "prints for people belongs on its standard error)"
            ) from None
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise RunnerProtocolError(
                f'expected an event {{"type": …}} from the runner: got {_shown(line)}'
            )
        kind: str = event["type"]
        fields = _FIELDS.get(kind)
        if fields is None:
            known = ", ".join(_FIELDS)
            raise RunnerProtocolError(
                f"expected an event of the runner to be one of {known}: got '{kind[:_SHOWN]}'"
            )
        _check(f"the event '{kind}'", event, fields)
        self._check_order(kind, event)
        if kind == "artifact":
            self._check_artifact(event)
        elif kind == "finished":
            self._check_result(event["result"])
        return event

    def _check_order(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "started":
            if self._started:
                raise RunnerProtocolError("the runner said 'started' twice")
            self._started = True
        elif kind == "finished":
            if not self._started and event["result"].get("status") != "cancelled":
                raise RunnerProtocolError("the runner said 'finished' before 'started'")
        elif kind not in {"deps", "refused", "failed", "limit_warning"} and not self._started:
            raise RunnerProtocolError(f"the runner said '{kind}' before 'started'")
        if kind == "input_request":
            if not self._interactive:
                raise RunnerProtocolError("the runner asked for input of a script that may not ask")
            if event["id"] in self._question_ids:
                raise RunnerProtocolError(f"the runner asked twice under the id {event['id']}")
            self._question_ids.add(event["id"])

    def _check_artifact(self, event: dict[str, Any]) -> None:
        path = event["path"]
        if not safe_path(path) or path in self._paths:
            raise RunnerProtocolError(
                f"expected the path of an artifact below out/, each once: got {path[:_SHOWN]!r}"
            )
        self._paths.add(path)
        self._artifact_bytes -= event["size"]
        if len(self._paths) > self._artifacts or event["size"] < 0 or self._artifact_bytes < 0:
            raise RunnerProtocolError("the runner handed over more artifacts than it was allowed")

    def _check_result(self, result: dict[str, Any]) -> None:
        _check("the result", result, _RESULT)
        known = {name: kinds for name, kinds in _MORE_OF_RESULT.items() if name in result}
        _check("the result", result, known)
        if result["status"] not in _STATUSES:
            raise RunnerProtocolError(
                f"expected the status of a result to be one of {', '.join(_STATUSES)}: got "
                f"{result['status'][:_SHOWN]!r}"
            )
        for artifact in result.get("artifacts", ()):
            path = artifact.get("path") if isinstance(artifact, dict) else None
            if path not in self._paths:
                raise RunnerProtocolError(
                    f"the result names the artifact {str(path)[:_SHOWN]!r}, of which there was no "
                    "event"
                )
        isolation = result.get("isolation", {})
        _check("the isolation of the result", {"profile": "", **isolation}, {"profile": _TEXT})
        for name, texts in (("hints", result.get("hints", [])), ("layers", _layers(isolation))):
            if not all(isinstance(text, str) for text in texts):
                raise RunnerProtocolError(f"expected {name} of the result to be a list of strings")


def _layers(isolation: dict[str, Any]) -> list[Any]:
    layers = isolation.get("layers", [])
    return layers if isinstance(layers, list) else [layers]


def _check(what: str, given: dict[str, Any], fields: dict[str, tuple[type, ...]]) -> None:
    for name, kinds in fields.items():
        if name not in given:
            raise RunnerProtocolError(f"expected {what} of the runner to have '{name}'")
        value = given[name]
        # In Python, `true` is a number too.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(_WORDS[kind] for kind in kinds)
            raise RunnerProtocolError(
                f"expected '{name}' in {what} of the runner to be {wanted}: got "
                f"{_WORDS.get(type(value), type(value).__name__)}"
            )


_WORDS: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace")
    return f"{text!r}…" if len(line) > _SHOWN else repr(text)
