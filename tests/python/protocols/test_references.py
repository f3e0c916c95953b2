"""References between calls of the chatty protocol: whole values, and nothing inside of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip import Agent, ScriptedModel, replay, tool
from scripted import block


@tool
def echo(text: str) -> str:
    """Return the text."""
    return f"<{text}>"


def run(*replies):
    model = ScriptedModel([*replies, "done"])
    result = Agent(model, protocol="chatty", tools=[echo]).run_sync("go")
    violations = [event.violation for event in result.run.log if event.kind == "violated"]
    return result, violations


INSIDE = ["The weather: {}", "{}.temperature", "{} ", " {}", "{}\n", "({})", "a {} b {}"]


@pytest.mark.parametrize("text", INSIDE)
@pytest.mark.parametrize("written", ["$call_1", "${call_1}"])
def test_a_reference_beside_other_text_is_refused(text, written):
    value = text.replace("{}", written)
    calls = ("call_1", "echo", {"text": "x"}), ("call_2", "echo", {"text": value})
    result, (violation,) = run(block(*calls))
    assert (violation["code"], result.tickets) == ("bad_reference", [])
    assert violation["message"] == (
        "expected '$call_1' as a whole value: got it with other text, where no result is put in"
    )
    assert violation["hint"] == (
        "use '$call_1' alone as the value, write the text in a later block, when the result of "
        "'call_1' is there, or rename that call if no result is meant"
    )
    assert violation["pointer"] == "/text"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_of_the_calls_does_not_matter(order):
    calls = [("a", "echo", {"text": "x"}), ("b", "echo", {"text": "see $a"})]
    result, (violation,) = run(block(*(calls[at] for at in order)))
    assert (violation["code"], result.tickets) == ("bad_reference", [])


def test_a_whole_value_is_filled_and_a_doubled_dollar_is_text():
    calls = [
        ("a", "echo", {"text": "x"}),
        ("b", "echo", {"text": "$a"}),
        ("c", "echo", {"text": "$$a"}),
    ]
    result, violations = run(block(*calls))
    assert violations == []
    assert [ticket.result for ticket in result.tickets] == ["<x>", "<<x>>", "<$a>"]


def test_text_that_names_a_call_of_an_earlier_turn_is_text():
    later = ("b", "echo", {"text": "costs $price"})
    result, violations = run(block(("price", "echo", {"text": "x"})), block(later))
    assert violations == []
    assert [ticket.result for ticket in result.tickets] == ["<x>", "<costs $price>"]


@pytest.mark.parametrize("text", ["$1", "$1.50", "costs $1", "s/(a)/$1/", "$1 "])
def test_ids_of_digits_are_no_references(text):
    result, violations = run(block(("1", "echo", {"text": "x"}), ("2", "echo", {"text": text})))
    assert violations == []
    assert [ticket.result for ticket in result.tickets] == ["<x>", f"<{text}>"]


IDS = st.text(st.sampled_from("ab_-1 é"), min_size=1, max_size=4).map(str.strip).filter(bool)
TEXTS = st.lists(
    st.sampled_from(["$", "{", "}", "a", "b", "_", "1", "-", " ", ".", "é"]), max_size=8
)


@given(st.lists(IDS, min_size=1, max_size=4, unique=True), TEXTS)
def test_no_call_is_made_with_the_name_of_another_in_its_text(ids, parts):
    text = "".join(parts)
    calls = [(one, "echo", {"text": "x"}) for one in ids]
    result, violations = run(block(*calls, ("last", "echo", {"text": text})))
    names = {one for one in ids if not one.isdecimal()}
    if violations:
        assert violations[0]["code"] == "bad_reference"
        assert result.tickets == []
        assert any(f"${one}" in text or f"${{{one}" in text for one in {*names, "last"})
        return
    if text.startswith("$") and text[1:] in names:
        assert result.tickets[-1].result == "<<x>>"
        return
    # Only what would be a reference loses its first dollar.
    escapes = text.startswith("$$") and text.lstrip("$") in {*names, "last"}
    sent = text[1:] if escapes else text
    assert result.tickets[-1].result == f"<{sent}>"
    for one in names:
        for written in (f"${one} ", f"${one}.", f"${{{one}}}"):
            assert written not in text.replace("$$", "")


# Logs of older versions, in which text could name a call and a number could refer to one.


def older(log, name, other):
    """The log as an older version has written it, with another name of the same length."""
    assert len(name) == len(other)
    return log.replace(name, other).replace('"version":9', '"version":8')


def test_a_log_in_which_text_named_a_call_replays_as_it_was():
    calls = ("first", "echo", {"text": "x"}), ("second", "echo", {"text": "see $other"})
    log = older(run(block(*calls))[0].run.export(), "$other", "$first")
    assert replay(log).export() == log


def test_a_log_in_which_a_number_was_a_reference_replays_as_it_was():
    calls = ("abc", "echo", {"text": "x"}), ("second", "echo", {"text": "$abc"})
    log = older(run(block(*calls))[0].run.export(), "abc", "123")
    assert replay(log).export() == log
