"""A conversation with tool calls, told again in the words of a text protocol."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from callslip._protocols.chatty import ChattyProtocol
from callslip._protocols.protocol import Protocol, reply_json
from callslip._protocols.react import ReactProtocol
from callslip._protocols.tags import tag_pair
from callslip.agent._sent_tools import SentTools
from callslip.models.native._turns import Call, Result, Text, Turn
from callslip.parts import Said, said_with

__all__ = ["Retold", "Words", "retell", "words_of"]

_REFUSED = "Your reply was not executed:"
"""How the feedback on a reply begins."""
_NO_TEXT = "(no text)"
_NO_RESULT = "(no result)"
_LINE_END = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_INDENT = "  "


class Retold(NamedTuple):
    """One message for a run.

    Attributes:
        role: `"user"` or `"assistant"`.
        said: Its text, with its images and files.
    """

    role: str
    said: Said


@dataclass(frozen=True, slots=True)
class Words(ABC):
    """The words of a protocol.

    Attributes:
        protocol: The protocol.
        tools: The tools of the request.
        reminder: What the protocol puts behind each message of the user; may be empty.
    """

    protocol: Protocol
    tools: SentTools
    reminder: str = ""

    @abstractmethod
    def exchanges(
        self, text: str, calls: Sequence[Call], results: Mapping[str, Result], number: int
    ) -> list[tuple[str, str]]:
        """Return a reply with calls, and their results.

        Args:
            text: The text beside the calls.
            calls: The calls.
            results: The results by the id of the call.
            number: The number of calls before them.

        Returns:
            Roles and texts. The last one is of the user, and may be empty.
        """

    @abstractmethod
    def answer(self, value: Any) -> str:
        """Return a reply with an answer."""

    def feedback(self, text: str) -> str:
        """Return the words about a reply that was refused."""
        return text

    def _content(self, result: Result | None) -> str:
        if result is None:
            return _NO_RESULT
        says_so = not result.error or "error" in result.content.lower()
        if says_so or result.content.startswith(("not executed", _REFUSED)):
            return result.content
        return f"Error: {result.content}"


class ReactWords(Words):
    """Those of react: one call a reply, so that calls side by side are told one by one."""

    __slots__ = ()

    def exchanges(
        self,
        text: str,
        calls: Sequence[Call],
        results: Mapping[str, Result],
        number: int,  # noqa: ARG002  # calls have no ids
    ) -> list[tuple[str, str]]:
        """As `Words.exchanges`."""
        told: list[tuple[str, str]] = []
        for call in calls:
            result = results.get(call.id)
            if self.tools.is_answer(call.tool):
                told.append(("assistant", self._answer(self.tools.answer_in(call.object), text)))
                # The user has read it. Only its refusal is told.
                refused = result is not None and result.error
                told.append(("user", self._observation(result) if refused else ""))
            else:
                told.append(("assistant", self._call(call, text)))
                told.append(("user", self._observation(result)))
            text = ""
        return told

    def answer(self, value: Any) -> str:
        """As `Words.answer`."""
        return self._answer(value, "")

    def feedback(self, text: str) -> str:
        """As `Words.feedback`."""
        return f"Observation: {text}"

    def _call(self, call: Call, thought: str) -> str:
        name, arguments = self.tools.written(call)
        args: Any = reply_json(arguments) if self.protocol.strict else arguments
        return reply_json({"thought": thought, "action": name, "args": args})

    def _answer(self, value: Any, thought: str) -> str:
        end = {"action": "FINISH", "final_answer": value, "task_successful": True}
        return reply_json({"thought": thought, **end})

    def _observation(self, result: Result | None) -> str:
        # No line of a result looks like one of the message.
        content = _LINE_END.sub(lambda end: end[0] + _INDENT, self._content(result))
        return f"Observation: {content}"


class ChattyWords(Words):
    """Those of chatty: a block of calls, and an answer in plain text."""

    __slots__ = ()

    def exchanges(
        self, text: str, calls: Sequence[Call], results: Mapping[str, Result], number: int
    ) -> list[tuple[str, str]]:
        """As `Words.exchanges`."""
        made = [call for call in calls if not self.tools.is_answer(call.tool)]
        if not made:
            return self._answered(text, calls[0], results)
        rows, lines = [], []
        for at, call in enumerate(made, number + 1):
            name, arguments = self.tools.written(call)
            rows.append({"call_id": f"call_{at}", "tool_name": name, "arguments": arguments})
            lines.append(f"{name} (call_{at}): {self._line(results.get(call.id))}")
        assert isinstance(self.protocol, ChattyProtocol)
        opening, closing = tag_pair("tool_tag", self.protocol.tool_tag)
        before = f"{text}\n\n" if text else ""
        block = f"{before}{opening}\n{reply_json(rows)}\n{closing}"
        told = "\n".join(("TOOL_EXECUTION_RESULT", *lines))
        return [("assistant", block), ("user", told)]

    def answer(self, value: Any) -> str:
        """As `Words.answer`."""
        if self.tools.answer is None and isinstance(value, str):
            return value
        return f"<answer>{reply_json(value)}</answer>"

    def _answered(
        self, text: str, call: Call, results: Mapping[str, Result]
    ) -> list[tuple[str, str]]:
        before = f"{text}\n\n" if text else ""
        reply = before + self.answer(self.tools.answer_in(call.object))
        result = results.get(call.id)
        refused = result.content if result is not None and result.error else ""
        return [("assistant", reply), ("user", refused)]

    def _line(self, result: Result | None) -> str:
        failed = result is not None and result.error
        content = self._content(result)
        if _LINE_END.search(content) or content.startswith('"'):
            content = _LINE_END.sub(_escaped, json.dumps(content, ensure_ascii=False))
        return f"error: {content}" if failed else content


def _escaped(end: re.Match[str]) -> str:
    return "".join(f"\\u{ord(mark):04x}" for mark in end[0])


def words_of(protocol: Protocol, tools: SentTools, reminder: str = "") -> Words:
    """Return the words of a protocol."""
    kind = ReactWords if isinstance(protocol, ReactProtocol) else ChattyWords
    return kind(protocol, tools, reminder)


def retell(turns: Sequence[Turn], words: Words) -> list[Retold]:
    """Return the messages of a conversation, without those of the system.

    The messages of a conversation stay as they are when it continues.

    Args:
        turns: The conversation, as services take it.
        words: The words of the protocol.
    """
    told: list[Retold] = []
    calls, results = 0, ""
    turns = [turn for turn in turns if turn.role != "system"]
    for at, turn in enumerate(turns):
        if turn.role == "user":
            told.append(_said(turn, results, words))
            results = ""
            continue
        following = turns[at + 1] if at + 1 < len(turns) else None
        made = [item for item in turn.items if isinstance(item, Call)]
        text = _text(turn)
        if not made:
            reply = text if _is_refused(following) else words.answer(text or _NO_TEXT)
            told.append(_plain("assistant", reply or _NO_TEXT))
            continue
        answered = following.items if following is not None and following.role == "user" else ()
        by_id = {item.id: item for item in answered if isinstance(item, Result)}
        pairs = words.exchanges(text, made, by_id, calls)
        calls += len(made)
        told += [_plain(role, one or _NO_TEXT) for role, one in pairs[:-1]]
        results = pairs[-1][1]
        if not answered:
            told.append(_plain("user", results or _NO_TEXT))
            results = ""
    return told


def _said(turn: Turn, results: str, words: Words) -> Retold:
    """Return a message of the user: the results of the calls before it, then its texts."""
    text = _text(turn)
    if text.startswith(_REFUSED):
        text = words.feedback(text)
    elif text and not results and words.reminder:
        text = f"{text}\n\n{words.reminder}"
    whole = "\n\n".join(one for one in (results, text) if one) or _NO_TEXT
    return Retold("user", said_with(Said(whole, []), turn.message.get("parts") or ()))


def _plain(role: str, text: str) -> Retold:
    return Retold(role, Said(text, []))


def _text(turn: Turn) -> str:
    return "\n\n".join(item.text for item in turn.items if isinstance(item, Text))


def _is_refused(turn: Turn | None) -> bool:
    """Whether this message says that the reply before it was refused."""
    return turn is not None and turn.role == "user" and _text(turn).startswith(_REFUSED)
