"""Replies that are not known to be whole: complete moves are made, and nothing is completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import Agent, ChattyProtocol, ReactProtocol, TicketProtocol
from callslip.models import ModelReply
from callslip.protocols import Protocol
from callslip.testing import Say

PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "chatty": ChattyProtocol,
    "react": ReactProtocol,
    "ticket": TicketProtocol,
}
CALLS = {name: Say(name).call("note", text="x [1] y") for name in PROTOCOLS}
FINAL = {name: Say(name).finish("All is done.") for name in PROTOCOLS}


def sent(text: str, end: str | None, *, streamed: bool) -> Any:
    """A reply in the form of OpenAI-like services."""
    if not streamed:
        return {"choices": [{"message": {"content": text}, "finish_reason": end}]}
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    return iter([*chunks, {"choices": [{"delta": {}, "finish_reason": end}]}])


def called_with(name: str, *replies: Any) -> tuple[list[str], Any]:
    noted: list[str] = []

    def note(text: str) -> str:
        """Note a text."""
        noted.append(text)
        return "noted"

    left = list(replies)

    def model(messages: list[dict[str, str]]) -> Any:
        del messages
        return left.pop(0)

    result = Agent(model, tools=[note], protocol=PROTOCOLS[name]()).run_sync("Note it.")
    assert not left
    return noted, result


def violations_of(result: Any) -> int:
    return sum(event.kind == "violated" for event in result.run.log)


# A service says a word that is not known, or owes a word and does not say it. (A stream without a
# reason has broken off.)
ENDS = [("my_new_word", True), ("my_new_word", False), (None, False), ("", False)]


@pytest.mark.parametrize(("end", "streamed"), ENDS)
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_complete_move_is_made(name: str, end: str | None, streamed: bool) -> None:
    replies = [sent(text, end, streamed=streamed) for text in (CALLS[name], FINAL[name])]
    noted, result = called_with(name, *replies)
    assert (noted, result.value) == (["x [1] y"], "All is done.")
    assert violations_of(result) == 0


CUT = {
    # Whatever the cut part is, it is completed if the reply is known to be whole.
    "chatty": CALLS["chatty"].removesuffix("</tool>"),
    "ticket": CALLS["ticket"].removesuffix("</output>"),
}


@pytest.mark.parametrize(("end", "streamed"), ENDS)
@pytest.mark.parametrize("name", CUT)
def test_a_move_whose_end_is_missing_is_asked_for_again(
    name: str, end: str | None, streamed: bool
) -> None:
    noted, result = called_with(
        name,
        sent(CUT[name], end, streamed=streamed),
        sent(CALLS[name], end, streamed=streamed),
        sent(FINAL[name], end, streamed=streamed),
    )
    assert (noted, violations_of(result)) == (["x [1] y"], 1)
    noted, result = called_with(
        name, sent(CUT[name], "stop", streamed=streamed), sent(FINAL[name], "stop", streamed=False)
    )
    assert (noted, violations_of(result)) == (["x [1] y"], 0)


@pytest.mark.parametrize(("end", "streamed"), ENDS)
def test_an_answer_in_plain_text_ends_with_a_mark(end: str | None, streamed: bool) -> None:
    said = [sent(text, end, streamed=streamed) for text in ("It is 4", "It is 4.")]
    _, result = called_with("chatty", *said)
    assert (result.value, violations_of(result)) == ("It is 4.", 1)
    _, result = called_with("chatty", sent("It is 4", "stop", streamed=streamed))
    assert (result.value, violations_of(result)) == ("It is 4", 0)


@pytest.mark.parametrize(
    "text",
    ["So it is.", "Is it?", "**It is!**", 'He said: "It is."', "(It is.)", "是的。", "```\na\n```"],
)
def test_marks_end_an_answer(text: str) -> None:
    assert ChattyProtocol().parse(text, finish_reason="unknown").violation is None


@pytest.mark.parametrize("text", ["It is", "a, b,", "1.5", "See [1", "- one\n- two", "Because:"])
def test_other_ends_are_not_those_of_an_answer(text: str) -> None:
    reply = ChattyProtocol().parse(text, finish_reason="unknown")
    assert reply.violation is not None
    assert reply.violation.code == "truncated"


@pytest.mark.parametrize("end", [None, "stop"])
def test_a_reply_of_a_callable_is_known_to_be_whole(end: str | None) -> None:
    assert called_with("chatty", "It is 4")[1].value == "It is 4"
    assert called_with("chatty", ModelReply("It is 4", end))[1].value == "It is 4"
    assert called_with("chatty", iter(["It ", "is 4"]))[1].value == "It is 4"


def test_a_callable_may_say_that_it_does_not_know() -> None:
    _, result = called_with("chatty", ModelReply("It is", "unknown"), ModelReply("It is 4."))
    assert (result.value, violations_of(result)) == ("It is 4.", 1)
    ends = [event.finish_reason for event in result.run.log if event.kind == "model_replied"]
    assert ends == ["unknown", "stop"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(PROTOCOLS)), st.data())
def test_no_beginning_of_a_move_is_another_move(name: str, data: st.DataObject) -> None:
    """Whatever a reply is cut to, it is refused, or is the move of the whole reply."""
    protocol, words = PROTOCOLS[name](), st.text('ab]}"\\ \n.<', max_size=12)
    text = Say(protocol).call("note", text=data.draw(words), more=[data.draw(words)])
    whole = protocol.parse(text, finish_reason="unknown")
    assert whole.violation is None
    cut = text[: data.draw(st.integers(0, len(text)))]
    reply = protocol.parse(cut, finish_reason="unknown")
    assert reply.violation is not None or repr(reply.move) == repr(whole.move)
