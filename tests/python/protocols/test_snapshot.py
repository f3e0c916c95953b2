"""What is there of a reply that is still arriving: `reader.snapshot()`."""

import gc
import json
import threading
import weakref
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callslip import ChattyProtocol, Move, ReactProtocol, TicketProtocol

DATA = Path(__file__).parents[2] / "data"
CORPORA = [DATA / "replies.jsonl", DATA / "replies_2026.jsonl"]
PROTOCOLS = {"chatty": ChattyProtocol(), "react": ReactProtocol(), "ticket": TicketProtocol()}


def chatty(*calls, text=""):
    rows = [
        {"call_id": call_id, "tool_name": name, "arguments": arguments}
        for call_id, name, arguments in calls
    ]
    return f"{text}\n<tool>\n{json.dumps(rows)}\n</tool>"


def react(arguments):
    return json.dumps({"thought": "why", "action": "tool", "args": json.dumps(arguments)})


def ticket(**output):
    return f"<thoughts>\nwhy\n</thoughts>\n<output>\n{json.dumps(output)}\n</output>"


def is_beginning(part, whole):
    """Whether `part` may grow to `whole`: all that is new comes at the end."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all_but_last(part, whole)
    if isinstance(part, dict) and isinstance(whole, dict):
        same_keys = list(part) == list(whole)[: len(part)]
        return same_keys and all_but_last(list(part.values()), list(whole.values()))
    return same(part, whole)


def all_but_last(part, whole):
    if not part:
        return True
    *done, last = zip(part, whole, strict=False)
    return all(same(a, b) for a, b in done) and is_beginning(*last)


def same(a, b):
    return type(a) is type(b) and a == b


def values(snapshot):
    """All that a snapshot shows, copied."""
    return json.loads(
        json.dumps(
            {
                "thoughts": snapshot.thoughts,
                "reasoning": snapshot.reasoning,
                "text": snapshot.text,
                "answer": snapshot.answer,
                "calls": [
                    {"call_id": call.call_id, "tool": call.tool, "arguments": call.arguments}
                    for call in snapshot.calls
                ],
                "ticket_id": snapshot.ticket_id,
            }
        )
    )


def meant(arguments):
    """Return the arguments; a ticket payload may also be their text, or no object at all."""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return arguments if isinstance(arguments, dict) else {}


def fits(snapshot, reply):
    """A snapshot shows beginnings of what the reply says in the end."""
    shown = values(snapshot)
    assert (reply.thoughts or "").startswith(shown["thoughts"]), shown
    assert (reply.reasoning or "").startswith(shown["reasoning"]), shown
    calls = reply.move.calls if isinstance(reply.move, Move.Call) else []
    finish = isinstance(reply.move, Move.Finish)
    # What the chat template had opened as reasoning was shown as text, until its end arrived.
    opened = any(repair.code == "implicit_think" for repair in reply.repairs)
    if shown["text"] and not opened:
        assert (reply.move.value if finish else reply.narration or "").startswith(shown["text"])
    if shown["answer"] is not None:
        assert finish, shown
        assert is_beginning(shown["answer"], reply.move.value), shown
    if shown["ticket_id"] is not None:
        assert shown["ticket_id"] == reply.move.ticket_id
    assert len(shown["calls"]) <= len(calls), shown
    for part, call in zip(shown["calls"], calls, strict=False):
        assert part["tool"] in (None, call.tool)
        assert part["call_id"] in (None, call.call_id)
        assert is_beginning(part["arguments"], meant(call.arguments)), shown


def is_whole(snapshot, reply):
    """The last snapshot of a clean reply shows all of it."""
    shown = values(snapshot)
    assert shown["thoughts"] == (reply.thoughts or "")
    assert shown["reasoning"] == (reply.reasoning or "")
    match reply.move:
        case Move.Finish(value=value):
            assert same(shown["answer"], value)
        case Move.Call(calls=calls):
            assert shown["calls"] == [
                {"call_id": call.call_id, "tool": call.tool, "arguments": meant(call.arguments)}
                for call in calls
            ]
        case Move.Await(ticket_id=ticket_id) | Move.Load(ticket_id=ticket_id):
            assert shown["ticket_id"] == ticket_id


def read(protocol, chunks):
    """The snapshots after each chunk, checked against the reply."""
    reply = protocol.parse("".join(chunks))
    if reply.move is None:
        return
    reader, looked = protocol.reader(), protocol.reader()
    for chunk in chunks:
        reader.push(chunk)
        looked.push(chunk)
        fits(looked.snapshot(), reply)
    # One that is taken at the end alone shows the same as the last of many.
    assert values(reader.snapshot()) == values(looked.snapshot())
    # What is no call may be held back to its end.
    if not reply.repairs and (protocol.name != "chatty" or isinstance(reply.move, Move.Call)):
        is_whole(looked.snapshot(), reply)


def pieces(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
arguments = st.dictionaries(st.text(), json_values, max_size=4)
cuts = st.lists(st.integers(0, 400), max_size=30)


def cut(text, at):
    places = sorted({0, len(text), *(place for place in at if place < len(text))})
    return [text[a:b] for a, b in pairwise(places)]


@given(arguments, arguments, cuts)
def test_chatty_calls_begin_as_they_end(first, second, at):
    text = chatty(("a", "one", first), ("b", "two", second), text="Let me see:")
    read(PROTOCOLS["chatty"], cut(text, at))


@given(arguments, cuts)
def test_react_arguments_begin_as_they_end(values, at):
    read(PROTOCOLS["react"], cut(react(values), at))


@given(json_values, cuts)
@example(None, [])
@example("", [])
@example(1.5, [60])
def test_ticket_values_begin_as_they_end(value, at):
    read(PROTOCOLS["ticket"], cut(ticket(type="RETURN", value=value), at))


@given(arguments, cuts)
def test_ticket_payloads_begin_as_they_end(payload, at):
    text = ticket(type="CALL", route="POST /x", payload=payload, description="d")
    read(PROTOCOLS["ticket"], cut(text, at))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_no_reply_of_the_corpus_is_shown_as_something_else(size):
    texts = [path.read_text(encoding="utf-8") for path in CORPORA]
    for case in map(json.loads, "".join(texts).splitlines()):
        if "options" not in case and "tags" not in case:
            read(PROTOCOLS[case["protocol"]], pieces(case["text"], size))


def test_a_new_reader_shows_nothing():
    snapshot = TicketProtocol().reader().snapshot()
    assert values(snapshot) == {
        "thoughts": "",
        "reasoning": "",
        "text": "",
        "answer": None,
        "calls": [],
        "ticket_id": None,
    }
    assert repr(snapshot) == "Snapshot(status='open')"


def test_texts_are_those_of_the_moment():
    reader = ReactProtocol().reader()
    reader.push('{"thought": "One')
    early = reader.snapshot()
    reader.push(' two.", "action": "FINISH", "final_answer": "o')
    late = reader.snapshot()
    reader.push('k", "task_successful": true}\nSo')
    assert (early.thoughts, early.answer, early.status) == ("One", None, "open")
    assert (late.thoughts, late.answer, late.status) == ("One two.", "o", "open")
    last = reader.snapshot()
    assert (last.answer, last.status) == ("ok", "complete")
    assert repr(last) == "Snapshot(status='complete', answer='ok')"


def test_arguments_grow_in_place():
    reader = ChattyProtocol().reader()
    reader.push('<tool>[{"call_id": "a", "tool_name": "plan", "arguments": {"steps": [{"do": "wa')
    (call,) = calls = reader.snapshot().calls
    arguments = call.arguments
    step = arguments["steps"][0]
    assert step == {"do": "wa"}
    reader.push('it"}, {"do": "go')
    # Nothing grows until somebody looks.
    assert step == {"do": "wa"}
    assert reader.snapshot().calls is calls
    assert call.arguments is arguments
    assert arguments == {"steps": [{"do": "wait"}, {"do": "go"}]}
    assert arguments["steps"][0] is step
    reader.push('"}]}}, {"call_id": 2, "tool_name": "stop", "arguments": {}}]</tool>')
    second = reader.snapshot().calls[1]
    assert (second.call_id, second.tool, second.arguments) == ("2", "stop", {})
    reply = reader.finish()
    assert [call.arguments for call in reply.move.calls] == [call.arguments for call in calls]
    assert repr(call) == (
        "PartialCall(tool='plan', arguments={'steps': [{'do': 'wait'}, {'do': 'go'}]})"
    )


def test_a_ticket_value_grows_in_place():
    reader = TicketProtocol().reader()
    reader.push('<thoughts>x</thoughts><output>{"type": "RETURN", "value": [1, [2')
    answer = reader.snapshot().answer
    assert answer == [1, []]
    reader.push(", 3], 4")
    assert reader.snapshot().answer is answer
    assert answer == [1, [2, 3]]


def test_what_was_read_stays_after_the_end():
    reader = ReactProtocol().reader()
    reader.push(react({"a": 1})[:-1])
    snapshot = reader.snapshot()
    assert reader.finish("length").violation.code == "truncated"
    assert snapshot.calls[0].arguments == {"a": 1}
    assert reader.snapshot().thoughts == "why"


def test_a_copy_of_a_call_is_not_shown():
    one = '{"call_id": "a", "tool_name": "t", "arguments": {"x": 1}}'
    two = '{"tool_name": "t", "arguments": {"x": 2}, "call_id": "b"}'
    text = f"<tool>[{one}, {one}, {two}]</tool>"
    read(ChattyProtocol(), pieces(text, 1))
    reader = ChattyProtocol().reader()
    reader.push(text)
    assert [call.call_id for call in reader.snapshot().calls] == ["a", "b"]


def test_a_call_without_an_id_shows_the_one_it_gets():
    reader = ChattyProtocol().reader()
    reader.push('<tool>[{"tool_name": "t", "arguments": {}}')
    assert [call.call_id for call in reader.snapshot().calls] == ["call_1"]


def test_empty_arguments_of_a_final_answer_are_no_call():
    text = (
        '{"thought": "", "args": "{}", "action": "FINISH", "final_answer": "", '
        '"task_successful": true}'
    )
    reader = ReactProtocol().reader()
    for piece in pieces(text, 1):
        reader.push(piece)
        assert reader.snapshot().calls == []
    assert reader.snapshot().answer == ""


@pytest.mark.parametrize("inner", ['```json\n{"a": 1}\n```', '"{\\"a\\": 1}"'])
def test_arguments_that_need_more_than_reading_stay_empty(inner):
    reader = ReactProtocol().reader()
    reader.push(json.dumps({"thought": "x", "action": "t", "args": inner}))
    assert reader.snapshot().calls[0].arguments == {}
    assert reader.finish().move.calls[0].arguments == {"a": 1}


def test_chunks_may_end_inside_a_character():
    reader = ChattyProtocol().reader()
    for byte in chatty(("a", "t", {"x": "äöü𝄞"}), text="é").encode():
        reader.push(bytes([byte]))
        assert is_beginning([call.arguments for call in reader.snapshot().calls], [{"x": "äöü𝄞"}])
    assert reader.snapshot().calls[0].arguments == {"x": "äöü𝄞"}
    assert reader.snapshot().text == "é"


def test_threads_may_look_while_another_pushes():
    whole = {"rows": [{"n": n, "text": "x" * (n % 7)} for n in range(300)]}
    reader = ReactProtocol().reader()
    wrong = []

    def look():
        while reader.snapshot().status == "open":
            for call in reader.snapshot().calls:
                if not is_beginning(json.loads(json.dumps(call.arguments)), whole):
                    wrong.append(call.arguments)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for piece in pieces(react(whole) + "\nSo", 5):
        reader.push(piece)
    for thread in threads:
        thread.join()
    assert not wrong
    assert reader.snapshot().calls[0].arguments == whole


def test_a_reader_and_what_it_shows_are_no_cycle():
    class Canary:
        pass

    reader = ChattyProtocol().reader()
    reader.push(chatty(("a", "t", {"x": [1]})))
    canary = Canary()
    watch = weakref.ref(canary)
    calls = reader.snapshot().calls
    calls[0].arguments["x"].append(canary)
    gc.disable()
    try:
        del reader, calls, canary
        assert watch() is None
    finally:
        gc.enable()
