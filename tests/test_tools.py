"""Functions as tools: schemas, injected contexts, outcomes."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import functools
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from callslip import Context, Fail, Retry, Tool, ToolError, tool
from callslip._json import to_json
from callslip._toolbox import Toolbox, as_tool

CONTEXT = Context(run_id="r", ticket_id="T1", tool="f")


def call(one: Tool[..., Any], **arguments: Any) -> tuple[str, str]:
    outcome = one.call(arguments, CONTEXT)
    if hasattr(outcome, "__await__"):
        outcome = asyncio.run(awaited(outcome))
    return outcome


async def awaited(outcome: Any) -> Any:
    return await outcome


def properties(function: Any) -> dict[str, Any]:
    return as_tool(function).parameters["properties"]


# Schemas.


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
    assert json.loads(search.spec()) == {
        "name": "search",
        "description": search.description,
        "parameters": search.parameters,
        "effect": "once",
        "readonly": False,
        "reconciles": False,
        "repeatable": False,
        "needs_approval": False,
    }


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tool(5), "a tool must be callable: got int"),
        (
            lambda: tool(effect="twice"),
            "effect must be 'once', 'idempotent' or 'pure': got 'twice'",
        ),
        (lambda: tool(timeout=0), "timeout must be more than 0 seconds: got 0"),
        (
            lambda: tool(concurrency=0),
            "concurrency must be a whole number of calls, 1 or more: got 0",
        ),
        (
            lambda: tool(concurrency=True),
            "concurrency must be a whole number of calls, 1 or more: got True",
        ),
        (lambda: tool(needs_approval="yes"), "needs_approval must be True or False: got 'yes'"),
        (
            lambda: tool(lambda x: x),
            "a lambda has no name that a model could write: use tool(name=…)",
        ),
    ],
)
def test_bad_options(make: Any, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        decorate = make()
        decorate(search)
    assert str(caught.value) == message


# The awkward functions.


class Address(BaseModel):
    street: str
    zip: Annotated[str, Field(pattern="^[0-9]{5}$")] = "00000"


class Person(BaseModel):
    name: str
    address: Address | None = None


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Show(TypedDict):
    at: dt.date
    movie: Movie


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0


def test_no_docstring_and_no_hints() -> None:
    def f(a, b=1): ...

    assert as_tool(f).description == ""
    assert as_tool(f).parameters == {
        "type": "object",
        "properties": {"a": {}, "b": {"default": 1}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_positional_star_is_refused() -> None:
    def f(*numbers: int): ...

    with pytest.raises(ToolError) as caught:
        _ = as_tool(f).parameters
    assert str(caught.value) == (
        "tool 'f' takes *numbers, which a model can't give by name: "
        "declare a list parameter instead"
    )


def test_keyword_star_lets_anything_in() -> None:
    def f(a: int, **more: Any):
        return {"a": a, **more}

    def g(**more: int): ...

    assert as_tool(f).parameters["additionalProperties"] is True
    assert as_tool(g).parameters["additionalProperties"] == {"type": "integer"}
    assert call(as_tool(f), a=1, b=2) == ("ok", '{"a":1,"b":2}')


def test_nested_models() -> None:
    @tool
    def greet(person: Person, others: list[Person] = []) -> str:  # noqa: B006
        """Greet.

        Args:
            person: Who.
        """
        assert isinstance(person, Person)
        assert all(isinstance(other, Person) for other in others)
        return f"{person.name} of {person.address.street if person.address else '-'}"

    parameters = greet.parameters
    assert parameters["properties"]["person"] == {
        "$ref": "#/$defs/Person",
        "description": "Who.",
    }
    assert parameters["properties"]["others"]["items"] == {"$ref": "#/$defs/Person"}
    assert parameters["required"] == ["person"]
    assert set(parameters["$defs"]) == {"Person", "Address"}
    person = {"name": "Ada", "address": {"street": "Main"}}
    assert call(greet, person=person, others=[{"name": "Bob"}]) == ("ok", '"Ada of Main"')


def test_forward_references() -> None:
    @tool
    def later(node: Later, deep: list[Later] | None = None) -> str:
        assert isinstance(node, Later)
        return node.name

    assert properties(later)["node"] == {"$ref": "#/$defs/Later"}
    assert call(later, node={"name": "x"}) == ("ok", '"x"')


class Later(BaseModel):
    name: str


def test_local_types_are_found() -> None:
    class Local(BaseModel):
        a: int

    @tool
    def f(local: Local) -> int:
        return local.a

    assert call(f, local={"a": 3}) == ("ok", "3")


def test_an_unresolvable_annotation_names_parameter_and_cause() -> None:
    def f(a: int, b: Missing): ...  # noqa: F821

    def g(a: list["Missing | None"]): ...  # noqa: F821, UP037

    for function, text in [(f, "Missing"), (g, "list['Missing | None']")]:
        name = "b" if function is f else "a"
        with pytest.raises(ToolError) as caught:
            _ = as_tool(function).parameters
        assert str(caught.value) == (
            f"tool '{function.__name__}': the annotation of '{name}' ({text}) can't be used: "
            "name 'Missing' is not defined"
        )


def test_an_indescribable_annotation_names_parameter_and_cause() -> None:
    class Opaque: ...

    def f(a: Opaque): ...

    with pytest.raises(ToolError) as caught:
        _ = Tool(f, names={"Opaque": Opaque}).parameters
    message = str(caught.value)
    assert message.startswith("tool 'f': the annotation of 'a' (")
    assert "can't be used: Unable to generate pydantic-core schema for <class " in message
    assert "\n" not in message


def test_unions() -> None:
    UserId = NewType("UserId", int)

    def f(  # noqa: PLR0917
        a: int | None,
        b: str | list[int] | None = None,
        c: Literal["x", "y", 3] | None = None,
        d: float | int = 1,  # noqa: PYI041
        e: float | None = None,
        g: UserId | str = 0,
        h: list[float] | None = None,
    ):
        return [a, b, c, d, e, g, h]

    one = Tool(f, names=locals())
    assert one.parameters["properties"] == {
        "a": {"type": ["integer", "null"]},
        "b": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "integer"}},
                {"type": "null"},
            ]
        },
        "c": {"anyOf": [{"enum": ["x", "y", 3]}, {"type": "null"}]},
        "d": {"type": ["number", "integer"], "default": 1},
        "e": {"type": ["number", "null"]},
        "g": {"type": ["integer", "string"], "default": 0},
        "h": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
    }
    arguments = {"a": None, "b": [1], "c": 3, "d": 2, "e": 2, "g": "z", "h": [1]}
    assert call(one, **arguments) == ("ok", '[null,[1],3,2,2.0,"z",[1.0]]')


def test_typed_dicts_also_on_311() -> None:
    def f(movie: Movie, show: Show):
        assert isinstance(show["at"], dt.date)
        return [movie, show["movie"]]

    movie = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    one = as_tool(f)
    assert one.parameters["properties"]["movie"] == movie
    outcome = call(one, movie={"title": "M"}, show={"at": "2025-01-31", "movie": {"title": "N"}})
    assert outcome == ("ok", '[{"title":"M"},{"title":"N"}]')


def test_positional_only_and_keyword_only() -> None:
    @tool
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int) -> list[int]:
        return [a, b, c, d]

    assert f.parameters["required"] == ["a", "d"]
    assert call(f, a=1, d=4) == ("ok", "[1,2,3,4]")
    assert call(f, a=1, b=9, d=4) == ("ok", "[1,9,3,4]")


def test_constraints_and_fields() -> None:
    def f(
        a: Annotated[int, Field(ge=1, description="From 1.")],
        b: int = Field(7, le=9),
        c: list[int] = Field(default_factory=list, description="Any."),  # noqa: B008
        d: Annotated[str, "In words."] = "x",
    ):
        return [a, b, c, d]

    one = as_tool(f)
    assert one.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "From 1."},
            "b": {"type": "integer", "maximum": 9, "default": 7},
            "c": {"type": "array", "items": {"type": "integer"}, "description": "Any."},
            "d": {"type": "string", "description": "In words.", "default": "x"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert call(one, a=1) == ("ok", '[1,7,[],"x"]')


def test_values_are_made_of_their_json() -> None:
    @tool
    def f(  # noqa: PLR0917
        when: dt.datetime,
        color: Color = Color.RED,
        point: Point = Point(1),  # noqa: B008
        tags: set[str] = frozenset(),
        pair: tuple[int, str] = (1, "a"),
        ratio: float = 1,
        rows: Sequence[dict[str, float]] = (),
    ) -> list[str]:
        values = [when, color, point, tags, pair, ratio, rows]
        return [type(value).__name__ for value in values]

    assert f.parameters["properties"]["color"]["default"] == "red"
    assert f.parameters["properties"]["when"] == {"type": "string", "format": "date-time"}
    outcome = call(
        f,
        when="2025-01-31T12:00:00Z",
        color="blue",
        point={"x": 1},
        tags=["a"],
        pair=[1, "b"],
        ratio=2,
        rows=[{"a": 1}],
    )
    assert outcome[1] == '["datetime","Color","Point","set","tuple","float","list"]'


def test_values_that_are_none_of_their_type_are_told() -> None:
    @tool
    def f(when: dt.datetime, person: Person | None = None) -> None: ...

    assert call(f, when="noon", person={"name": "A", "address": {"street": 5}})[1] == (
        "Error calling tool 'f': InvalidArguments: 'when' must be a valid datetime or date, "
        "input is too short: got \"noon\"; 'person.address.street' must be a valid string: got 5."
    )


def test_docstring_styles() -> None:
    def numpy(a: int):
        """Do.

        Parameters
        ----------
        a : int
            The a.
        """

    def sphinx(a: int):
        """Do.

        :param a: The a.
        :returns: Nothing.
        """

    def plain(a: int):
        """Do: one thing.

        Args are not described here.
        """

    for function in (numpy, sphinx):
        assert as_tool(function).description == "Do."
        assert properties(function)["a"]["description"] == "The a."
    assert as_tool(plain).description == "Do: one thing.\n\nArgs are not described here."


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
    assert "secret" not in one.spec()
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


# Outcomes.


@tool
def outcome(kind: str) -> Any:
    match kind:
        case "raise retry":
            raise Retry("give a city")
        case "return retry":
            return Retry("give a city")
        case "raise fail":
            raise Fail("there is no such city.")
        case "return fail":
            return Fail("there is no such city")
        case "error":
            raise ValueError("first line\n  second line.")
        case "bare error":
            raise KeyError
        case "odd error":
            raise OddError
        case "long error":
            raise ValueError("x" * 10_000)
    return kind


class OddError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("raise retry", ("retry", "give a city")),
        ("return retry", ("retry", "give a city")),
        ("raise fail", ("error", "Error calling tool 'outcome': there is no such city.")),
        ("return fail", ("error", "Error calling tool 'outcome': there is no such city.")),
        ("error", ("error", "Error calling tool 'outcome': ValueError: first line second line.")),
        ("bare error", ("error", "Error calling tool 'outcome': KeyError.")),
        ("odd error", ("error", "Error calling tool 'outcome': OddError.")),
        ("a value", ("ok", '"a value"')),
    ],
)
def test_outcomes(kind: str, expected: tuple[str, str]) -> None:
    assert call(outcome, kind=kind) == expected


def test_long_errors_are_cut() -> None:
    assert len(call(outcome, kind="long error")[1]) < 600


def test_failures_are_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    call(outcome, kind="error")
    assert "tool 'outcome' failed" in caplog.text
    assert "second line" in caplog.text
    assert "Traceback" in caplog.text
    caplog.clear()
    call(outcome, kind="raise retry")
    assert not caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_ends_a_program_passes(error: type[BaseException]) -> None:
    @tool
    def f() -> None:
        raise error

    with pytest.raises(error):
        f.call({}, CONTEXT)


def test_async_outcomes() -> None:
    @tool
    async def f(*, fail: bool) -> int:
        await asyncio.sleep(0)
        if fail:
            raise ValueError("no")
        return 1

    assert f.is_async
    assert call(f, fail=False) == ("ok", "1")
    assert call(f, fail=True) == ("error", "Error calling tool 'f': ValueError: no.")


def test_async_is_seen_in_the_result_too() -> None:
    async def inner(a: int) -> int:
        return a

    @tool
    def f(a: int) -> Any:
        return inner(a)

    assert not f.is_async
    assert call(f, a=1) == ("ok", "1")


def test_timeouts() -> None:
    @tool(timeout=0.05)
    def slow() -> None:
        time.sleep(0.3)

    @tool(timeout=0.05)
    async def aslow() -> None:
        await asyncio.sleep(5)

    @tool(timeout=5)
    def own() -> None:
        raise TimeoutError("the tool's own")

    @tool(timeout=5)
    async def fine() -> int:
        return 1

    late = "TimeoutError: no result within 0.05 seconds."
    assert call(slow) == ("error", f"Error calling tool 'slow': {late}")
    assert call(aslow) == ("error", f"Error calling tool 'aslow': {late}")
    assert call(own) == ("error", "Error calling tool 'own': TimeoutError: the tool's own.")
    assert call(fine) == ("ok", "1")


class State:
    cancelled = False


def test_a_call_that_was_given_up_can_see_it() -> None:
    context = Context(run_id="r", ticket_id="T1", tool="f")
    assert not context.cancelled
    state = State()
    shared = Context(run_id="r", ticket_id="T1", tool="f", _call=state)
    assert not shared.cancelled
    state.cancelled = True
    assert shared.cancelled
    # It is no part of what the context says.
    assert shared == context
    assert repr(shared) == repr(context)


def test_a_sync_tool_sees_that_its_time_is_over() -> None:
    seen: list[bool] = []
    stopped = threading.Event()

    @tool(timeout=0.05)
    def slow(context: Context) -> None:
        seen.append(context.cancelled)
        until = time.monotonic() + 10
        while not context.cancelled and time.monotonic() < until:
            time.sleep(0.001)
        seen.append(context.cancelled)
        stopped.set()

    @tool(timeout=5)
    def own(context: Context) -> None:
        raise TimeoutError("the tool's own")

    state = State()
    context = Context(run_id="r", ticket_id="T1", tool="slow", _call=state)
    kind, text = slow.call({}, context)
    assert kind == "error"
    assert text.endswith("TimeoutError: no result within 0.05 seconds.")
    assert stopped.wait(5)
    assert seen == [False, True]
    state = State()
    assert own.call({}, Context(run_id="r", ticket_id="T1", tool="own", _call=state))[0] == "error"
    assert not state.cancelled


def test_a_bound_on_the_calls_at_once_is_one_for_all_copies() -> None:
    class Shop:
        @tool(concurrency=2, needs_approval=True)
        def buy(self, item: str) -> None: ...

    first, second = Shop().buy, Shop().buy
    assert first.gate is not None
    assert first.gate.limit == 2
    assert first.gate is second.gate is Shop.buy.gate
    assert first.needs_approval
    assert json.loads(first.spec())["needs_approval"] is True
    assert as_tool(first) is first
    assert search.gate is None
    assert not search.needs_approval


# Results as JSON.


class Loud:
    def __str__(self) -> str:
        return "LOUD"


circle: list[Any] = []
circle.append(circle)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("日本 \n", '"日本 \\n"'),
        ({"a": [1, 2.5, True]}, '{"a":[1,2.5,true]}'),
        (10**40, "1" + "0" * 40),
        ((1, 2), "[1,2]"),
        ({1: "a", None: "b", (1, 2): "c"}, '{"1":"a","null":"b","(1, 2)":"c"}'),
        ([float("nan"), float("inf"), -float("inf")], '["NaN","Infinity","-Infinity"]'),
        ({"b", "a"}, '["a","b"]'),
        (frozenset({3, 1}), "[1,3]"),
        (b"text", '"text"'),
        (b"\xff\x00", '"/wA="'),
        (Color.RED, '"red"'),
        ({Color.RED: Color.BLUE}, '{"red":"blue"}'),
        (Point(1.0), '{"x":1.0,"y":0.0}'),
        (Person(name="A"), '{"name":"A","address":null}'),
        ([Person(name="A")], '[{"name":"A","address":null}]'),
        (dt.date(2025, 1, 31), '"2025-01-31"'),
        (dt.datetime(2025, 1, 31, tzinfo=dt.UTC), '"2025-01-31T00:00:00Z"'),
        (dt.timedelta(hours=1), '"PT1H"'),
        (Path("a") / "b", '"a/b"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (ValueError("no"), '"ValueError: no"'),
        (Loud(), '"LOUD"'),
        ({"a": Loud()}, '{"a":"LOUD"}'),
        ("\ud800", '"\ufffd"'),
        (range(3), "[0,1,2]"),
        ((n for n in [1, 2]), "[1,2]"),
    ],
)
def test_to_json(value: object, text: str) -> None:
    assert to_json(value) == text
    json.loads(text)


def test_to_json_never_raises() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    for value in (circle, deep, {"a": circle}, OddError(), type("Bad", (), {"__str__": 5})()):
        json.loads(to_json(value))


# Toolboxes.


def test_toolboxes() -> None:
    def other() -> None: ...

    box = Toolbox([search, other])
    assert box.get("search") is search
    assert box.get("other").name == "other"
    with pytest.raises(ToolError) as caught:
        Toolbox(search)
    assert str(caught.value) == (
        "tools must be a list of functions or an OpenAPI document: got Tool"
    )


def test_simple_tools_import_neither_pydantic_nor_griffe() -> None:
    code = """
import sys
from callslip.tools import Context, tool
@tool
def f(a: str, b: int | None = None, *, context: Context) -> list[str]:
    "Do it."
f.spec()
assert f.call({"a": "x"}, Context(run_id="r", ticket_id="T1", tool="f")) == ("ok", "null")
heavy = {"pydantic", "pydantic_core", "griffe", "asyncio", "logging"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
