"""The recording of one test: which reply belongs to a call, and what is missing or left over."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path

from callslip._base.options import check_one_of, check_path, check_text, checked_texts
from callslip._base.redaction import redact_credentials
from callslip.errors import UsageError
from callslip.models._call import ModelCall
from callslip.models._reply import Messages
from callslip.testing._recorded_model import RecordedModel
from callslip.testing._replies import Asked, RecordedReply, Replies, file_of

__all__ = ["NotRecorded", "Recording"]

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
# Shorter values, such as "1" or "true", stand in any text.
_SHORTEST_SECRET = 6
_LONGEST_DIFF = 80


class NotRecorded(AssertionError):
    """A call has no recorded reply, or a recorded reply was not used.

    The message shows a diff against the closest recording, and the command to re-record.
    """


class Recording:
    """The recorded replies of one test.

    Args:
        path: The folder and the name of the test.
        node: The id of the test, for the command in an error.
        mode: `"replay"`, `"record"` or `"rewrite"`.
        match: `"all"` messages are compared, or the `"conversation"` without the system message.
        scrub: Lines of `pattern => text`, replaced in messages before they are compared.
        redact: Patterns of secrets.

    Raises:
        UsageError: An argument has a wrong value, or a pattern is not valid.
    """

    def __init__(
        self,
        path: Path,
        *,
        node: str,
        mode: str,
        match: str = "all",
        scrub: Sequence[str] = (),
        redact: Sequence[str] = (),
    ) -> None:
        check_path("path", path)
        check_text("node", node)
        check_one_of("mode", mode, ("replay", "record", "rewrite"))
        check_one_of("match", match, ("all", "conversation"))
        self._path = file_of(Path(path))
        self._node = node
        self._mode = mode
        self._is_whole = match == "all"
        self._secrets: list[tuple[re.Pattern[str], str]] = [
            *((re.compile(re.escape(value)), f"[{name}]") for name, value in _secrets()),
            *(
                (_pattern(one, "callslip_redact"), "[redacted]")
                for one in checked_texts("redact", redact)
            ),
        ]
        self._scrub = [_scrub(line) for line in checked_texts("scrub", scrub)]
        self._replies = Replies() if mode == "rewrite" else Replies.read(self._path)
        self._unused = list(range(len(self._replies.calls)))
        self._has_new = False
        self._failures: list[str] = []
        self._lock = threading.Lock()
        self.has_other_prompt: bool = False

    def model(self, model: object = None) -> RecordedModel:
        """Return a model that replies as recorded.

        Args:
            model: The model that is recorded. A replay never calls it, nor needs it.

        Raises:
            UsageError: No model was passed, and replies are to be recorded.
        """
        if model is None and self._mode != "replay":
            raise UsageError(f"expected a model with --callslip={self._mode}: got none: pass one")
        if model is not None:
            call = ModelCall(model)
            asks_for: dict[str, object] = {
                "needs_examples": call.needs_examples,
                "value_level": call.value_level,
            }
            if call.least_certainty is not None:
                asks_for["least_certainty"] = list(call.least_certainty)
            self._replies.asks_for = asks_for
        return RecordedModel(self, model, self._replies.asks_for)

    def find(self, messages: Messages) -> tuple[Asked, RecordedReply | None]:
        """Return what was asked, and its recorded reply; `None` for a reply that is to be recorded.

        Raises:
            NotRecorded: There is no such reply, and none is recorded now.
        """
        asked = Asked.of(messages, self._clean_message)
        wanted = self._compared(asked)
        with self._lock:
            for at in self._unused:
                before, reply = self._replies.calls[at]
                if self._compared(before) == wanted:
                    self._unused.remove(at)
                    self.has_other_prompt |= before != asked
                    return asked, reply
            if self._mode != "replay":
                return asked, None
        raise self.failed(self._missing(asked))

    def add(self, asked: Asked, reply: RecordedReply) -> None:
        """Keep the reply of a model."""
        with self._lock:
            self._replies.calls.append((asked, reply))
            self._has_new = True

    def failed(self, message: str) -> NotRecorded:
        """Return the exception of a call. It is raised again at the end of a test that hides it."""
        with self._lock:
            self._failures.append(message)
        return NotRecorded(message)

    def ends_here(self) -> NotRecorded:
        """Return the exception of a stream that is read further than it was when recorded."""
        return self.failed(
            f"expected the reply to be read no further: the recording ends here: {self._hint()}"
        )

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        for pattern, replacement in self._secrets:
            text = pattern.sub(replacement, text)
        return redact_credentials(text)

    def close(self) -> None:
        """End the recording of a test that has passed, and write what is new.

        Raises:
            NotRecorded: A call had no reply, or a recorded reply was not asked for.
        """
        if self._failures:
            raise NotRecorded(self._failures[0])
        if self._unused:
            left = "\n".join(f"- {self._replies.calls[at][1].text}" for at in self._unused)
            message = f"expected a call for each recorded reply: got replies left over:\n{left}"
            if self._mode == "replay":
                raise NotRecorded(f"{message}\n{self._hint()}")
            warnings.warn(message, stacklevel=2)
        if self._has_new:
            self._replies.write(self._path)

    def _compared(self, asked: Asked) -> Asked:
        return asked if self._is_whole else asked.conversation()

    def _clean_message(self, text: str) -> str:
        text = self.clean(text)
        for pattern, replacement in self._scrub:
            text = pattern.sub(replacement, text)
        return text

    def _missing(self, asked: Asked) -> str:
        lines = asked.lines()
        recorded = [before.lines() for before, _ in self._replies.calls]
        if not recorded:
            return f"expected recorded replies: got no {self._path.name}: {self._hint()}"
        nearest = max(recorded, key=lambda one: _likeness(one, lines))
        diff = list(difflib.unified_diff(nearest, lines, "recorded", "asked now", n=2, lineterm=""))
        if not diff:
            shown = "the same messages were asked more often than recorded"
        else:
            shown = "\n".join(diff[:_LONGEST_DIFF])
            if len(diff) > _LONGEST_DIFF:
                shown += f"\n({len(diff) - _LONGEST_DIFF} more lines)"
        return f"expected messages that were recorded: got others:\n{shown}\n{self._hint()}"

    def _hint(self) -> str:
        return f"call pytest {shlex.quote(self._node)} --callslip=rewrite to record anew"


def _likeness(one: list[str], other: list[str]) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _secrets() -> list[tuple[str, str]]:
    found = [
        (name, value)
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET
    ]
    # A secret may be a part of another one.
    return sorted(found, key=lambda pair: len(pair[1]), reverse=True)


def _scrub(line: str) -> tuple[re.Pattern[str], str]:
    pattern, arrow, text = line.partition("=>")
    if not arrow:
        raise UsageError(f"expected `pattern => text` in callslip_scrub: got {line!r}")
    found, text = _pattern(pattern.strip(), "callslip_scrub"), text.strip()
    try:
        found.sub(text, "")
    except (re.error, IndexError) as error:
        raise UsageError(
            f"expected a text for {pattern.strip()!r} in callslip_scrub: got {text!r}: {error}"
        ) from None
    return found, text


def _pattern(text: str, option: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(
            f"expected a regular expression in {option}: got {text!r}: {error}"
        ) from None
