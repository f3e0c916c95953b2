"""Conversations with tool calls in the form of a text protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callslip._protocols.protocol import Protocol
from callslip._protocols.retold import RetoldCall
from callslip.agent._sent_tools import SentTools
from callslip.models.native._turns import Call, Result, Text, Turn, TurnItem
from callslip.parts import Said, said_with

__all__ = ["Retold", "Words", "no_thought", "read_out", "retell"]

_REFUSED = "Your reply was not executed:"
"""How the feedback on a reply begins."""
_NO_TEXT = "(no text)"
_NO_RESULT = "(no result)"


class Retold(NamedTuple):
    """One message for a run.

    Attributes:
        role: `"user"` or `"assistant"`.
        said: Its text, with its images and files.
    """

    role: str
    said: Said


def no_thought(tool: str) -> str:  # noqa: ARG001  # every tool
    """Return an empty text: the prompt has no example with thoughts."""
    return ""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a protocol.

    Attributes:
        protocol: The protocol.
        tools: The tools of the request.
        reminder: A sentence behind each user message without results; may be empty.
        thought_of: Returns the thought with which the example calls a tool; may be empty.
    """

    protocol: Protocol
    tools: SentTools
    reminder: str = ""
    thought_of: Callable[[str], str] = no_thought

    def calls(
        self, text: str, calls: Sequence[Call], results: Mapping[str, Result], number: int
    ) -> list[tuple[str, str]]:
        """Return a reply with calls, and their results, as roles and texts.

        Args:
            text: The text before the calls.
            calls: The calls.
            results: The results by the id of the call.
            number: The number of calls before them.
        """
        told = [self._retold(call, results.get(call.id)) for call in calls]
        return self.protocol._retold_calls(text, told, number)

    def answer(self, text: str) -> str:
        """Return a reply with an answer."""
        return self.protocol._retold_answer(text, is_typed=self.tools.answer is not None)

    def _retold(self, call: Call, result: Result | None) -> RetoldCall:
        tools = self.tools
        answer = (tools.answer_in(call.object),) if tools.is_answer(call.tool) else ()
        content, failed = (_NO_RESULT, False) if result is None else (result.content, result.error)
        tool, arguments = tools.written(call)
        return RetoldCall(tool, arguments, content, failed, answer, self.thought_of(tool))


def retell(turns: Sequence[Turn], words: Words) -> list[Retold]:
    """Return the user and assistant messages of a conversation.

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
        pairs = words.calls(text, made, by_id, calls)
        calls += len(made)
        told += [_plain(role, one or _NO_TEXT) for role, one in pairs[:-1]]
        results = pairs[-1][1]
        if not answered:
            told.append(_plain("user", results or _NO_TEXT))
            results = ""
    return told


def read_out(turns: Sequence[Turn]) -> list[Retold]:
    """Return the user and assistant messages of a conversation as text for a reader."""
    told: list[Retold] = []
    for turn in turns:
        if turn.role != "system":
            text = "\n\n".join(line for item in turn.items if (line := _line(item)))
            said = said_with(Said(text or _NO_TEXT, []), turn.message.get("parts") or ())
            told.append(Retold(turn.role, said))
    return told


def _line(item: TurnItem) -> str:
    match item:
        case Text(text):
            return text
        case Call(_, tool, arguments):
            return f"{tool}({arguments})"
        case Result(_, tool, content, error):
            return f"{tool}: {'error: ' if error else ''}{content}"
        case _:
            return ""


def _said(turn: Turn, results: str, words: Words) -> Retold:
    """Return a message of the user: the results of the calls before it, then its texts."""
    text = _text(turn)
    if text.startswith(_REFUSED):
        text = words.protocol._retold_refusal(text)
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
