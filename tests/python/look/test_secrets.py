"""Secrets are masked in the whole text, before it is cut and marked."""

import re

import pytest

from callslip import Agent, ScriptedModel, UsageError, tool
from callslip._base.redaction import Secrets
from callslip.look import to_html
from hostile import Page
from scripted import act, finish

KEY = "sk-proj-Zq8vX2mN4bT7wR1yK5cJ9dL3"
PLAIN = "correct horse battery staple"


def without_plain(text):
    return text.replace(PLAIN, "[gone]")


@tool
def look(what: str, how: str = "") -> dict:
    """Look."""
    return {"found": what, "password": "hunter2"}


def run_of(*script):
    return Agent(ScriptedModel([*script, finish("done")]), tools=[look], protocol="react").run_sync(
        f"use {KEY} and {PLAIN}"
    )


def marks_of(html):
    return [re.sub("<.*?>", "", one) for one in re.findall(r"<mark.*?</mark>", html, re.DOTALL)]


@pytest.mark.parametrize("secret", [KEY, PLAIN])
@pytest.mark.parametrize("limit", [20_000, 75, 60, 50, 40, 30, 20, 10, 5])
def test_no_piece_of_a_secret_is_left_where_a_text_is_cut(secret, limit):
    html = run_of(act("look", what=f"now {secret}")).to_html(
        texts=limit, redact=without_plain, open="all"
    )
    for start in range(len(secret) - 5):
        assert secret[start : start + 6] not in html
    assert "hunter2" not in html


@pytest.mark.parametrize("secret", [KEY, PLAIN])
@pytest.mark.parametrize("position", range(0, 24, 3))
def test_no_piece_of_a_secret_is_left_where_a_mark_begins_or_ends(secret, position):
    # The mark of the unknown tool is all of its name, and that of a mark by hand any piece.
    trace = run_of(act(f"look {secret} more")).trace()
    turn = trace.turns[0]
    mark = next(mark for mark in turn.marks if mark.kind == "violation")
    place = turn.reply.index(secret) + position
    for start, end in ((place, place + 2), (mark.start, place), (place, mark.end)):
        moved = _replace(mark, start=start, end=end)
        html = to_html(
            _replace(trace, turns=(_replace(turn, marks=(moved,)), *trace.turns[1:])),
            redact=without_plain,
            open="all",
        )
        for piece in range(len(secret) - 5):
            assert secret[piece : piece + 6] not in html
        # The mark is in the place of the secret, and not in another.
        assert len(marks_of(html)) == 1
        assert "thought" not in marks_of(html)[0]


def _replace(value, **changes):
    return type(value)(
        **{name: getattr(value, name) for name in type(value).__dataclass_fields__} | changes
    )


def test_marks_move_with_the_text_around_them():
    reply = act("lok", what=f"{PLAIN} and {PLAIN}", how="x")
    trace = run_of(f'{{"secret": "{PLAIN}", {reply[1:]}').trace()
    turn = trace.turns[0]
    plain = marks_of(to_html(trace))
    assert plain
    marks = [
        _replace(turn.marks[0], start=place, end=place + len("thought"))
        for place in [turn.reply.index("thought")]
    ]
    html = to_html(
        _replace(trace, turns=(_replace(turn, marks=tuple(marks)),)), redact=without_plain
    )
    assert marks_of(html) == ["thought"]
    assert PLAIN not in html


def test_a_long_redacted_text_keeps_the_marks_outside_of_what_was_redacted():
    words = " ".join(f"{PLAIN} word{number}" for number in range(1_000))
    trace = run_of(act("lok", what=words)).trace()
    turn = trace.turns[0]
    places = [turn.reply.index(word) for word in ("thought", "word500")]
    marks = tuple(_replace(turn.marks[0], start=at, end=at + 7) for at in places)
    html = to_html(
        _replace(trace, turns=(_replace(turn, marks=marks),)), redact=without_plain, texts=100_000
    )
    assert marks_of(html) == ["thought"]
    assert "horse" not in html


def test_secrets_of_the_context_are_masked():
    run = run_of(act("look", what="Tr0ub4dor is it"))
    with Secrets(["Tr0ub4dor"]).redacting_logs():
        assert "Tr0ub4dor" not in run.to_html(open="all")
    assert "Tr0ub4dor" in run.to_html()


def test_redact_sees_whole_texts_and_fields():
    seen = []

    def watch(text):
        seen.append(text)
        return text.replace('sa"y', "***")

    value = 'first\nsa"y second'
    html = run_of(act("look", what=value)).to_html(redact=watch, texts=5)
    assert value in seen
    assert 'sa"y' not in Page(html).text
    assert "say" not in Page(html).text


def test_redact_must_return_text():
    with pytest.raises(UsageError, match=r"^expected redact to return text: got None$"):
        run_of().to_html(redact=lambda text: None)
