"""How calls of tools end: values, signals, failures, timeouts."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from callslip import Agent, Context, Fail, Retry, ScriptedModel, Tool, tool
from callslip._base.failure import describe_failure
from callslip._core import Outcome
from callslip.tools._toolbox import as_tool
from scripted import act, finish
from tool_calls import CONTEXT, call, called, kind_and_text


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

    @tool(timeout=math.inf)
    def boundless() -> int:
        return 1

    late = "TimeoutError: no result within 0.05 seconds."
    assert call(slow) == ("error", f"Error calling tool 'slow': {late}")
    assert call(aslow) == ("error", f"Error calling tool 'aslow': {late}")
    assert call(own) == ("error", "Error calling tool 'own': TimeoutError: the tool's own.")
    assert call(fine) == call(boundless) == ("ok", "1")


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

    @tool(timeout=0.5)
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
    kind, text = kind_and_text(slow.call({}, context))
    assert kind == "error"
    assert text.endswith("TimeoutError: no result within 0.5 seconds.")
    assert stopped.wait(60)
    assert seen == [False, True]
    state = State()
    outcome = own.call({}, Context(run_id="r", ticket_id="T1", tool="own", _call=state))
    assert isinstance(outcome, Outcome.Error)
    assert not state.cancelled


@pytest.mark.parametrize("told", ["context", "nothing"])
def test_a_generator_ends_when_its_time_is_over(told: str) -> None:
    closed = threading.Event()

    @tool(timeout=0.05)
    def endless() -> Iterator[int]:
        try:
            while True:
                time.sleep(0.001)
                yield 1
        finally:
            closed.set()

    @tool(timeout=0.05)
    async def aendless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    late = "TimeoutError: no result within 0.05 seconds."
    for one in (endless, aendless):
        closed.clear()
        if told == "context":
            assert call(one) == ("error", f"Error calling tool '{one.name}': {late}")
        else:
            assert called(one).startswith(f"Error calling tool '{one.name}': {late}")
        assert closed.wait(60)


def test_a_generator_ends_when_its_run_is_cancelled() -> None:
    began, closed = threading.Event(), threading.Event()

    @tool
    def endless() -> Iterator[int]:
        try:
            while True:
                began.set()
                time.sleep(0.001)
                yield 1
        finally:
            closed.set()

    async def main() -> None:
        agent = Agent(ScriptedModel([act("endless"), finish()]), protocol="react", tools=[endless])
        run = asyncio.create_task(agent.run("go"))
        await asyncio.to_thread(began.wait, 5)
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(main())
    assert closed.wait(60)


def test_a_bound_on_the_calls_at_once_is_one_for_all_copies() -> None:
    class Shop:
        @tool(concurrency=2, needs_approval=True)
        def buy(self, item: str) -> None: ...

    first, second = Shop().buy, Shop().buy
    assert first.gate is not None
    assert first.gate.limit == 2
    assert first.gate is second.gate is Shop.buy.gate
    assert first.needs_approval
    assert json.loads(first._spec())["needs_approval"] is True
    assert as_tool(first) is first
    assert outcome.gate is None
    assert not outcome.needs_approval


# What is told of failures.


def failed(error: BaseException) -> str:
    """Return what the model is told of an exception, without what is said of each."""

    @tool
    def f() -> None:
        raise error

    kind, text = call(f)
    assert kind == "error"
    assert "\n" not in text
    return text.removeprefix("Error calling tool 'f': ").removesuffix(".")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        # Directories of this machine, and no routes.
        (
            FileNotFoundError(2, "No such file or directory", str(Path.home() / "a" / "b.csv")),
            "FileNotFoundError: [Errno 2] No such file or directory: '…/b.csv'",
        ),
        (ValueError(f"in {Path.home()}/a/b.py, line 5"), "ValueError: in …/b.py, line 5"),
        (ValueError(f"see file://{Path.home()}/a.txt"), "ValueError: see …/a.txt"),
        (ValueError(r"open 'C:\\Users\\me\\a.txt'"), r"ValueError: open '…\a.txt'"),
        (
            ValueError("404 for /no-such-root/pets/5 and https://a.b/usr/c"),
            "ValueError: 404 for /no-such-root/pets/5 and https://a.b/usr/c",
        ),
        # Addresses.
        (ValueError("<f at 0x7f00deadbeef> failed"), "ValueError: <f> failed"),
        # Credentials.
        (
            ValueError("GET https://me:pw@a.b/c?key=k1&page=2&access_token=t2 failed"),
            "ValueError: GET https://…@a.b/c?key=…&page=2&access_token=… failed",
        ),
        (
            ValueError("{'api_key': 'k', 'page': 2, \"password\": \"p p\"}"),
            "ValueError: {'api_key': …, 'page': 2, \"password\": …}",
        ),
        (ValueError("Authorization: Bearer abc.def-123"), "ValueError: Authorization: Bearer …"),
        (ValueError("Cookie: session=1; X-API-Key: k"), "ValueError: Cookie: … X-API-Key: …"),
        (ValueError("no sk-abcdefghijklmnop1234 here"), "ValueError: no … here"),
        (
            ValueError("Authorization: Bearer abcdefghijklmnopqrs"),
            "ValueError: Authorization: Bearer …",
        ),
        (ValueError("no AIzaSyABCDEFGHIJKLMNOPQRSTUVWXYZ here"), "ValueError: no … here"),
        (ValueError("secret: 'my own', page: 'a b'"), "ValueError: secret: …, page: 'a b'"),
        (ValueError("pwd='x y z' user='me'"), "ValueError: pwd=… user='me'"),
        (
            ValueError("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b"),
            "ValueError: a … b",
        ),
        (ValueError("a -----BEGIN PRIVATE KEY-----\nMII"), "ValueError: a …"),
        (ValueError("can't read ~/x/.ssh/id_rsa"), "ValueError: can't read …/id_rsa"),
        # What only looks alike.
        (
            ValueError("unexpected token: ')'; max_tokens=4096; Basic authentication is required"),
            "ValueError: unexpected token: ')'; max_tokens=4096; Basic authentication is required",
        ),
        (
            ValueError("unexpected token: 'return' ~5/6"),
            "ValueError: unexpected token: 'return' ~5/6",
        ),
        # Half a surrogate pair, as a file's name may have.
        (OSError("\udcff.txt"), "OSError: \ufffd.txt"),
        (type("Two\nLines", (Exception,), {})("x"), "Two Lines: x"),
        # Groups.
        (ExceptionGroup("g", [ExceptionGroup("h", [ValueError("a")])]), "ValueError: a"),
        (
            ExceptionGroup("g", [ValueError("a\nb"), KeyError("c"), OddError(), OSError()]),
            "ExceptionGroup: g; ValueError: a b; KeyError: 'c'; OddError; 1 more",
        ),
        (ExceptionGroup("g", [Fail("no such city")]), "no such city"),
        (StopIteration(5), "StopIteration: 5"),
        # A Fail is in the tool's own words.
        (Fail("put it into /tmp/a.txt"), "put it into /tmp/a.txt"),
        (Fail(), "it failed"),
    ],
)
def test_a_failure_is_told_in_one_line_without_what_is_private(
    error: BaseException, told: str
) -> None:
    assert failed(error) == told


def test_what_a_validator_says_is_told_without_what_is_private() -> None:
    def check(text: str) -> str:
        raise ValueError(f"{text} can't log in with password=canary")

    @tool
    def f(login: Annotated[str, AfterValidator(check)]) -> None: ...

    kind, text = call(f, login="me")
    assert kind == "error"
    assert "password=…" in text
    assert "canary" not in text


def test_the_log_has_what_the_model_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert failed(ValueError("password=canary")) == "ValueError: password=…"
    assert "ValueError: password=canary" in caplog.text
    assert __file__ in caplog.text


class OddRetry(Retry):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("signal", "told"),
    [
        (Retry("two\nlines in /tmp/a"), "two\nlines in /tmp/a"),
        (ExceptionGroup("of a task group", [Retry("again")]), "again"),
        (Retry("\udcff"), "\ufffd"),
        (Retry(), "call 'f' again"),
        (OddRetry(), "call 'f' again"),
    ],
)
def test_a_retry_is_told_in_its_own_words(signal: Exception, told: str) -> None:
    @tool
    def f() -> None:
        raise signal

    @tool(name="f")
    async def g() -> None:
        raise signal from KeyError()

    for one in (f, g):
        assert call(one) == ("retry", told)
        # Later lines of an observation are indented.
        assert called(one) == told.replace("\n", "\n  ")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("timeout", [None, 5])
def test_what_ends_a_program_ends_the_run(
    error: type[BaseException], timeout: float | None
) -> None:
    @tool(timeout=timeout)
    def f() -> None:
        raise error

    @tool(timeout=timeout)
    async def g() -> None:
        raise error

    def agent(one: Tool[..., Any]) -> Agent:
        return Agent(ScriptedModel([act(one.name), finish()]), protocol="react", tools=[one])

    for one in (f, g):
        with pytest.raises(error):
            agent(one).run_sync("go")
        with pytest.raises(error):
            asyncio.run(agent(one).run("go"))


def test_no_message_takes_long_to_look_through() -> None:
    def took(text: str) -> float:
        error = ValueError(text * 10_000)
        begun = time.perf_counter()
        assert len(describe_failure(error)) < 520
        return time.perf_counter() - begun

    plain = max(took("word ") for _ in range(3))
    for text in ("a-", "'a-", "sk-", "/a", "C:\\\\a", "://", "token "):
        # Where a pattern looks back and forth it is a thousand times.
        assert took(text) < 200 * plain


def test_outcomes_are_values():
    assert repr(Outcome.Ok("1")) == "Outcome.Ok(json='1')"
    assert repr(Outcome.Error("no", transient=True)) == (
        "Outcome.Error(message='no', transient=True)"
    )
    assert Outcome.Retry("no") == Outcome.Retry("no") != Outcome.InDoubt("no")
    assert Outcome.Error("no") != Outcome.Error("no", transient=True)
    assert len({Outcome.Ok("1"), Outcome.Ok("1")}) == 1
