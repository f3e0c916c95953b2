"""Failed calls that the runtime makes again, within one ticket."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
from email.utils import formatdate

import httpx
import pytest

from callslip import (
    Agent,
    Context,
    Fail,
    Limits,
    OpenAPI,
    Retry,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip._runtime import tool_attempts
from callslip._runtime.session import RunSession
from flaky_server import flaky_server
from scripted import act, block, call, finish, give, turn_of, wait

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/x": {
            "get": {"operationId": "look"},
            "post": {"operationId": "buy"},
            "put": {"operationId": "put"},
        },
        "/marked": {"post": {"operationId": "marked", "x-callslip": {"effect": "idempotent"}}},
    },
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No waiting between attempts, unless a server asks for it."""
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.0)


@pytest.fixture
def server():
    with flaky_server() as made:
        yield made


def run_sync(agent):
    return agent.run_sync("go")


def run_async(agent):
    return asyncio.run(agent.run("go"))


drivers = pytest.mark.parametrize("run", [run_sync, run_async])
kinds_of_tools = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def made(function, *, is_async, **options):
    """A sync or async tool that calls a function."""
    if not is_async:
        return tool(name="work", description="Work.", **options)(function)

    @tool(name="work", description="Work.", **options)
    async def work() -> str:
        await asyncio.sleep(0)
        return function()

    return work


def failing(*errors):
    """A function that raises these, then returns, and the calls that it received."""
    calls = []

    def work() -> str:
        calls.append(1)
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return "worked"

    return work, calls


def attempts(result):
    return [event for event in result.run.log if event.kind == "tool_attempt_failed"]


def seen(result):
    """All that the model was shown."""
    return "\n".join(message["content"] for message in result.messages)


REACT = [act("work"), finish()]


@drivers
@kinds_of_tools
def test_a_failure_that_passes_is_not_shown_to_the_model(run, is_async):
    work, calls = failing(ConnectionError("refused"), TimeoutError("no answer"))
    one = made(work, is_async=is_async, readonly=True)
    result = run(Agent(ScriptedModel(REACT), tools=[one]))
    (ticket,) = result.tickets
    assert (ticket.outcome, ticket.result, ticket.attempts, len(calls)) == ("ok", "worked", 3, 3)
    assert "refused" not in seen(result)
    assert "no answer" not in seen(result)
    assert [(one.ticket_id, one.attempt, one.error, one.wait) for one in attempts(result)] == [
        ("T1", 1, "Error calling tool 'work': ConnectionError: refused.", 0.0),
        ("T1", 2, "Error calling tool 'work': TimeoutError: no answer.", 0.0),
    ]
    assert replay(result.run).export() == result.run.export()


@drivers
@kinds_of_tools
def test_only_the_last_failure_is_shown_with_the_number_of_attempts(run, is_async):
    errors = [ConnectionError("first"), ConnectionError("second"), ConnectionError("third")]
    work, calls = failing(*errors)
    one = made(work, is_async=is_async, effect="idempotent")
    result = run(Agent(ScriptedModel(REACT), tools=[one]))
    (ticket,) = result.tickets
    assert len(calls) == 3
    assert (ticket.attempts, ticket.error) == (
        3,
        "Error calling tool 'work': ConnectionError: third. The call was tried 3 times.",
    )
    assert [(one.attempt, one.wait) for one in attempts(result)] == [
        (1, 0.0),
        (2, 0.0),
        (3, None),
    ]
    assert "first" not in seen(result)
    assert result.messages[-2]["content"] == f"Observation: {ticket.error}"
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize(
    ("options", "made_calls"),
    [
        ({}, 1),
        ({"repeatable": True}, 1),
        ({"effect": "idempotent"}, 3),
        ({"effect": "pure"}, 3),
        ({"readonly": True}, 3),
        ({"readonly": True, "retries": 0}, 1),
        ({"retries": 1}, 2),
        ({"retries": 5}, 6),
    ],
    ids=str,
)
def test_how_often_a_call_is_tried(options, made_calls):
    work, calls = failing(*[ConnectionError("no")] * 9)
    result = run_sync(Agent(ScriptedModel(REACT), tools=[made(work, is_async=False, **options)]))
    assert (len(calls), result.tickets[0].attempts) == (made_calls, made_calls)
    assert len(attempts(result)) == (made_calls if made_calls > 1 else 0)
    assert ("tried" in result.tickets[0].error) is (made_calls > 1)


