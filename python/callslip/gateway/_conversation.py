"""The conversation of a request, in one form for all faces and clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callslip.gateway._calls_in_text import CallInText, result_in
from callslip.gateway._fields import listed, mapping, refusal, text
from callslip.gateway._refused import Refused
from callslip.models import Message
from callslip.parts import File

__all__ = ["Conversation", "Said"]


@dataclass(frozen=True, slots=True)
class Said:
    """The content of a message: its text, and its images and files."""

    text: str
    parts: Sequence[File] = ()

    @classmethod
    def read(
        cls,
        content: object,
        place: str,
        piece: Callable[[Mapping[str, Any], str], str | File],
    ) -> Said:
        """Return the content of a message: nothing, a text, or a list of pieces.

        Args:
            content: The content, as it came.
            place: Its place in the request, for errors.
            piece: Reads a piece at a place: a text, an image or a file.

        Raises:
            Refused: It is none of these, or a piece can't be used.
        """
        if content is None:
            return cls("")
        if isinstance(content, str):
            return cls(text(content, place))
        places = ((one, f"{place}[{at}]") for at, one in enumerate(listed(content, place)))
        return cls._of([piece(mapping(one, here), here) for one, here in places])

    @classmethod
    def _of(cls, pieces: Sequence[str | File]) -> Said:
        parts = [piece for piece in pieces if isinstance(piece, File)]
        # Each image and file has a line at its place in the text.
        texts = [piece if isinstance(piece, str) else piece._part.line for piece in pieces]
        return cls("\n".join(texts), parts)


class Conversation:
    """Collects the messages of a request.

    The same conversation gives the same messages for every client, and the next request begins with
    them. Instructions come first. Results follow in the order of their calls. A later system
    message becomes a message of the user.
    """

    def __init__(self) -> None:
        self._system: list[str] = []
        self._messages: list[Message] = []
        # The calls of the last reply; their results may follow.
        self._open: dict[str, str] = {}
        self._results: dict[str, Message] = {}
        # The call of the last reply if it came as text: its result comes as text, too.
        self._in_text: str | None = None

    def system(self, text: str) -> None:
        """Add instructions; after the first message, they become one of the user."""
        if not text.strip():
            return
        if self._messages:
            self.user(Said(text))
        else:
            self._system.append(text)

    def user(self, said: Said) -> None:
        """Add a message of the user."""
        own, self._in_text = self._in_text, None
        if own is not None and (found := result_in(said.text, own)) is not None:
            content, failed = found
            self.result(own, Said(content, said.parts), "messages", failed=failed)
            return
        message: Message = {"role": "user", "content": said.text}
        if said.parts:
            message["parts"] = list(said.parts)
        if self._results:
            self._close_results(message)
            return
        self._open = {}
        self._messages.append(message)

    def assistant(self, text: str) -> None:
        """Add text of the model. Blank text is left out."""
        call = CallInText.read(text)
        if call is not None:
            if call.before:
                self._add_items([{"text": call.before}])
            self.call(call.id, call.tool, call.arguments, "messages")
            self._in_text = call.id
        elif text.strip():
            self._add_items([{"text": text}])

    def call(self, own: str, tool: str, arguments: str, place: str) -> None:
        """Add a call of the model.

        Raises:
            Refused: Another call of the same reply has its id.
        """
        self._add_items([{"call": own, "tool": tool, "arguments": arguments}])
        if own in self._open:
            raise Refused(
                400,
                f"expected an id for each call: got {own!r} twice at {place}; use another id",
                param=place,
            )
        self._open[own] = tool

    def result(self, own: str, said: Said, place: str, *, failed: bool = False) -> None:
        """Add the result of a call.

        Raises:
            Refused: No call before it has this id, or it has a result.
        """
        if own not in self._open or own in self._results:
            why = "the id of a call in the reply before it, once"
            hint = "pass each result once, after its call"
            raise refusal(place, why, own, hint)
        row: Message = {"result": own, "tool": self._open[own], "content": said.text}
        row["error"] = failed
        row["parts"] = list(said.parts)
        self._results[own] = row

    def messages(self) -> list[Message]:
        """Return the conversation, as a native run has it.

        Raises:
            Refused: There is no message to answer.
        """
        if self._results:
            self._close_results(None)
        found = self._messages
        if not found and self._system:
            # Some clients send a task as instructions alone.
            *self._system, task = self._system
            found = [{"role": "user", "content": task}]
        if not found or found[-1]["role"] != "user":
            what = "one of the assistant" if found else "no message"
            raise Refused(
                400,
                f"expected a message of the user or a result at the end: got {what}; pass the "
                "conversation up to the message to answer, without the beginning of a reply",
                param="messages",
            )
        system = "\n\n".join(self._system)
        return [{"role": "system", "content": system}, *found] if system else found

    @property
    def has_calls(self) -> bool:
        """Whether it has calls of tools."""
        return any("call" in item for one in self._messages for item in one.get("items", ()))

    def called(self) -> list[str]:
        """Return the names of the tools that were called, each once."""
        items = (item for one in self._messages for item in one.get("items", ()))
        return list(dict.fromkeys(item["tool"] for item in items if "call" in item))

    def _add_items(self, items: list[dict[str, Any]]) -> None:
        if self._results:
            self._close_results(None)
        last = self._messages[-1] if self._messages else None
        if last is not None and last["role"] == "assistant":
            last["items"] += items
        else:
            self._open = {}
            last = {"role": "assistant", "content": "", "items": items}
            self._messages.append(last)
        last["content"] = "\n\n".join(one["text"] for one in last["items"] if "text" in one)

    def _close_results(self, said: Message | None) -> None:
        """Add the message with the results, in the order of the calls, and the user's text."""
        missing = {"content": _NO_RESULT, "error": True, "parts": []}
        rows = [
            {"result": own, "tool": tool, **missing, **self._results.get(own, {})}
            for own, tool in self._open.items()
        ]
        parts = [part for row in rows for part in row.pop("parts")]
        text = "" if said is None else said["content"]
        items = [*rows, {"text": text}] if text.strip() else rows
        message: Message = {"role": "user", "content": text, "items": items}
        parts += [] if said is None else said.get("parts", [])
        if parts:
            message["parts"] = parts
        self._messages.append(message)
        self._open, self._results = {}, {}


_NO_RESULT = "(no result)"
