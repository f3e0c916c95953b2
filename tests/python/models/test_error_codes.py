"""Codes of errors that may pass, and words of a full context."""

from __future__ import annotations

import itertools

import pytest

from callslip import Agent, FunctionModel, ModelError, Retrying, tool
from callslip.models._failures import is_context_full
from callslip.models._reply import open_result
from callslip.models._retry_rules import is_retriable
from scripted import act, finish

PASSING = [
    "overloaded",
    "rate_limit",
    "server_error",
    "service_unavailable",
    "too_many_requests",
    "timeout",
]
SPELLINGS = {
    "snake": "_".join,
    "kebab": "-".join,
    "camel": lambda words: "".join(word.title() for word in words),
    "upper": lambda words: "_".join(words).upper(),
    "words": " ".join,
}
FRAMES = ["{}", "{}_error", "engine_{}_error", "{}Exception", "{}_exceeded"]
NUMBERS = {True: (408, 409, 424, 425, 429, 500, 502, 503, 504, 529, 599), False: (400, 401, 403)}
FINAL = [
    "invalid_request_error",
    "invalid_api_key",
    "insufficient_quota",
    "exceeded_current_quota_error",
    "model_not_found",
    "invalid_timeout",
    "1113",
    "1308",
    "1261",
    "1301",
    "77",
    "billing_error",
]


def told(**error: object) -> ModelError:
    """The error that a stream reports."""
    with pytest.raises(ModelError) as caught:
        list(open_result(iter([{"error": {"message": "m", **error}}])))
    return caught.value


def raised(**error: object) -> Exception:
    """The exception of a client of OpenAI that has found it."""
    failure = type("APIError", (Exception,), {})("m")
    failure.body, failure.code, failure.type = error, error.get("code"), error.get("type")
    return failure


@pytest.mark.parametrize("made", [told, raised])
@pytest.mark.parametrize("field", ["code", "type"])
def test_a_code_of_a_failure_that_may_pass_in_any_spelling(made, field):
    for word, spell, frame in itertools.product(PASSING, SPELLINGS.values(), FRAMES):
        code = spell(frame.format(word).split("_"))
        assert is_retriable(made(**{field: code})), code


@pytest.mark.parametrize("made", [told, raised])
@pytest.mark.parametrize("passes", [True, False])
def test_a_code_that_is_a_number_is_a_status(made, passes):
    for number, kind in itertools.product(NUMBERS[passes], (int, str)):
        assert is_retriable(made(code=kind(number))) is passes, number


@pytest.mark.parametrize("made", [told, raised])
def test_codes_of_services(made):
    for code in (
        "1302",
        "1303",
        "1305",
        "1312",
        1305,
        "engine_overloaded_error",
        "ThrottlingError",
    ):
        assert is_retriable(made(code=code)), code
    for code in FINAL:
        assert not is_retriable(made(code=code)), code


def test_codes_of_minimax_are_read_by_its_own_table():
    for code, passes in {1002: True, 1001: True, 1004: False, 1008: False, 2013: False}.items():
        body = {"choices": None, "base_resp": {"status_code": code, "status_msg": "m"}}
        with pytest.raises(ModelError) as caught:
            open_result(body)
        assert is_retriable(caught.value) is passes, code


FULL = {
    "LM Studio": "Trying to keep the first 5213 tokens when context the overflows. However, the "
    "model is loaded with context length of only 4096 tokens",
    "LM Studio, newer": "The number of tokens to keep from the initial prompt is greater than the "
    "context length (n_keep: 5213>= n_ctx: 4096).",
    "xAI": "This model's maximum prompt length is 131072 but the request contains 197310 tokens.",
    "Kimi": "Invalid request: Your request exceeded model token limit: 131072",
    "GLM": "Prompt exceeds max length",
    "DashScope": "Range of input length should be [1, 30720]",
    "TGI": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    "TGI, both": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
    "vLLM": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "Groq": "Please reduce the length of the messages or completion.",
}


@pytest.mark.parametrize("server", FULL)
def test_a_full_context_in_the_words_of_each_server(server):
    assert is_context_full(None, FULL[server])


# A request near the limit that is refused in words that nobody knows.


class Refused(Exception):  # noqa: N818
    status_code = 400


@tool
def step(n: int) -> str:
    """Take a step."""
    return f"step {n} " + "x" * 300


def lengths(messages):
    return sum(len(one["content"]) for one in messages)


def model_of(asked, *, context, most, status=400):
    """A model that refuses what is longer than it can read in words of its own."""

    def model(messages):
        asked.append(lengths(messages))
        if asked[-1] > most:
            error = Refused("das ist zu viel")
            error.status_code = status
            raise error
        steps = sum("step " in one["content"] for one in messages if one["role"] == "user")
        return finish("there") if len(asked) > 8 else act("step", n=steps)

    model = FunctionModel(model)
    model.context = context
    model.count_tokens = len
    return model


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_request_near_the_limit_is_made_once_more_with_less(is_wrapped):
    asked = []
    first = lengths(shown(Agent(FunctionModel(lambda _: finish("there")), tools=[step])))
    model = model_of(asked, context=first + 1_400, most=first + 600)
    model = Retrying(model, backoff=0) if is_wrapped else model
    result = Agent(model, tools=[step], max_tokens=400).run_sync("go")
    assert result.value == "there"
    # The size of the context is known from then on.
    assert [one > first + 600 for one in asked].count(True) == 1
    shortened = [event for event in result.run.log if event.kind == "history_shortened"]
    assert "das ist zu viel" in shortened[0].error


def shown(agent):
    return agent.run_sync("go").run.messages


@pytest.mark.parametrize(("context", "status"), [(100_000, 400), (None, 400), (3_000, 401)])
def test_other_refusals_are_not_tried_again(context, status):
    asked = []
    first = lengths(shown(Agent(FunctionModel(lambda _: finish("there")), tools=[step])))
    model = model_of(asked, context=context, most=first + 500, status=status)
    with pytest.raises(ModelError, match="das ist zu viel"):
        Agent(model, tools=[step]).run_sync("go")
    assert [one > first + 500 for one in asked].count(True) == 1