class BusyError(Exception):
    is_transient = True


@pytest.mark.parametrize(
    "error",
    [
        TypeError("t"),
        ValueError("v"),
        UsageError("u"),
        Retry("say more"),
        Fail("no"),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
@drivers
def test_other_failures_are_not_repeated(run, error):
    work, calls = failing(error)
    one = made(work, is_async=True, readonly=True)
    result = run(Agent(ScriptedModel(REACT), tools=[one]))
    assert (len(calls), result.tickets[0].attempts, attempts(result)) == (1, 1, [])
    assert "tried" not in result.tickets[0].error


@pytest.mark.parametrize(
    ("retry_on", "errors", "made_calls"),
    [
        (KeyError, [KeyError("a"), ConnectionError("b")], 2),
        ((KeyError, ValueError), [KeyError("a"), ValueError("b")], 3),
        (ConnectionError, [ExceptionGroup("g", [ConnectionResetError("a")])], 2),
        (lambda error: "again" in str(error), [ValueError("again"), ValueError("enough")], 2),
        (lambda error: error.no_such_field, [ValueError("a")], 1),
        (Exception, [Retry("say more")], 1),
        (Fail, [Fail("no")], 2),
        (None, [BusyError(), BusyError()], 3),
    ],
)
def test_retry_on_says_which_failures_are_repeated(retry_on, errors, made_calls):
    work, calls = failing(*errors)
    one = made(work, is_async=False, retries=2, retry_on=retry_on)
    run_sync(Agent(ScriptedModel(REACT), tools=[one]))
    assert len(calls) == made_calls


def test_arguments_and_results_without_a_form_are_not_repeated():
    calls = []

    @tool(retries=3, retry_on=Exception)
    def work() -> object:
        """Work."""
        calls.append(1)
        return object()

    result = run_sync(Agent(ScriptedModel(REACT), tools=[work]))
    assert (result.tickets[0].outcome, len(calls)) == ("error", 1)


@drivers
def test_the_message_of_retry_is_exact_also_after_a_failed_attempt(run):
    work, calls = failing(ConnectionError("no"), Retry("say more"))
    result = run(Agent(ScriptedModel(REACT), tools=[made(work, is_async=True, readonly=True)]))
    assert (result.tickets[0].error, len(calls)) == ("say more", 2)
    assert [one.attempt for one in attempts(result)] == [1]
    assert result.tickets[0].attempts == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": -1}, "expected retries to be a whole number from 0: got -1"),
        ({"retries": True}, "expected retries to be a whole number from 0: got True"),
        ({"retries": 1.5}, "expected retries to be a whole number from 0: got 1.5"),
        ({"retries": 1, "retry_on": "x"}, "expected retry_on to be an exception type"),
        ({"retries": 1, "retry_on": ()}, "expected retry_on to be an exception type"),
        ({"retries": 1, "retry_on": int}, "expected retry_on to be an exception type"),
        ({"retries": 1, "retry_on": (KeyError, 3)}, "expected retry_on to be an exception type"),
        ({"retry_on": KeyError}, "retry_on has no effect on a tool whose calls are not repeated"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        tool(**options)(print)


class Class:
    calls = 0

    @tool(readonly=True, retry_on=KeyError)
    def work(self) -> str:
        """Work."""
        self.calls += 1
        if self.calls == 1:
            raise KeyError("a")
        return "worked"


def test_methods_keep_their_options():
    one = Class()
    result = run_sync(Agent(ScriptedModel(REACT), tools=[one.work]))
    assert (result.tickets[0].outcome, one.calls) == ("ok", 2)


FAILURES = {
    "429": (429, {"Retry-After": "0"}),
    "429 with a date": (429, {"Retry-After": formatdate(0, usegmt=True)}),
    "503": 503,
    "reset": "reset",
    "slow": "slow",
}


def patience(failure):
    """Seconds for an attempt: few where they pass, since others take long on a busy machine."""
    return 3 if failure == "slow" else 60


@drivers
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_operation_is_called_again(run, failure, server):
    server.script[:] = [failure, 502]
    api = OpenAPI(DOCUMENT, server=server.base, timeout=patience(failure))
    result = run(Agent(ScriptedModel([act("GET /x"), finish()]), tools=api))
    (ticket,) = result.tickets
    assert (ticket.outcome, ticket.attempts, ticket.result) == ("ok", 3, "ok")
    assert server.requests == ["GET /x"] * 3
    assert result.messages[-2]["content"] == "Observation: ok"
    assert [one.attempt for one in attempts(result)] == [1, 2]
    assert "HTTP 502 Bad Gateway" in attempts(result)[1].error
    assert replay(result.run).export() == result.run.export()


@drivers
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_function_is_called_again(run, failure, server):
    server.script[:] = [failure, 503]

    @tool(readonly=True)
    def fetch() -> str:
        """Fetch."""
        url, timeout = f"{server.base}/x", patience(failure)
        return httpx.get(url, timeout=timeout).raise_for_status().json()

    result = run(Agent(ScriptedModel([act("fetch"), finish()]), tools=[fetch]))
    assert (result.tickets[0].outcome, result.tickets[0].attempts) == ("ok", 3)
    assert result.messages[-2]["content"] == "Observation: ok"


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_an_operation_that_may_not_be_repeated_is_called_once(failure, server):
    server.script[:] = [failure]
    api = OpenAPI(DOCUMENT, server=server.base, timeout=patience(failure))
    result = run_sync(Agent(ScriptedModel([act("POST /x"), finish()]), tools=api))
    assert server.requests == ["POST /x"]
    assert (result.tickets[0].outcome, result.tickets[0].attempts) == ("error", 1)
    assert attempts(result) == []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PUT /x", {}),
        ("POST /marked", {}),
        ("POST /x", {"repeatable": True}),
        ("POST /x", {"repeatable": ["buy"]}),
        ("POST /x", {"repeatable": ["POST /x"]}),
    ],
    ids=str,
)
def test_operations_that_are_marked_are_repeated(name, options, server):
    server.script[:] = [503]
    api = OpenAPI(DOCUMENT, server=server.base, **options)
    result = run_sync(Agent(ScriptedModel([act(name), finish()]), tools=api))
    assert (result.tickets[0].outcome, result.tickets[0].attempts) == ("ok", 2)
    assert api.tools[name].retries == 2


def test_a_repeatable_operation_is_made_again_after_a_crash(server):
    api = OpenAPI(DOCUMENT, server=server.base, repeatable=["buy"])
    model = ScriptedModel([act("POST /x"), finish()])
    run = run_sync(Agent(model, tools=api)).run
    store = TicketStore()
    store.import_run(until(run, "ticket_opened"))
    result = Agent(ScriptedModel([finish()]), tools=api, store=store).resume_sync(run.id)
    assert (result.tickets[0].outcome, server.requests) == ("ok", ["POST /x"] * 2)


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2), (3, 4)])
def test_operations_have_as_many_attempts_as_the_program_says(retries, requests, server):
    server.script[:] = [503] * 9
    api = OpenAPI(DOCUMENT, server=server.base, retries=retries)
    result = run_sync(Agent(ScriptedModel([act("GET /x"), finish()]), tools=api))
    assert (len(server.requests), result.tickets[0].attempts) == (requests, requests)
    with pytest.raises(UsageError, match="expected retries to be a whole number from 0: got -1"):
        OpenAPI(DOCUMENT, server=server.base, retries=-1)


