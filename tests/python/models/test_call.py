"""A model's signature decides how it is called; what is no model is refused."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip import Agent
from callslip.errors import UsageError
from callslip.models import as_model
from callslip.models._call import ModelCall

ASK = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]


# ---- calling a model


def takes_nothing(messages: object) -> str:
    return "hi"


def takes_stop(messages: object, stop: object = None, *, seed: int = 0) -> str:
    return f"{stop} {seed}"


def takes_any(messages: object, **options: object) -> str:
    return repr(sorted(options))


def takes_all(messages: object, *, grammar: object = None, **options: object) -> str:
    return repr(grammar)


def takes_its_run(messages: object, run_id: str | None = None, **options: object) -> str:
    return f"{run_id}"


class Callable:
    def __call__(self, messages: object, *, max_tokens: int | None = None) -> str:
        return f"{max_tokens}"

    def method(self, messages: object, /, seed: int | None = None) -> str:
        return f"{seed}"

    async def later(self, messages: object) -> str:
        return "later"


@pytest.mark.parametrize(
    ("model", "accepts"),
    [
        (takes_nothing, set()),
        (takes_stop, {"stop", "seed"}),
        (takes_any, {"stop", "seed", "max_tokens"}),
        (takes_all, {"stop", "seed", "max_tokens", "grammar"}),
        (takes_its_run, {"stop", "seed", "max_tokens", "run_id"}),
        (Callable(), {"max_tokens"}),
        (Callable().method, {"seed"}),
        (functools.partial(takes_stop, seed=3), {"stop"}),
        (
            functools.partial(functools.partial(takes_any, stop="x"), temperature=1),
            {"seed", "max_tokens"},
        ),
        (lambda stop: stop, set()),
        (lambda messages, grammar=None, /: "", set()),
        (lambda *args: "", set()),
        (str.join, None),
        (functools.wraps(takes_stop)(lambda *args, **kwargs: ""), {"stop", "seed"}),
    ],
)
def test_accepted_keywords(model: Any, accepts: set[str] | None) -> None:
    if accepts is None:
        with pytest.raises(UsageError, match="called with the messages alone"):
            ModelCall(model)
        return
    assert ModelCall(model).accepts == accepts
    assert ModelCall(ModelCall(model)).accepts == accepts


def test_offers_reach_only_those_that_take_them() -> None:
    offer: dict[str, Any] = {"stop": ["x"], "seed": 7, "max_tokens": 9, "grammar": "root ::= 'a'"}
    assert ModelCall(takes_nothing)(ASK, **offer) == "hi"
    assert ModelCall(takes_stop)(ASK, **offer) == "['x'] 7"
    assert ModelCall(takes_stop)(ASK, stop=None, seed=None) == "None 0"
    assert ModelCall(takes_any)(ASK, **offer) == "['max_tokens', 'seed', 'stop']"
    assert ModelCall(takes_all)(ASK, **offer) == "\"root ::= 'a'\""
    assert ModelCall(functools.partial(takes_stop, seed=3))(ASK, **offer) == "['x'] 3"


def test_a_keyword_without_default_is_always_given() -> None:
    def model(messages: object, *, stop: object) -> str:
        return f"{stop}"

    assert ModelCall(model)(ASK) == "None"
    assert ModelCall(model)(ASK, stop=["x"]) == "['x']"


def test_grammar_form_and_async_are_known_beforehand() -> None:
    async def stream(messages: object) -> AsyncIterator[str]:
        yield "hi"

    assert ModelCall(takes_all).grammar_form == "gbnf"
    assert ModelCall(takes_any).grammar_form is None
    assert not ModelCall(takes_any).is_async
    assert ModelCall(Callable().later).is_async
    assert ModelCall(functools.partial(Callable().later)).is_async
    assert ModelCall(stream).is_async


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            None,
            "expected a callable from messages to text as the model: got None: pass a callable, "
            'or wrap a client with as_model(client, model="...")',
        ),
        (
            "gpt-5",
            "expected a callable from messages to text as the model: got str: pass "
            "as_model('openai:gpt-5'), for example",
        ),
        (
            Obj(messages=Obj(create=print)),
            "expected a model: got the client SimpleNamespace: wrap it with "
            'as_model(client, model="...")',
        ),
        (Callable, "expected a model: got the class Callable: pass an instance of it"),
        (
            lambda: "hi",
            "expected a model that can be called with the messages alone: got "
            "<lambda>(): too many positional arguments; add a parameter for them",
        ),
    ],
)
def test_no_model(model: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ModelCall(model)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (
            Obj(chat=print),
            "expected the client of a known library, such as OpenAI() or Anthropic(): got "
            "SimpleNamespace: pass a callable from messages to text that calls it",
        ),
        (
            takes_nothing,
            "expected the client of a known library, such as OpenAI() or Anthropic(): got "
            "takes_nothing: a callable from messages to text is a model already, pass it as it is",
        ),
    ],
)
def test_no_client(client: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        as_model(client, model="m")
    assert str(caught.value) == message


def test_no_client_library_is_imported() -> None:
    code = (
        "import sys, callslip.models.testing as t\n"
        "t.ScriptedModel(['a'])([]), t.ModelCall(t.FunctionModel(lambda m: 'a'))([])\n"
        "found = {'openai', 'anthropic', 'litellm', 'httpx', 'pydantic'}\n"
        "sys.exit(repr(found & sys.modules.keys()) if found & sys.modules.keys() else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Library:
    """Another library's model, whose `grammar` is its own."""

    def create(self, messages: object, grammar: object = None) -> str:
        return repr((messages, grammar))

    def complete(self, messages: object, grammar=None) -> str:  # type: ignore[no-untyped-def]
        return repr((messages, grammar))


class LlamaGrammar:
    """What another library calls a grammar."""


def of_another_kind(messages: object, grammar: LlamaGrammar | None = None) -> str:
    return repr((messages, grammar))


def test_a_grammar_of_another_library_is_not_given_ours() -> None:
    assert "grammar" not in ModelCall(of_another_kind).accepts
    assert "grammar" not in ModelCall(Library().complete).accepts
    assert "grammar" in ModelCall(Library().create).accepts
    assert ModelCall(of_another_kind)([], grammar="root ::= 'a'") == "([], None)"


def test_a_run_sends_no_number_of_tokens_of_its_own() -> None:
    seen: list[object] = []

    def model(messages: object, *, grammar: object = None, max_tokens: int | None = None) -> str:
        seen.append((grammar is not None, max_tokens))
        return "done"

    Agent(model, protocol="chatty").run_sync("?")
    Agent(model, protocol="chatty", max_tokens=7).run_sync("?")
    assert seen == [(True, None), (True, 7)]
