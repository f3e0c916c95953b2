"""Conversations as services take them: ids, names, arguments, and a result for each call."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callslip.models.native._turns import ANY_ID, Call, Result, Turn, made_id, turns_of

MADE = [made_id(turn, at) for turn in range(9) for at in range(3)]
IDS = st.sampled_from(["", "", "a", "b", "call_1", "x" * 65, "é", "toolu_01", *MADE])
ARGUMENTS = st.one_of(
    st.text(),
    st.sampled_from(["", "{}", '{"a": 1}', "[1]", '{"a": NaN}', "{'a': 1}", '{"a": 1}{}', "null"]),
    st.dictionaries(st.text(), st.integers()).map(json.dumps),
)
CALLS = st.fixed_dictionaries({"call": IDS, "tool": st.text(min_size=1), "arguments": ARGUMENTS})
TEXTS = st.fixed_dictionaries({"text": st.text()})
REPLIES = st.lists(st.one_of(CALLS, TEXTS), max_size=4)


def conversation(replies: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    messages.append({"role": "user", "content": "go", "items": [{"text": "go"}]})
    for items in replies:
        messages.append({"role": "assistant", "content": "", "items": items})
        results = [
            {"result": one["call"], "tool": one["tool"], "content": str(at), "error": False}
            for at, one in enumerate(items)
            if "call" in one
        ]
        messages.append({"role": "user", "content": "", "items": [*results, {"text": "on"}]})
    return messages


def check(turns: list[Turn]) -> None:
    known: set[str] = set()
    for turn, after in zip(turns, [*turns[1:], Turn("user", (), {})], strict=True):
        calls = [one for one in turn.items if isinstance(one, Call)]
        results = [one for one in after.items if isinstance(one, Result)]
        if turn.role == "assistant":
            assert [one.id for one in results] == [one.id for one in calls]
            assert after.items[: len(results)] == tuple(results)
        for call in calls:
            assert ANY_ID.fullmatch(call.id)
            assert call.id not in known
            known.add(call.id)
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call.tool)
            assert isinstance(call.object, dict)
            call.arguments.encode()


@given(st.lists(REPLIES, max_size=4))
def test_each_call_has_one_id_and_one_result(replies):
    check(turns_of(conversation(replies), "chat"))


@given(st.lists(REPLIES, max_size=4), st.sets(st.integers(0, 9)))
def test_messages_that_a_policy_leaves_out_leave_no_call_without_a_result(replies, left_out):
    messages = [one for at, one in enumerate(conversation(replies)) if at not in left_out]
    messages.append({"role": "user", "content": "and now?"})
    check(turns_of(messages, "chat"))


def test_more_messages_change_nothing_of_those_before():
    replies = [[{"call": "a", "tool": "t", "arguments": "{}"}]] * 3
    messages = conversation(replies)
    whole = turns_of(messages, "chat")
    for count in range(len(messages)):
        begun = turns_of(messages[:count], "chat")
        assert [one.items for one in begun] == [one.items for one in whole[:count]]


def test_arguments_that_are_no_object_are_sent_as_text_in_one():
    items = [{"call": "a", "tool": "pay", "arguments": '{"amount": NaN}'}]
    (call,) = turns_of(conversation([items]), "chat")[2].items
    assert call.object == {"INVALID_JSON": '{"amount": NaN}'}