def test_handlers_are_repeated_as_their_operations_or_as_they_say():
    work, calls = failing(*[ConnectionError("no")] * 9)
    own = tool(name="own", description="Own.", retries=1)(work)
    api = OpenAPI(DOCUMENT, handlers={"look": work, "buy": work, "put": own})
    model = ScriptedModel([act("GET /x"), act("POST /x"), act("PUT /x"), finish()])
    result = run_sync(Agent(model, tools=api))
    assert [one.attempts for one in result.tickets] == [3, 1, 2]
    assert len(calls) == 6


@drivers
@pytest.mark.parametrize("header", ["61", "3600", formatdate(4e9, usegmt=True)])
def test_a_server_that_asks_for_too_long_a_wait_is_not_asked_again(run, header, server):
    server.script[:] = [(429, {"Retry-After": header})]
    api = OpenAPI(DOCUMENT, server=server.base)
    result = run(Agent(ScriptedModel([act("GET /x"), finish()]), tools=api))
    assert (len(server.requests), attempts(result)) == (1, [])
    assert f"retry after {header}" in result.tickets[0].error


@drivers
def test_a_wait_that_is_longer_than_the_run_may_take_is_not_begun(run, server):
    server.script[:] = [(429, {"Retry-After": "50"})]
    api = OpenAPI(DOCUMENT, server=server.base)
    model = ScriptedModel([act("GET /x"), finish()])
    result = run(Agent(model, tools=api, limits=Limits(seconds=40)))
    assert (len(server.requests), result.stop_reason) == (1, "finished")


