"""Replies of services, where everything unknown is read the careful way round."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip.errors import ModelError
from callslip.models._direct import join_chunks
from callslip.models._finish_reasons import read_finish
from callslip.models._reply import ModelReply, ReplyStream, open_result

TEXTS = st.text("ab \n✓", max_size=6)


def chunk(end: str | None = None, **choice: object) -> dict[str, object]:
    return {"object": "chat.completion.chunk", "choices": [{**choice, "finish_reason": end}]}


def read(*chunks: object) -> tuple[ModelReply, bool]:
    stream = open_result(iter(chunks))
    assert isinstance(stream, ReplyStream)
    reply = join_chunks(stream)
    return reply, stream.broke


# Texts that repeat what was there before.


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.sampled_from(["both", "last", "only", "end"]))
def test_a_text_that_is_repeated_is_read_once(pieces: list[str], form: str) -> None:
    pieces = [*pieces, "x"]
    whole = "".join(pieces)
    chunks = []
    for at, piece in enumerate(pieces):
        so_far = {"content": "".join(pieces[: at + 1]), "role": "assistant"}
        delta = {"delta": {"content": piece}, "message": so_far}
        if form in ("last", "end"):
            del delta["message"]
        if form == "only":
            del delta["delta"]
        chunks.append(chunk(**delta))
    last: dict[str, object] = {} if form == "only" else {"delta": {}}
    if form != "last":
        last = {} if form == "end" else last
        last["message"] = {"content": whole, "role": "assistant"}
    reply, broke = read(*chunks, chunk("stop", **last))
    assert (reply.text, broke) == (whole, False)


def test_messages_of_pieces_are_joined() -> None:
    parts = [chunk(message={"content": piece}) for piece in ("Hel", "lo ", "Hel")]
    assert read(*parts, chunk("stop", message={"content": ""}))[0].text == "Hello Hel"


def test_a_repeated_text_that_changes_is_told() -> None:
    parts = [chunk(message={"content": text}) for text in ("a", "ab", "xb")]
    with pytest.raises(ModelError, match="expected chunks that repeat the reply so far"):
        read(*parts)


def test_a_whole_response_without_deltas_is_read() -> None:
    block = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    done = {
        "type": "response.completed",
        "response": {"object": "response", "status": "completed", "output": [block]},
    }
    delta = {"type": "response.output_text.delta", "delta": "Hello"}
    assert read(done)[0].text == read(delta, done)[0].text == "Hello"


# Finish reasons.

WHOLE = ["stop", "STOP", "end_turn", "stop_sequence", "COMPLETE", "STOP_SEQUENCE", "completed"]
WHOLE += ["eos", "eos_token", "FINISH", "REASON_STOP", "FINISH_REASON_STOP", "endoftext"]
KNOWN = ["max_tokens", "length", "incomplete", "content_filter", "safety", "tool_calls", "error"]
KNOWN += ["abort", "network_error", "insufficient_system_resource", "sensitive", "LANGUAGE"]
KNOWN += ["ERROR_LIMIT"]


@pytest.mark.parametrize("word", WHOLE)
def test_reasons_of_whole_replies_are_known(word: str) -> None:
    assert read_finish(word) == "stop"


@settings(max_examples=40, deadline=None)
@given(st.text("abcdefgh_", min_size=3, max_size=30).filter(lambda word: word.strip("_")))
def test_a_reason_that_is_not_known_is_not_that_of_a_whole_reply(word: str) -> None:
    assert read_finish(word) == "unknown"
    reply, broke = read(chunk(delta={"content": "Hi"}), chunk(word, delta={}))
    assert (reply.finish_reason, broke) == ("unknown", True)


@pytest.mark.parametrize("word", [*KNOWN, "OTHER", "my_new_word"])
def test_no_other_reason_counts_as_a_whole_reply(word: str) -> None:
    try:
        reply, _ = read(chunk(delta={"content": "Hi"}), chunk(word, delta={}))
    except ModelError as error:
        told = str(error)
    else:
        told = f"{word}: {reply.finish_reason}"
    assert word.lower() in told.lower() or "tool call" in told
    assert not told.endswith(": stop")


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["length", "stop"], "length"),
        (["max_tokens", "stop"], "length"),
        (["my_new_word", "stop"], "unknown"),
        (["my_new_word", "length"], "length"),
        (["length", "my_new_word", "stop"], "length"),
    ],
)
def test_the_worst_reason_stays(words: list[str], end: str) -> None:
    parts = [chunk(word, delta={}) for word in words]
    assert read(chunk(delta={"content": "Hi"}), *parts)[0].finish_reason == end


@pytest.mark.parametrize("blank", ["", " ", "null", "None", "FINISH_REASON_UNSPECIFIED"])
def test_a_blank_reason_is_none(blank: str) -> None:
    pieces = [chunk(blank, delta={"content": piece}) for piece in ("Hel", "lo")]
    assert read(*pieces) == (ModelReply("Hello", "length"), True)
    assert read(*pieces, chunk("stop", delta={})) == (ModelReply("Hello", "stop"), False)
    message = {"choices": [{"message": {"content": "Hello"}, "finish_reason": blank}]}
    assert open_result(message) == ModelReply("Hello", "unknown")


# Errors with the status 200.

WORDS = "the words of the server"
REPORTS: list[dict[str, object]] = [
    {"error_type": "overloaded", "error_message": WORDS},
    {"detail": WORDS},
    {"detail": [{"msg": WORDS, "loc": ["body"]}]},
    {"base_resp": {"status_code": 1004, "status_msg": WORDS}, "choices": None},
    {"code": 500, "msg": WORDS, "success": False},
    {"code": "InvalidParameter", "message": WORDS, "request_id": "r"},
    {"object": "error", "message": WORDS, "type": "BadRequestError", "code": 400},
    {"choices": [{"error": {"code": 502, "message": WORDS}, "finish_reason": "error"}]},
    {"errors": [{"message": WORDS}], "success": False},
    {"fault": {"faultstring": WORDS}},
    {"status": "failed", "reason": WORDS, "choices": []},
    {"whatever": {"nested": [WORDS]}, "choices": None},
]


@pytest.mark.parametrize("report", REPORTS, ids=" ".join)
@pytest.mark.parametrize("place", ["whole", "stream", "in the stream"])
def test_an_error_with_the_status_200_is_quoted(report: dict[str, object], place: str) -> None:
    with pytest.raises(ModelError) as caught:
        if place == "whole":
            open_result(report)
        else:
            before = [chunk(delta={"content": "Hi"})] if place == "in the stream" else []
            read(*before, report)
    assert str(caught.value).count(WORDS) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"choices": [], "usage": {"prompt_tokens": 1}},
        {"choices": [], "prompt_filter_results": [{"index": 0}]},
        {"choices": [], "provider": "x", "id": "1"},
        {"choices": None, "object": "chat.completion.chunk"},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "choices": [], "id": "1"},
        {"id": "1", "choices": [], "citations": ["https://example.com"]},
    ],
    ids=str,
)
def test_chunks_without_choices_are_borne_in_a_whole_reply(more: dict[str, object]) -> None:
    parts = [more, chunk(delta={"content": "Hi"}), chunk("stop", delta={}), more]
    assert read(*parts)[0].text == "Hi"


def test_any_body_without_a_reply_is_quoted() -> None:
    draw = random.Random(7)
    for _ in range(100):
        names = draw.sample(["status", "reason", "info", "result", "trace", "hint"], 3)
        body = {name: {"x": [WORDS]} if name == names[0] else draw.random() for name in names}
        for shaped in ({**body, "choices": None}, {**body, "choices": []}):
            with pytest.raises(ModelError) as caught:
                open_result(json.loads(json.dumps(shaped)))
            assert WORDS in str(caught.value)


@pytest.mark.parametrize("more", [{"detail": "x"}, {"code": 3, "title": "t"}, {"errors": ["e"]}])
def test_a_reply_with_other_fields_is_a_reply(more: dict[str, object]) -> None:
    assert open_result({"text": "Hi", **more}) == ModelReply("Hi")


def test_an_empty_reply_with_an_unknown_reason_is_empty() -> None:
    with pytest.raises(ModelError, match="got an empty one"):
        open_result({"choices": [{"message": {"content": ""}, "finish_reason": "other"}]})
