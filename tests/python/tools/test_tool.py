"""Functions as tools: what can be one, its options, injected contexts."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import types
from typing import Any

import pytest

from callslip import Context, Tool, ToolError, UsageError, tool
from callslip.tools._toolbox import Toolbox, as_tool
from tool_calls import call, properties


@tool
def search(query: str, max_results: int = 5, *, deep: bool = False) -> list[str]:
    """Search the web.

    The newest come first.

    Args:
        query: What to look for,
            in words.
        max_results: At most this many.

    Returns:
        The pages.
    """
    return [query] * max_results + (["deep"] if deep else [])


def test_a_simple_function() -> None:
    assert isinstance(search, Tool)
    assert search.name == "search"
    assert search.description == "Search the web.\n\nThe newest come first."
    assert search.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words."},
            "max_results": {
                "type": "integer",
                "default": 5,
                "description": "At most this many.",
            },
            "deep": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert json.loads(search._spec()) == {
        "name": "search",
        "description": search.description,
        "parameters": search.parameters,
        "effect": "once",
        "readonly": False,
        "reconciles": False,
        "repeatable": False,
        "needs_approval": False,
        "checks_approval": False,
    }


def test_a_call_that_changes_nothing_is_made_again_after_a_crash() -> None:
    assert tool(readonly=True)(search).effect == "pure"
    assert tool(search).effect == tool()(search).effect == "once"
    assert tool(readonly=True, effect="once")(search).effect == "once"
    # Somebody can say what came of it.
    assert tool(readonly=True, reconcile=lambda context: None)(search).effect == "once"
    assert tool(readonly=True, external=True)(search).effect == "once"


def test_a_tool_is_still_the_function() -> None:
    assert search("a", 2) == ["a", "a"]
    assert search.__name__ == "search"
    assert search.__doc__ is not None
    assert repr(search) == "<Tool 'search'>"


def test_options() -> None:
    @tool(
        name="look",
        description="Look.",
        readonly=True,
        effect="pure",
        repeatable=True,
        timeout=1.5,
    )
    def f() -> None: ...

    assert (f.name, f.description, f.readonly, f.effect, f.repeatable, f.timeout) == (
        "look",
        "Look.",
        True,
        "pure",
        True,
        1.5,
    )
    assert f.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    renamed = Tool(f, name="again")
    assert (renamed.name, call(renamed)) == ("again", ("ok", "null"))


EFFECT = "expected effect='once' or 'idempotent' or 'pure'"
SECONDS = "expected timeout to be a number of seconds above 0, or None for no limit"
CALLS = "expected concurrency to be a whole number from 1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Tool(5),
            "expected a function as a tool: got int; pass a function with annotated arguments, "
            "or a Tool",
        ),
        (
            lambda: tool(effect="twice"),
            f"{EFFECT}: got 'twice'; pass one of them",
        ),
        (lambda: tool(timeout="5"), f"{SECONDS}: got '5'"),
        (lambda: tool(timeout=True), f"{SECONDS}: got True"),
        (lambda: tool(description=5), "expected description to be text: got 5"),
        (lambda: tool(name=5), "expected name to be text: got 5"),
        (lambda: tool(timeout=0), f"{SECONDS}: got 0"),
        (lambda: tool(readonly="x"), "expected readonly=True or False: got 'x'"),
        (lambda: tool(repeatable=1), "expected repeatable=True or False: got 1"),
        (lambda: tool(effect=["once"]), f"{EFFECT}: got ['once']; pass one of them"),
        (lambda: tool(reconcile=5), "expected reconcile to be a function: got 5"),
        (
            lambda: tool(effect="pure", reconcile=print),
            "reconcile is for effect='once': a call with effect='pure' is repeated without asking",
        ),
        (lambda: tool(concurrency="2"), f"{CALLS}: got '2'"),
        (lambda: tool(retries="2"), "expected retries to be a whole number from 0: got '2'"),
        (
            lambda: tool(concurrency=0),
            f"{CALLS}: got 0",
        ),
        (
            lambda: tool(concurrency=True),
            f"{CALLS}: got True",
        ),
        (
            lambda: tool(needs_approval="yes"),
            "expected needs_approval to be True or False: got 'yes': pass one of them, "
            "'untrusted', or a function of the arguments and the Context",
        ),
    ],
)
def test_bad_options(make: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        decorate = make()
        decorate(search)
    assert str(caught.value) == message


def test_a_lambda_needs_a_name() -> None:
    message = r"^a lambda has no name that a model could write: use tool\(name=…\)$"
    with pytest.raises(ToolError, match=message):
        tool(lambda x: x)


# What can be a tool.


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.name = "not the tool's"
        self.count = 0

    @tool
    def add(self, by: int = 1) -> int:
        """Add."""
        self.count += by
        return self.count

    def plain(self, by: int) -> int:
        return self.count + by

    async def __call__(self, by: int) -> int:
        return self.count * by


def test_methods() -> None:
    counter = Counter()
    assert counter.add.name == "add"
    assert list(properties(counter.add)) == ["by"]
    assert call(counter.add, by=2) == ("ok", "2")
    assert counter.add(3) == 5
    assert call(as_tool(counter.plain), by=1) == ("ok", "6")
    with pytest.raises(ToolError, match=r"^tool 'add' is a method: take it from an instance$"):
        _ = Counter.add.parameters


class Counters:
    @classmethod
    @tool
    def one(cls, by: int) -> str:
        return f"{cls.__name__} {by}"

    @tool
    @classmethod
    def other(cls, by: int) -> str:
        return f"{cls.__name__} {by}"

    @tool
    @staticmethod
    def static(by: int) -> str:
        return f"- {by}"


def test_methods_of_classes_are_bound_to_them_whichever_decorator_comes_first() -> None:
    bound = types.MethodType(vars(Counters)["one"].__func__, Counters)
    for made in (Counters.one, Counters().one, bound, Counters.other, Counters().other):
        one = as_tool(made)
        assert list(properties(one)) == ["by"]
        assert call(one, by=2) == ("ok", '"Counters 2"')
    assert call(Counters.static, by=2) == call(Counters().static, by=2) == ("ok", '"- 2"')
    with pytest.raises(ToolError, match=r"^tool 'upper' is a method: take it from an instance$"):
        _ = as_tool(str.upper).parameters


def test_callable_objects() -> None:
    counter = as_tool(Counter())
    assert counter.name == "Counter"
    assert counter.description == "Counts."
    assert counter.is_async
    assert list(properties(counter)) == ["by"]
    assert call(counter, by=5) == ("ok", "0")


def test_partials_hide_what_they_bind() -> None:
    def fetch(url: str, key: str, tries: int = 3) -> str:
        """Fetch."""
        return f"{url} {key} {tries}"

    one = as_tool(functools.partial(fetch, key="secret"))
    assert (one.name, one.description) == ("fetch", "Fetch.")
    assert list(one.parameters["properties"]) == ["url", "tries"]
    assert "secret" not in one._spec()
    assert call(one, url="u", tries=1) == ("ok", '"u secret 1"')


def test_wrapped_functions_keep_their_signature() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    def f(a: int) -> int:
        return a

    assert f.parameters["properties"] == {"a": {"type": "integer"}}
    assert call(f, a=1) == ("ok", "1")


def test_builtins_without_a_signature() -> None:
    with pytest.raises(ToolError, match=r"^the signature of tool 'iter' can't be read: "):
        _ = as_tool(iter).parameters


# Contexts.


def test_a_context_is_injected_and_hidden() -> None:
    @tool
    def f(a: int, context: Context) -> str:
        return f"{a} {context.ticket_id} {context.tool}"

    @tool
    async def g(ctx: Context | None, /, a: int) -> str:
        assert ctx is not None
        return f"{ctx.run_id} {a}"

    assert list(f.parameters["properties"]) == ["a"]
    assert call(f, a=1) == ("ok", '"1 T1 f"')
    assert list(g.parameters["properties"]) == ["a"]
    assert call(g, a=1) == ("ok", '"r 1"')


def test_two_contexts_are_refused() -> None:
    def f(a: Context, b: Context): ...

    with pytest.raises(ToolError) as caught:
        _ = as_tool(f).parameters
    assert str(caught.value) == "tool 'f' has two parameters annotated Context: 'a' and 'b'"


# Toolboxes.


def test_toolboxes() -> None:
    def other() -> None: ...

    box = Toolbox([search, other])
    assert box.get("search") is search
    assert box.get("other").name == "other"
    with pytest.raises(UsageError) as caught:
        Toolbox(search)
    assert str(caught.value) == (
        "expected tools as a list of functions or an OpenAPI document: got Tool; pass it in a list"
    )
    with pytest.raises(UsageError, match="OpenAPI document: got int; pass a list or a tuple$"):
        Toolbox(3)  # type: ignore[arg-type]


def test_simple_tools_import_neither_pydantic_nor_griffe() -> None:
    code = """
import sys
from callslip.tools import Context, tool
@tool
def f(a: str, b: int | None = None, *, context: Context) -> list[str]:
    "Do it."
f._spec()
assert f.call({"a": "x"}, Context(run_id="r", ticket_id="T1", tool="f")).json == "null"
heavy = {"pydantic", "pydantic_core", "griffe", "asyncio", "logging"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
