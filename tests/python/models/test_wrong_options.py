"""Options of models, and what programs call models with, where they are of a wrong type."""

from __future__ import annotations

import re
from typing import Any

import anthropic
import openai
import pytest

from callslip import Agent, Fallback, ModelError, Priced, Retrying, UsageError, as_model
from callslip.models import BoundedModel, Bounds, ModelReply
from callslip.models.anthropic import AnthropicModel
from callslip.models.local import LocalModel
from callslip.models.openai import OpenAIModel

NAN, INF = float("nan"), float("inf")
OPENAI = openai.OpenAI(api_key="x")
ANTHROPIC = anthropic.Anthropic(api_key="x")
CLIENTS = {
    "openai": OPENAI,
    "responses": OPENAI.responses.create,
    "anthropic": ANTHROPIC,
}
ASK = [{"role": "user", "content": "x"}]

# Of every client.
OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"model": 3}, "expected model to be text: got 3"),
    ({"model": ["m"]}, "expected model to be text: got ['m']"),
    ({"model": ""}, "expected the name of a model: got none: pass model="),
    ({"stream": "no"}, "expected stream=True or False: got 'no'"),
    ({"stream": None}, "expected stream=True or False: got None"),
    ({"max_tokens": 0}, "expected max_tokens to be a whole number from 1, or None for the default"),
    ({"max_tokens": True}, "expected max_tokens to be a whole number from 1"),
    ({"max_tokens": "x"}, "expected max_tokens to be a whole number from 1"),
    ({"grammar": True}, "expected one of auto"),
    ({"context": 1.5}, "expected context to be a number of tokens from 1: got 1.5"),
    ({"parts": "image"}, "expected parts= as a tuple with some of"),
    ({"parts": [["image"]]}, "expected parts= as a tuple with some of"),
    ({"is_async": True}, "expected no is_async: the client says it; leave it out"),
    ({"create": print}, "expected no create: the client says it; leave it out"),
]
OF_SOME: list[tuple[str, dict[str, Any], str]] = [
    ("openai", {"stop": "END"}, "expected stop as a list of texts: got 'END': pass ['END']"),
    ("openai", {"stop": [3]}, "expected stop as a list of texts: got [3]"),
    ("anthropic", {"stop": "END"}, "expected stop as a list of texts: got 'END': pass ['END']"),
    ("openai", {"seed": "x"}, "expected seed=a whole number or None: got 'x'"),
    ("openai", {"seed": True}, "expected seed=a whole number or None: got True"),
    ("openai", {"usage": "no"}, "expected usage=True or False: got 'no'"),
    ("anthropic", {"seed": 1}, "expected no seed for this client: got one; leave it out"),
    ("responses", {"seed": 1}, "expected no seed for this client: got one; leave it out"),
    ("responses", {"stop": ["x"]}, "expected no stop for this client: got one; leave it out"),
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("options", "words"), OPTIONS)
def test_of_any_client(client: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        as_model(CLIENTS[client], **{"model": "m", **options})


@pytest.mark.parametrize(("client", "options", "words"), OF_SOME)
def test_of_some_clients(client: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        as_model(CLIENTS[client], model="m", **options)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [(OpenAIModel, "client.chat.completions.create"), (AnthropicModel, "client.messages.create")],
)
@pytest.mark.parametrize("create", [3, None, "x", OPENAI], ids=["3", "None", "x", "a client"])
def test_a_client_in_place_of_its_method(kind: Any, hint: str, create: Any) -> None:
    with pytest.raises(UsageError, match=f"^expected the method of a client: got .*; pass {hint}"):
        kind(create, model="m")


def test_none_is_never_sent() -> None:
    for client in CLIENTS.values():
        model = as_model(client, model="m", stop=None, seed=None, max_tokens=None)
        assert model.accepts - {"tools", "tool_choice"} == set()


MESSAGES = [
    ("hello", 'got \'hello\'; pass [{"role": "user", "content": text}]'),
    (None, "got None"),
    (3, "got 3"),
    (["hello"], "got ['hello']"),
    ([{"text": "hello"}], "got [{'text': 'hello'}]"),
    (ASK[0], "got {'role': 'user', 'content': 'x'}; pass it in a list"),
]


@pytest.mark.parametrize(("messages", "got"), MESSAGES, ids=range(len(MESSAGES)))
def test_messages_that_are_none(messages: Any, got: str) -> None:
    words = f'expected messages as a list of dicts with "role" and "content": {got}'
    models = [as_model(client, model="m") for client in CLIENTS.values()]
    for model in [*models, Retrying(len), Fallback(len), LocalModel()]:
        with pytest.raises(UsageError, match=f"^{re.escape(words)}$"):
            list(model(messages))  # type: ignore[operator]


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"stop": "END"}, "expected stop as a list of texts: got 'END': pass ['END']"),
    ({"stop": 3}, "expected stop as a list of texts: got 3"),
    ({"seed": "x"}, "expected seed=a whole number or None: got 'x'"),
    ({"max_tokens": -5}, "expected max_tokens to be a whole number from 1"),
]


