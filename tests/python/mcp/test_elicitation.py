"""What is taken for a person's answer to a question of an MCP server."""

import asyncio

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams

from callslip.mcp._callbacks import elicitation_callback

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "seats": {"type": "integer"}},
    "required": ["city"],
}
FORM = ElicitRequestFormParams(message="Where?", requested_schema=SCHEMA)
ADDRESS = ElicitRequestURLParams(message="Log in", url="https://login.example/x")


def answer_to(asked, answer):
    return asyncio.run(elicitation_callback(lambda question: answer, server="trains")(None, asked))


def test_an_answer_that_fits_is_sent_as_the_schema_has_it():
    given = answer_to(FORM, {"city": "Rome", "seats": "4"})
    assert (given.action, given.content) == ("accept", {"city": "Rome", "seats": 4})


@pytest.mark.parametrize(
    ("asked", "answer", "why"),
    [
        (FORM, "Rome", "expected elicitation= to return a mapping, or None to decline: got str"),
        (FORM, True, "expected elicitation= to return a mapping, or None to decline: got bool"),
        (FORM, {}, "missing required argument 'city' (string)"),
        (FORM, {"city": 5}, "'city' must be a string: got the integer 5"),
        (FORM, {"city": "Rome", "seat": 1}, "unknown argument 'seat'"),
        (ADDRESS, "yes", "expected elicitation= to return True, or None to decline: got str"),
        (ADDRESS, 1, "expected elicitation= to return True, or None to decline: got int"),
    ],
)
def test_what_is_no_answer_is_no_consent(asked, answer, why, caplog):
    given = answer_to(asked, answer)
    assert given.message == "the question could not be asked"
    assert why in caplog.text


def test_a_schema_that_is_none_is_no_consent(caplog):
    asked = ElicitRequestFormParams.model_construct(
        message="?", requested_schema={"type": "object", "properties": 5}, mode="form"
    )
    assert answer_to(asked, {"city": "Rome"}).message == "the question could not be asked"
    assert "trains: its question failed" in caplog.text