def test_an_exception_with_a_response_says_how_long_to_wait(server):
    waits = []
    server.script[:] = [(503, {"Retry-After": "0.01"}), (503, {"retry-after-ms": "2"})]

    @tool(readonly=True)
    async def fetch() -> str:
        """Fetch."""
        async with httpx.AsyncClient() as client:
            return (await client.get(server.base)).raise_for_status().json()

    result = run_sync(Agent(ScriptedModel([act("fetch"), finish()]), tools=[fetch]))
    waits = [one.wait for one in attempts(result)]
    assert waits == [0.01, 0.002]


def test_waits_grow_and_differ(monkeypatch):
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.002)
    work, _ = failing(*[ConnectionError("no")] * 4)
    one = made(work, is_async=False, retries=4)
    result = run_sync(Agent(ScriptedModel(REACT), tools=[one]))
    waits = [one.wait for one in attempts(result)]
    assert all(0.001 * 2**number <= wait <= 0.002 * 2**number for number, wait in enumerate(waits))


class Waiting:
    """A tool that fails once and waits for an hour after that, as far as it is let."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(tool_attempts, "_LONGEST", 7_200.0)
        self.calls = 0

        class LaterError(ConnectionError):
            headers = {"Retry-After": "3600"}  # noqa: RUF012

        @tool(name="work", readonly=True)
        def work() -> str:
            """Work."""
            self.calls += 1
            raise LaterError("no")

        @tool(name="beside")
        def beside(n: int) -> int:
            """Do something else."""
            return n

        self.tools = [work, beside]


BOTH = [block(("a", "work", {}), ("b", "beside", {"n": 1})), "Done."]


@pytest.mark.parametrize(
    ("protocol", "replies"),
    [("react", REACT), ("chatty", BOTH)],
    ids=["alone", "beside another"],
)
@pytest.mark.parametrize("how", ["sync", "async", "task"])
def test_a_cancelled_run_does_not_wait(monkeypatch, protocol, replies, how):
    waiting = Waiting(monkeypatch)
    store = TicketStore()
    agent = Agent(ScriptedModel(replies), protocol=protocol, tools=waiting.tools, store=store)

    async def work():
        async with agent.stream("go") as run:
            async for event in run:
                if getattr(event, "kind", "") == "tool_attempt_failed":
                    run.run.cancel()

    async def task():
        working = asyncio.create_task(agent.run("go"))
        while not any(one.attempts > 1 for one in store.tickets()):
            await asyncio.sleep(0.001)
        working.cancel()
        await working

    if how == "sync":
        watcher = threading.Thread(target=cancel_from_elsewhere, args=(store,))
        watcher.start()
        with pytest.raises(RunCancelled):
            agent.run_sync("go")
        watcher.join()
    else:
        with contextlib.suppress(RunCancelled, asyncio.CancelledError):
            asyncio.run(work() if how == "async" else task())
    (run_id,) = [one.run_id for one in store.runs()]
    run = store.run(run_id)
    ticket = next(one for one in run.tickets if one.tool == "work")
    assert (ticket.outcome, ticket.attempts, waiting.calls) == ("cancelled", 2, 1)
    assert replay(run).export() == run.export()


def cancel_from_elsewhere(store):
    while not any(one.attempts > 1 for one in store.tickets()):
        time.sleep(0.001)
    (row,) = store.runs()
    store.run(row.run_id).cancel()


@drivers
def test_the_end_of_the_runs_time_ends_the_wait(monkeypatch, run):
    waiting = Waiting(monkeypatch)
    real = RunSession.remaining

    def remaining(session):
        # There seems to be time for the wait when it begins.
        asks_before = sys._getframe(1).f_code.co_name == "_record_failure"
        return None if asks_before else real(session)

    monkeypatch.setattr(RunSession, "remaining", remaining)
    model = ScriptedModel([act("work"), finish()])
    agent = Agent(model, tools=waiting.tools, limits=Limits(seconds=0.2))
    result = run(agent)
    assert result.stop_reason == "limit"
    assert (result.tickets[0].outcome, waiting.calls) == ("cancelled", 1)


@drivers
def test_no_slot_is_held_during_a_wait(monkeypatch, run):
    order = []
    monkeypatch.setattr(tool_attempts, "_FIRST", 0.02)

    @tool(readonly=True, concurrency=1)
    def work(n: int) -> int:
        """Work."""
        order.append(n)
        if order.count(n) == 1 and n == 1:
            raise ConnectionError("no")
        return n

    calls = block(("a", "work", {"n": 1}), ("b", "work", {"n": 2}))
    result = run(Agent(ScriptedModel([calls, "Done."]), protocol="chatty", tools=[work]))
    assert [(one.result, one.attempts) for one in result.tickets] == [(1, 2), (2, 1)]
    assert sorted(order) == [1, 1, 2]
    assert order[-1] == 1


@drivers
def test_calls_beside_one_another_have_attempts_of_their_own(run):
    calls = {1: 0, 2: 0, 3: 0}

    @tool(readonly=True)
    async def work(n: int) -> int:
        """Work."""
        calls[n] += 1
        if calls[n] < n:
            raise ConnectionError("no")
        return n

    reply = block(*((f"c{n}", "work", {"n": n}) for n in calls))
    result = run(Agent(ScriptedModel([reply, "Done."]), protocol="chatty", tools=[work]))
    assert [(one.result, one.attempts) for one in result.tickets] == [(1, 1), (2, 2), (3, 3)]
    assert replay(result.run).export() == result.run.export()


@drivers
def test_background_calls_are_tried_again_too(run):
    work, calls = failing(ConnectionError("no"), ConnectionError("no"))
    one = made(work, is_async=False, readonly=True)
    replies = [call("/work"), wait("T1"), give("done")]
    result = run(Agent(ScriptedModel(replies), protocol="ticket", tools=[one]))
    assert (result.tickets[0].outcome, len(calls)) == ("ok", 3)
    assert replay(result.run).export() == result.run.export()


@drivers
def test_each_attempt_has_a_state_of_its_own(run):
    """The attempt that timed out is over; the one after it is not."""
    stopped, release = [], threading.Event()

    @tool(retries=1, timeout=1)
    def work(context: Context) -> list[int]:
        """Work."""
        if not stopped:
            stopped.append(context)
            release.wait(10)
            return []
        return [int(context.cancelled), int(stopped[0].cancelled)]

    try:
        result = run(Agent(ScriptedModel(REACT), tools=[work]))
    finally:
        release.set()
    assert (result.tickets[0].result, result.tickets[0].attempts) == ([0, 1], 2)


def until(run, kind, nth=1):
    """The log up to the nth event of a kind, as a process leaves it that ends there."""
    lines = run.export().splitlines(keepends=True)
    ends = [number for number, event in enumerate(run.log) if event.kind == kind]
    return "".join(lines[: ends[nth - 1] + 1])


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_crash_between_attempts_gives_the_call_no_further_ones(nth):
    work, calls = failing(*[ConnectionError("no")] * 20)
    one = made(work, is_async=False, effect="idempotent")
    whole = run_sync(Agent(ScriptedModel(REACT), tools=[one]))
    assert len(calls) == 3
    store = TicketStore()
    store.import_run(until(whole.run, "tool_attempt_failed", nth))
    del calls[nth:]
    agent = Agent(ScriptedModel([finish()]), tools=[one], store=store)
    result = agent.resume_sync(whole.run.id)
    (ticket,) = result.tickets
    assert len(calls) == 3
    assert (ticket.attempts, ticket.error) == (3, whole.tickets[0].error)
    assert [one.attempt for one in attempts(result)] == [1, 2, 3]
    assert replay(result.run).export() == result.run.export()


def test_a_crash_between_attempts_leaves_a_once_call_in_doubt():
    work, calls = failing(*[ConnectionError("no")] * 20)
    one = made(work, is_async=False, retries=4)
    whole = run_sync(Agent(ScriptedModel(REACT), tools=[one]))
    store = TicketStore()
    store.import_run(until(whole.run, "tool_attempt_failed", 2))
    del calls[:]
    agent = Agent(ScriptedModel([finish()]), tools=[one], store=store)
    result = agent.resume_sync(whole.run.id)
    assert (result.tickets[0].outcome, calls) == ("in_doubt", [])
    assert result.tickets[0].attempts == 3


KILLED = """
import sys
sys.path[:] = {path!r}
import os, signal
from callslip import Agent, ScriptedModel, TicketStore, tool