@pytest.mark.parametrize(("options", "words"), CALLS)
def test_keywords_of_a_call(options: dict[str, Any], words: str) -> None:
    for model in [as_model(OPENAI, model="m"), as_model(ANTHROPIC, model="m"), LocalModel()]:
        with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
            list(model(ASK, **options))  # type: ignore[call-overload]


WRAPPERS = [
    (lambda: Retrying(len, tries=True), "expected tries to be a whole number from 1: got True"),
    (
        lambda: Retrying(len, timeout="3"),
        "expected timeout to be a number of seconds above 0, or None",
    ),
    (
        lambda: Retrying(len, timeout=INF),
        "expected timeout to be a number of seconds above 0, or None",
    ),
    (
        lambda: Retrying(len, backoff=None),
        "expected backoff to be a number of seconds from 0: got None",
    ),
    (
        lambda: Retrying(len, max_wait=NAN),
        "expected max_wait to be a number of seconds from 0: got nan",
    ),
    (lambda: BoundedModel(len, "3"), "expected concurrency to be a whole number from 1: got '3'"),
    (
        lambda: BoundedModel(len, per_minute=True),
        "expected per_minute to be a number above 0, or None",
    ),
    (
        lambda: BoundedModel(len, tokens_per_minute=NAN),
        "expected tokens_per_minute to be a number above 0, or None for no limit: got nan",
    ),
    (
        lambda: Priced(len, input=1, output=1, cached="x"),
        "expected Priced(cached=…) to be a number from",
    ),
    (
        lambda: Priced(len, input=INF, output=1),
        "expected Priced(input=…) to be a number from 0: got inf",
    ),
    (
        lambda: Fallback([len, len]),
        "expected a callable from messages to text as the model: got list",
    ),
    (
        lambda: Bounds(answer=0),
        "expected Bounds(answer=…) to be a whole number from 1 to 100,000: got 0",
    ),
    (
        lambda: Bounds(thoughts=True),
        "expected Bounds(thoughts=…) to be a whole number from 0 to 100,000",
    ),
]


@pytest.mark.parametrize(("make", "words"), WRAPPERS, ids=range(len(WRAPPERS)))
def test_of_wrappers(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        make()


LOCAL: list[tuple[dict[str, Any], str]] = [
    ({"gguf": 3}, "expected gguf=a path: got 3"),
    ({"gguf": ""}, "expected gguf=a path: got ''"),
    ({"gguf": b"x"}, "expected gguf=a path: got b'x'"),
    ({"context": 0}, "expected context to be a whole number from 1 to 2,147,483,647: got 0"),
    ({"context": None}, "expected context to be a whole number"),
    ({"context": 2**40}, "expected context to be a whole number"),
    ({"threads": 1.5}, "expected threads to be a whole number from 1"),
    ({"threads": True}, "expected threads to be a whole number from 1"),
    ({"cache_dir": 3}, "expected cache_dir=a path: got 3"),
    ({"disk_cache": "no"}, "expected disk_cache=True or False: got 'no'"),
    ({"seed": -1}, "expected seed to be a whole number from 0 to 4,294,967,295: got -1"),
    ({"seed": None}, "expected seed to be a whole number"),
    ({"temperature": "hot"}, "expected temperature to be a number from 0: got 'hot'"),
    ({"temperature": NAN}, "expected temperature to be a number from 0: got nan"),
    ({"max_tokens": 0}, "expected max_tokens to be a whole number from 1"),
    ({"bounds": "no"}, "expected bounds=Bounds(…), 'auto' or None: got 'no'"),
    ({"bounds": {"answer": 3}}, "expected bounds=Bounds(…), 'auto' or None: got {'answer': 3}"),
]


@pytest.mark.parametrize(("options", "words"), LOCAL)
def test_of_the_local_model(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        LocalModel(**options)


def test_a_grammar_that_is_none() -> None:
    with pytest.raises(UsageError, match="^expected grammar to be text: got 3$"):
        next(LocalModel()(ASK, grammar=3))  # type: ignore[arg-type]


REPLIES = [
    (ModelReply(3), "expected a string as the text of a reply: got 3"),  # type: ignore[arg-type]
    (ModelReply(None), "expected a string as the text of a reply: got None"),  # type: ignore[arg-type]
    (ModelReply("x", reasoning=3), "expected a string as the reasoning of a reply: got 3"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("reply", "words"), REPLIES, ids=range(len(REPLIES)))
def test_a_reply_without_text(reply: ModelReply, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Agent(lambda messages: reply).run_sync("go")


def test_a_client_is_asked_with_a_list_of_stop_texts() -> None:
    asked: list[dict[str, Any]] = []

    class Completions:
        def create(self, *, model: str, messages: Any, **options: Any) -> str:
            asked.append(options)
            return "reply"

    model = as_model(Completions().create, model="m", stream=False)
    model(ASK, stop=("END", "\n"))
    assert asked == [{"stop": ["END", "\n"]}]
