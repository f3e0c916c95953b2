"""Replies without a valid move that still have text for the user."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from callslip._core import Delta, Move
from callslip.protocols import for_plain_text

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["has_sign_of_call", "plain_text", "text_so_far", "whole_text"]

_CALL = (Delta.Tool, Delta.Arguments, Delta.CallId, Delta.CallReady)
_BESIDE = frozenset({"reasoning_stripped", "implicit_think", "special_token_stripped"})
"""Repairs that leave the text of an answer as it is."""

_SIGN = re.compile(
    r"""
    <\s*[/|]?\s*(?:tool|function|invoke|call|param|arg|action|answer|execute|python|observation)
    | <\| | \|> | \[/?TOOL | \[/?INST
    | \{\s*["'] | ^\s*(?:```\w*\s*)?[\[{]
    | ["'`]?\b(?:action|action_input|args|arguments|parameters|tool|tool_name|tool_calls?|tool_input
        |function|function_call|final_answer|thought|call_id)\b["'`]?\s*[:=]
    | ^\s*(?:action\ input|observation|final\ answer)\s*:
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Marks, keys and lines with which models begin a call, or the end of a run."""
_CALLED = r"(?<!\w)(?:NAMES)\s*[\"'`]?\s*[(\[{:=<>]|[\"'`<](?:NAMES)[\"'`>]"
"""The name of a tool, as it stands in a call."""
_CUT_SIGN = re.compile(r"(?:<[^<>\s]*|[\[{][^\]}]*|`[^`\n]*)$")
"""The beginning of something that may become one of them."""
_LAST_WORD = re.compile(r"[\w.-]+$")


def has_sign_of_call(text: str, tools: Collection[str], *, is_cut: bool) -> bool:
    """Whether a text has any sign of a call. Text without one is certainly not meant as a call.

    Args:
        text: The text.
        tools: The names of the tools.
        is_cut: Whether the text may go on.
    """
    if _SIGN.search(text) is not None:
        return True
    if tools:
        names = "|".join(map(re.escape, tools))
        called = _CALLED.replace("NAMES", names)
        if re.search(called, text) is not None or text.strip().strip("\"'`.") in tools:
            return True
    if not is_cut:
        return False
    if _CUT_SIGN.search(text) is not None:
        return True
    last = _LAST_WORD.search(text)
    if last is None:
        return False
    is_first = not text[: last.start()].rpartition("\n")[2].strip()
    may_be_name = is_first or "_" in last[0]
    return may_be_name and any(name.startswith(last[0]) for name in tools)


def plain_text(agent: Agent[Any], reply: str) -> str | None:
    """Return the text of a reply that is nothing but text; `None` if it may be anything else.

    Args:
        agent: The agent that has refused it.
        reply: The whole reply.
    """
    setup = agent._setup
    reader = for_plain_text(agent.protocol).native
    read = reader.parse(reply, None, None, setup.toolbox.tool_set)
    move = read.move
    if not isinstance(move, Move.Finish) or not isinstance(move.value, str):
        return None
    if any(repair.code not in _BESIDE for repair in read.repairs):
        return None
    text = move.value.strip()
    return None if has_sign_of_call(text, setup.toolbox.names, is_cut=False) else text


def text_so_far(agent: Agent[Any], reply: str) -> str:
    """Return the beginning of the answer in a reply that was cut.

    It is empty if the reply had not come to an answer in text, or had begun a call.

    Args:
        agent: The agent that has refused it.
        reply: The reply up to its cut.
    """
    setup = agent._setup
    if agent._answers.schema is not None:
        # The beginning of a typed answer does not validate.
        return ""
    deltas, state = setup.protocol.reader(None, setup.toolbox.tool_set).push(reply)
    if state == "doomed" or any(isinstance(delta, _CALL) for delta in deltas):
        return ""
    answer = "".join(delta.text for delta in deltas if isinstance(delta, Delta.Answer))
    if answer:
        return answer
    # What stands before a call may be an answer, if it is not the beginning of the call itself.
    text = "".join(delta.text for delta in deltas if isinstance(delta, Delta.Text))
    return "" if has_sign_of_call(text, setup.toolbox.names, is_cut=True) else text


def whole_text(agent: Agent[Any], reply: str) -> str:
    """Return the text of a native reply, without its reasoning."""
    deltas, _ = agent._setup.protocol.reader(None, None).push(reply)
    return "".join(one.text for one in deltas if isinstance(one, Delta.Text | Delta.Answer))
