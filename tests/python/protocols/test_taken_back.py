"""Moves that a document, a program or a comment takes back, and values that need a guess."""

import json

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Limits,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    tool,
)
from callslip.errors import CallslipError

MOVES = {
    ReactProtocol: '{"thought": "t", "action": "pay", "args": {"to": "A"}}',
    ChattyProtocol: '<tool>[{"call_id": "a", "tool_name": "pay", "arguments": {"to": "A"}}]</tool>',
    TicketProtocol: (
        '<thoughts>t</thoughts><output>{"type": "CALL", "route": "pay", "description": "d", '
        '"payload": {"to": "A"}}</output>'
    ),
}
AROUND = {
    "branch above": ("if approved:\n    ", ""),
    "branch behind": ("", " if ok"),
    "open comment": ("/*\n", ""),
    "open quotes": ('"""\n', ""),
    "comment": ("", " // cancelled"),
    "second comment": ("", "\nSee https://example.org // dry run"),
    "comment of another language": ("<%-- not yet --%>\n", ""),
    "value": ("x = ", ""),
    "member": ('"draft": ', ""),
    "sign": ("", "\n❌"),
    "switch": ("approved: false\n", ""),
    "end of reasoning": ("maybe ", "\n</scratchpad>\nI ask first."),
    "control token": ("maybe ", " <|END_THINKING|>\nI ask first."),
    "channel": ("<|channel|>analysis\n", ""),
    "long comment": ("/*\nnot yet\n*/\n", ""),
    "comment with a switch": ("", "\n/* approved: false */"),
    "heading": ("# DRY RUN\n", ""),
    "label": ("[DRY RUN] ", ""),
    "label behind": ("", " (dry run)"),
    "sign above": ("👎\n", ""),
    "value above": ("return\n", ""),
    "branch below": ("", "\nif ok"),
    "branch of a fence": ("if approved:\n```json\n", "\n```"),
    "pipe": ("", " | jq ."),
    "end of a plan": ("maybe ", "\n</planning>\nI ask first."),
    "pair": ("<del>", "</del>"),
    "open document": ("cat <<'EOF'\n", ""),
    "open block": ("\\begin{quote}\n", ""),
    "quotes": ("『", "』"),
    "turn": ("[TOOL_RESULTS]", ""),
    "denial above": ("Do not run this:\n", ""),
    "denial behind": ("", "\nDo not run it."),
    "condition behind a label": ("Thought: If approved:\n", ""),
    "condition behind": ("", "\nOnly if you agree."),
    "only an example": ("", "\nThis is only an example."),
    "changed mind": ("", "\nWait, no."),
    "thoughts behind": ("", "\n<thoughts>do not run</thoughts>"),
    "struck": ('<s class="x">', "</s>"),
    "open mark": ("<not_run>\n", ""),
    "titled setting": ("Status: not approved\n", ""),
    "answer behind": ("", "\n<answer>I ask first.</answer>"),
    "header of an answer": ("", "<|START_RESPONSE|>I ask first."),
    "remark above": ('{"note": "do not run"}\n', ""),
    "sections": ("## Reasoning\n", "\n## Answer\nI ask first."),
}


@pytest.mark.parametrize("protocol", MOVES)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_what_stands_around_a_move_takes_it_back(protocol, around):
    before, behind = around
    assert protocol().parse(MOVES[protocol]).move is not None
    assert protocol().parse(before + MOVES[protocol] + behind).violation is not None


@pytest.mark.parametrize("protocol", MOVES)
@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", ""),
        ('I said: "', '" but no'),
        ("<cite>", "</cite>"),
        ("/* ", " */"),
        ("", "\nIt is done."),
        ("I look at ticket # 12 if it is open.\n", "\n"),
    ],
)
def test_a_stream_that_is_complete_reads_as_the_whole_reply(protocol, before, behind):
    text = before + MOVES[protocol] + behind
    whole = protocol().parse(text)
    for length in range(1, len(text) + 1):
        reader = protocol().reader()
        if reader.push(text[:length])[1] == "complete":
            stopped = reader.finish()
            assert (stopped.move is None) == (whole.move is None), text[:length]


@pytest.mark.parametrize("protocol", [ReactProtocol, ChattyProtocol])
def test_a_stream_waits_for_what_belongs_to_the_move(protocol):
    reader = protocol().reader()
    for piece in (MOVES[protocol], "\n", ', "dry_run": true}'):
        assert reader.push(piece)[1] != "complete"
    assert reader.finish().violation is not None


@pytest.mark.parametrize("said", ["do not run", "only if the user agrees", "dry run", "not yet"])
def test_a_remark_in_a_move_takes_it_back(said):
    move = {"thought": "t", "action": "pay", "args": {"to": "A"}}
    assert ReactProtocol().parse(json.dumps(move | {"note": "the first"})).move is not None
    assert ReactProtocol().parse(json.dumps(move | {"note": said})).violation is not None


paid = []


@tool
def pay(n: int = 0, share: float = 0.5) -> str:
    """Pay."""
    paid.append((n, share))
    return "done"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"n": 4503599627370497.5}',
        '{"n": 9007199254740993.5}',
        '{"n": 0.99999999999999999999}',
        '{"n": 1.00000000000000000001}',
        '{"n": -1.00000000000000000001}',
        '{"n": 100 # 200\n}',
        '{"n": 100 // probably 200\n}',
        "{n: 1, // share: 0.9\n}",
        '{"n": 1 // was: 2\n}',
        '{"n": 1 // is it right?\n}',
        '{"share": 4503599627370497.5, "n": 4503599627370497.5}',
    ],
)
def test_a_number_is_what_was_written(arguments):
    paid.clear()
    replies = ['{"thought": "t", "action": "pay", "args": ' + arguments + "}"] * 4
    agent = Agent(
        ScriptedModel(replies), protocol="react", tools=[pay], limits=Limits(max_violations=2)
    )
    with pytest.raises(CallslipError):
        agent.run_sync("t")
    assert not paid


@pytest.mark.parametrize("number", ["3", "3.0", "3e0", "-0.0", "9007199254740993"])
def test_a_whole_number_is_one_however_it_is_written(number):
    paid.clear()
    finish = '{"thought": "t", "action": "FINISH", "final_answer": "x", "task_successful": true}'
    replies = ['{"thought": "t", "action": "pay", "args": {"n": ' + number + "}}", finish]
    Agent(ScriptedModel(replies), protocol="react", tools=[pay]).run_sync("t")
    assert paid[0][0] == (int(number) if number.isdigit() else int(float(number)))


def test_a_key_that_is_given_twice_is_refused_in_text_too():
    arguments = json.dumps('{"to": "a", "to": "b"}')
    text = f'<tool_call>{{"name": "pay", "arguments": {arguments}}}</tool_call>'
    reply = ChattyProtocol(lenient=True).parse(text)
    assert reply.move is None or reply.move.calls[0].arguments != {"to": "b"}