@tool(effect="idempotent", name="work")
def work() -> str:
    if os.path.exists({mark!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    open({mark!r}, "w").close()
    raise ConnectionError("no")

Agent(ScriptedModel({replies!r}), tools=[work], store={file!r}).run_sync("go")
"""


def test_a_process_that_is_killed_between_attempts_leaves_those_that_are_left(tmp_path):
    """It has failed once, waits for the second attempt, and ends at its beginning."""
    file = str(tmp_path / "runs.sqlite")
    program = KILLED.format(path=sys.path, mark=str(tmp_path / "mark"), replies=REACT, file=file)
    ended = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL
    work, calls = failing(ConnectionError("no"))
    one = made(work, is_async=False, effect="idempotent")
    with TicketStore(file) as store:
        run_id = store.runs()[0].run_id
        (ticket,) = store.tickets()
        assert (ticket.status, ticket.attempts) == ("IN_PROGRESS", 2)
        agent = Agent(ScriptedModel([finish()]), tools=[one], store=store)
        result = agent.resume_sync(run_id)
    assert (result.tickets[0].outcome, result.tickets[0].attempts, len(calls)) == ("ok", 3, 2)
    assert [failed.attempt for failed in attempts(result)] == [1, 2]


def test_each_failure_is_in_the_file_before_the_next_attempt(tmp_path):
    store = TicketStore(tmp_path / "runs.sqlite")
    found = []

    @tool(readonly=True)
    def work() -> str:
        """Work."""
        rows = store.query("SELECT data FROM events WHERE kind = 'tool_attempt_failed'")
        found.append(len(rows))
        if len(found) < 3:
            raise ConnectionError("no")
        return "worked"

    for run in (run_sync, run_async):
        found.clear()
        result = run(Agent(ScriptedModel(REACT), tools=[work], store=store))
        assert found == [found[0], found[0] + 1, found[0] + 2]
    rows = store.query("SELECT attempts FROM tickets WHERE run_id = ?", [result.run.id])
    assert [row["attempts"] for row in rows] == [3]
    store.compact(result.run.id)
    assert [one.attempts for one in store.tickets()] == [3, 3]
    assert [one.attempts for one in store.run(result.run.id).tickets] == [3]
    store.close()


@drivers
def test_a_call_that_started_early_is_tried_again_while_its_reply_arrives(run):
    work, calls = failing(ConnectionError("no"), ConnectionError("no"))
    rest = threading.Event()

    # The sync driver reads the reply in its own thread, and the calls wait for that.
    early = 1 if run is run_sync else 3

    def looked() -> str:
        if len(calls) + 1 == early:
            rest.set()
        return work()

    one = made(looked, is_async=False, readonly=True)
    reply = block(("a", "work", {}), ("b", "beside", {"n": 1}))
    first = reply.index("beside") - 20

    async def model(messages):
        if turn_of(messages):
            yield "Done."
            return
        yield reply[:first]
        while not rest.is_set():
            await asyncio.sleep(0.001)
        yield reply[first:]

    @tool
    def beside(n: int) -> int:
        """Do something else."""
        return n

    result = run(Agent(model, protocol="chatty", tools=[one, beside]))
    kinds = [event.kind for event in result.run.log]
    assert [one.outcome for one in result.tickets] == ["ok", "ok"]
    assert (len(calls), result.tickets[0].attempts) == (3, 3)
    is_before = kinds.index("tool_attempt_failed") < kinds.index("model_replied")
    assert is_before is (run is run_async)
    assert replay(result.run).export() == result.run.export()
