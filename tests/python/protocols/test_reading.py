"""Reading on its own: policies of repair and limits."""

import json

import pytest

from callslip import ChattyProtocol, Delta, Limits, ReactProtocol, TicketProtocol, UsageError

CALL = {"thought": "t", "action": "look", "args": "{}"}


def codes(reply):
    return [repair.code for repair in reply.repairs]


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        (ReactProtocol, '{"thought": "t", "tool": "look", "action_input": {"at": 1}}'),
        (ChattyProtocol, '<tool>[{"id": "1", "name": "look", "parameters": {"at": 1}}]</tool>'),
        (
            TicketProtocol,
            '<thoughts>t</thoughts><output>{"type": "CALL", "endpoint": "look", '
            '"body": {"at": 1}, "description": "d"}</output>',
        ),
    ],
)
def test_lenient_reads_other_names_of_keys(protocol, text):
    assert protocol().parse(text).violation.code in {"unknown_key", "no_action", "missing_field"}
    reply = protocol(lenient=True).parse(text)
    assert (reply.move.calls[0].tool, reply.move.calls[0].arguments) == ("look", {"at": 1})
    assert codes(reply).count("key_alias") >= 2
    reader = protocol(lenient=True).reader()
    deltas = [delta for char in text for delta in reader.push(char)[0]]
    assert any(type(delta).__name__ == "Tool" and delta.name == "look" for delta in deltas)
    assert reader.finish().repairs == reply.repairs


def test_lenient_refuses_a_key_and_its_other_name_with_different_values():
    reply = ReactProtocol(lenient=True).parse('{"action": "look", "tool": "go", "args": {}}')
    assert reply.violation.code == "duplicate_key"


def test_lenient_touches_no_key_inside_the_arguments():
    text = '{"thought": "t", "action": "look", "args": {"input": 1, "tool": 2, "success": 3}}'
    reply = ReactProtocol(lenient=True).parse(text)
    assert reply.move.calls[0].arguments == {"input": 1, "tool": 2, "success": 3}
    assert codes(reply) == ["args_object"]


def test_strict_and_lenient_exclude_each_other():
    with pytest.raises(ValueError, match="strict=True or lenient=True: got both"):
        ReactProtocol(strict=True, lenient=True)


@pytest.mark.parametrize(
    ("limits", "args", "code"),
    [
        (Limits(reply_bytes=40), '{"text": "a long one"}', "too_large"),
        (Limits(json_depth=3), '{"a": [[[1]]]}', "args_invalid:too_deep"),
        (Limits(json_values=5), '{"a": [1, 2, 3, 4, 5, 6]}', "args_invalid:limit_exceeded"),
        (Limits(json_digits=5), '{"a": 123456}', "args_invalid:number_too_large"),
        (Limits(json_key_bytes=20), json.dumps({"k" * 21: 1}), "args_invalid:limit_exceeded"),
        (Limits(json_blanks=8), '{"a":' + " " * 9 + "1}", "args_invalid:limit_exceeded"),
        (Limits(json_repairs=1), "{'a': True,}", "args_invalid:limit_exceeded"),
    ],
)
def test_each_limit_is_a_violation(limits, args, code):
    text = json.dumps(CALL | {"args": args})
    assert ReactProtocol().parse(text).violation is None
    assert ReactProtocol().parse(text, limits=limits).violation.code == code
    reader = ReactProtocol().reader(limits=limits)
    for char in text:
        reader.push(char)
    assert reader.finish().violation.code == code


@pytest.mark.parametrize(
    ("chunk", "kind"), [(5, "int"), (None, "NoneType"), (["a"], "list"), ({}, "dict")]
)
def test_a_piece_of_a_reply_is_text_or_bytes(chunk, kind):
    reader = ReactProtocol().reader()
    with pytest.raises(UsageError, match=f"^expected text or bytes of a reply: got {kind}"):
        reader.push(chunk)
    reader.push('{"thought": "t"')
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        reader.push("\ud83d")
    reader.push(b', "action": "look", "args": {}}')
    assert reader.finish().move.calls[0].tool == "look"


@pytest.mark.parametrize(
    "delta",
    [
        "Delta.Thoughts(text='a')",
        "Delta.Reasoning(text='a')",
        "Delta.Text(text='a\\n')",
        'Delta.Answer(text="it\'s")',
        "Delta.CallId(call=1, id='a')",
        "Delta.Tool(call=1, name='a')",
        "Delta.Arguments(call=1, text='{')",
        "Delta.CallReady(call=2)",
        "Delta.TicketId(id='T1')",
    ],
)
def test_what_is_new_of_a_reply_is_shown_as_it_is_written(delta):
    assert repr(eval(delta, {"Delta": Delta})) == delta
