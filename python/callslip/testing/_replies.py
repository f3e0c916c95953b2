"""The file of a recording: what a model was asked, and what it replied."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callslip.errors import UsageError
from callslip.models._reply import Messages

__all__ = ["Asked", "RecordedReply", "Replies", "file_of"]

_VERSION = 1
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Asked:
    """The messages of one call, redacted.

    Attributes:
        messages: Pairs of the role and the text of each message.
    """

    messages: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, messages: Messages, clean: Callable[[str], str]) -> Asked:
        """Return what is compared of messages. An image or a file counts by its content."""
        return cls(tuple((str(one["role"]), clean(_text_of(one))) for one in messages))

    def conversation(self) -> Asked:
        """Return these messages without the system messages."""
        return Asked(tuple(one for one in self.messages if one[0] != "system"))

    def lines(self) -> list[str]:
        """Return the messages as lines of a text, for a diff."""
        found: list[str] = []
        for role, text in self.messages:
            found += [f"[{role}]", *text.split("\n")]
        return found


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """What a model replied to one call.

    Attributes:
        text: The text, as far as it was read.
        finish_reason: As of a `ModelReply`.
        usage: As of a `ModelReply`, as a mapping.
        cut: Whether the reader of a stream stopped before its end.
        error: The exception that followed the text: its type, message, status and Retry-After.
        streamed: Whether it was a stream that was read to its end.
        has_items: Whether `text` is the lines of a native reply.
        certainty: As of a `ModelReply`.
    """

    text: str = ""
    finish_reason: str | None = None
    usage: dict[str, float] | None = None
    cut: bool = False
    error: dict[str, Any] | None = None
    streamed: bool = False
    has_items: bool = False
    certainty: float | None = None

    def _to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"text": self.text.split("\n"), "finish_reason": self.finish_reason}
        row["usage"] = self.usage
        if self.cut:
            row["cut"] = True
        if self.error is not None:
            row["error"] = self.error
        if self.streamed:
            row["streamed"] = True
        if self.has_items:
            row["items"] = True
        if self.certainty is not None:
            row["certainty"] = self.certainty
        return row

    @classmethod
    def _from_json(cls, row: dict[str, Any]) -> RecordedReply:
        return cls(
            "\n".join(row["text"]),
            row["finish_reason"],
            row["usage"],
            row.get("cut", False),
            row.get("error"),
            row.get("streamed", False),
            row.get("items", False),
            row.get("certainty"),
        )


@dataclass
class Replies:
    """The calls of one recording, in the order in which they ended.

    Attributes:
        calls: What was asked, with the reply.
        asks_for: What the model asks agents for, as its attributes have it: `needs_examples`,
            `value_level` and `least_certainty`.
    """

    calls: list[tuple[Asked, RecordedReply]] = field(default_factory=list)
    asks_for: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Replies:
        """Read a file; an absent one has no calls.

        Raises:
            UsageError: It is not a recording of this version.
        """
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return cls()
        try:
            data = json.loads(text)
            version = data["callslip-replies"]
            calls = _read_calls(data) if version == _VERSION else None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            version, calls = f"{type(error).__name__}: {error}", None
        if calls is None:
            raise UsageError(
                f"expected recorded replies of version {_VERSION} in {path.name}: got {version}: "
                "pass --callslip=rewrite to record them anew"
            )
        known = data.get("asks_for")
        return cls(calls, _asked_before(calls) if known is None else known)

    def write(self, path: Path) -> None:
        """Write the file in one step: an interrupted write leaves the old file."""
        texts: dict[str, list[str]] = {}
        rows = []
        for asked, reply in self.calls:
            keys = []
            for role, text in asked.messages:
                key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                texts[key] = text.split("\n")
                keys.append([role, key])
            rows.append({"asked": keys, **reply._to_json()})
        data = {"callslip-replies": _VERSION, "asks_for": self.asks_for, "messages": texts}
        data["calls"] = rows
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".json")
        try:
            # Escaped: a lone surrogate has no UTF-8.
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(data, indent=1) + "\n")
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _read_calls(data: dict[str, Any]) -> list[tuple[Asked, RecordedReply]]:
    texts = {key: "\n".join(lines) for key, lines in data["messages"].items()}
    calls = []
    for row in data["calls"]:
        asked = Asked(tuple((role, texts[key]) for role, key in row["asked"]))
        calls.append((asked, RecordedReply._from_json(row)))
    return calls


def _asked_before(calls: list[tuple[Asked, RecordedReply]]) -> dict[str, Any]:
    """Return what models asked for that were recorded without a word of it.

    All of them were shown an example, unless the program said otherwise.
    """
    texts = {text for asked, _ in calls for role, text in asked.messages if role == "user"}
    return {"needs_examples": any(text.startswith("Example: ") for text in texts)}


def file_of(path: Path) -> Path:
    """Return the file of a test: a name that no file system refuses, and no other test has."""
    name = re.sub(r"[^\w.=\[\]-]", "_", path.name, flags=re.ASCII)
    if name != path.name or len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(path.name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        name = f"{name[: _LONGEST_NAME - 13]}-{digest}"
    return path.with_name(f"{name}.json")


def _text_of(message: dict[str, Any]) -> str:
    parts = [f"[sha256 {part.sha256}]" for part in message.get("parts") or ()]
    return "\n".join([str(message["content"]), *parts])
