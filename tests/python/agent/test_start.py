"""Runs in tasks of their own, kept runs that are streamed, streams of synchronous code."""

import asyncio
import logging
import pickle
import threading

import pytest

from callslip import (
    Agent,
    Delta,
    Event,
    FunctionModel,
    LimitExceeded,
    Limits,
    ModelError,
    ModelReply,
    RunCancelled,
    ScriptedModel,
    StoreError,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from reading import read_to_end
from scripted import act, call, delegate, finish, give, task_of, turn_of, wait

USAGE = {"input_tokens": 20, "output_tokens": 10, "cost": 0.25}


@tool
def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


def answers(messages):
    """A model that counts its answers."""
    return ModelReply(f"answer {turn_of(messages) + 1}", usage=USAGE)


def chat(**options):
    return Agent(FunctionModel(answers), protocol="chatty", **options)


class Held:
    """A model that answers once it may."""

    def __init__(self, answer="answer"):
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.answer = answer

    async def __call__(self, messages):
        self.is_asked.set()
        await self.may_answer.wait()
        return self.answer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture(params=["memory", "file"])
def store(request, path):
    if request.param == "memory":
        yield None
        return
    with TicketStore(path) as store:
        yield store


# Start.


def test_a_run_is_started_and_works_on_its_own(store):
    async def main():
        run = Agent(
            ScriptedModel([act("look", at="it"), finish("seen")]), tools=[look], store=store
        ).start("go")
        assert (run.status, run.finished) == ("running", False)
        while not run.finished:
            await asyncio.sleep(0.001)
        assert run.status == "finished"
        return run, await run, await run

    run, first, second = asyncio.run(main())
    assert first.value == second.value == "seen"
    assert first.run is run
    assert replay(run).export() == run.export()


def test_cancelling_a_task_that_waits_for_a_run_does_not_end_it():
    async def main():
        model = Held(finish())
        run = Agent(model).start("go")

        async def result():
            return await run

        waiting = asyncio.create_task(result())
        await model.is_asked.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        model.may_answer.set()
        return (await run).value

    assert asyncio.run(main()) == "done"


def test_the_failure_of_a_started_run_is_raised_where_it_is_awaited(caplog):
    def model(messages):
        raise ConnectionError("gone")

    async def main():
        run = Agent(model).start("go")
        for _ in range(2):
            with pytest.raises(ModelError, match="ConnectionError: gone"):
                await run
        return run

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(main()).stop_reason == "model_error"
    assert caplog.records == []


async def _result(run):
    return await run


async def _cancelled(run):
    waiting = asyncio.create_task(_result(run))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])


READERS = {
    "await": _result,
    "watch": lambda run: read_to_end(run.watch()),
    "nobody": lambda run: asyncio.sleep(0),
    "one who is cancelled": _cancelled,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_driver_that_fails_is_logged_if_it_is_raised_to_nobody(reader, path, caplog):
    async def main():
        with TicketStore(path) as store:
            model = Held(finish())
            run = Agent(model, store=store).start("go")
            await model.is_asked.wait()
        reading = asyncio.ensure_future(READERS[reader](run))
        await asyncio.sleep(0.01)
        model.may_answer.set()
        while run._driver is not None:
            await asyncio.sleep(0.01)
        if reader in ("await", "watch"):
            with pytest.raises(StoreError):
                await reading
        await asyncio.sleep(0)
        logged = [record.message for record in caplog.records]
        for _ in range(2):
            with pytest.raises(StoreError):
                await run
        with pytest.raises(StoreError):
            await read_to_end(run.watch())
        return run, logged

    with caplog.at_level(logging.ERROR):
        run, logged = asyncio.run(main())
    is_read = reader in ("await", "watch")
    assert logged == ([] if is_read else [f"run {run.id} was left before its end"])
    assert len(caplog.records) == len(logged)


@pytest.mark.parametrize("instructed", [False, True])
@pytest.mark.parametrize("thread", ["same", "other"])
def test_a_run_is_cancelled_right_after_its_start(instructed, thread, store):
    asked = []
    given = []

    async def instructions(context):
        given.append(context)
        await asyncio.sleep(0)
        return "Be brief."

    async def main():
        agent = Agent(
            lambda messages: asked.append(1) or finish(),
            store=store,
            instructions=instructions if instructed else None,
        )
        run = agent.start("go")
        if thread == "same":
            run.cancel()
        else:
            other = threading.Thread(target=run.cancel)
            other.start()
            other.join()
        with pytest.raises(RunCancelled):
            await run
        return run

    run = asyncio.run(main())
    assert asked == []
    assert run.stop_reason == "cancelled"


def test_a_message_right_after_the_start_is_read():
    async def main():
        model = ScriptedModel([finish("one"), finish("two")])
        run = Agent(model).start("go")
        return await run.send("and more"), model

    result, model = asyncio.run(main())
    assert "and more" in str(model.requests[-1].messages)
    assert result.value in {"one", "two"}


def test_instructions_of_a_function_hold_for_started_runs():
    async def main():
        agent = Agent(ScriptedModel([finish()]), instructions=lambda context: "Be brief.")
        return await agent.start("go")

    assert "Be brief." in asyncio.run(main()).messages[0]["content"]


def test_start_needs_a_running_loop():
    with pytest.raises(UsageError, match="expected a running event loop: got none; call run_sync"):
        chat().start("go")


def test_start_is_not_for_tools():
    agent = chat()

    @tool
    async def work() -> str:
        """Work."""
        return agent.start("go").id

    result = Agent(ScriptedModel([act("work"), finish()]), tools=[work]).run_sync("go")
    assert "call run instead" in result.tickets[0].error or "run" in result.tickets[0].error
    assert result.tickets[0].outcome == "error"


def test_a_kept_run_is_left_at_the_end_of_the_loop_and_resumed_later(path):
    async def first():
        store = TicketStore(path)
        model = Held()
        run = Agent(model, store=store).start("go")
        await model.is_asked.wait()
        return store, run

    store, run = asyncio.run(first())
    with store:
        assert store.run(run.id).status == "running"
        result = Agent(ScriptedModel([finish("later")]), store=store).resume_sync(run.id)
        assert result.value == "later"
        assert replay(result.run).export() == result.run.export()


def test_child_runs_of_a_kept_run_are_left_too(path):
    calls = []

    @tool(effect="idempotent")
    async def work() -> str:
        """Work."""
        calls.append(1)
        if len(calls) == 1:
            started.set()
            await asyncio.sleep(60)
        return "worked"

    def model(messages):
        if task_of(messages) == "inner":
            return [call("/work"), wait("T1"), give("inner done")][turn_of(messages)]
        return [delegate("inner"), wait("T1"), give("outer done")][turn_of(messages)]

    def agent(store):
        return Agent(model, protocol="ticket", tools=[work], store=store)

    async def first():
        store = TicketStore(path)
        run = agent(store).start("go")
        await started.wait()
        return store, run

    started = asyncio.Event()
    store, run = asyncio.run(first())
    with store:
        assert {one.status for one in store.runs()} == {"running"}
        result = agent(store).resume_sync(run.id)
        assert result.value == "outer done"
        assert {one.stop_reason for one in store.runs()} == {"finished"}


@pytest.mark.parametrize("way", ["end", "cancel", "time"])
def test_a_child_run_that_is_given_up_ends_also_where_the_run_is_kept(path, way):
    started = asyncio.Event()

    async def model(messages):
        if task_of(messages) == "inner":
            started.set()
            await asyncio.sleep(60)
        if turn_of(messages) == 0:
            return delegate("inner")
        await started.wait()
        if way != "end":
            await asyncio.sleep(60)
        return give("outer done")

    async def main():
        with TicketStore(path) as store:
            agent = Agent(model, protocol="ticket", on_open_tickets="cancel", store=store)
            limits = Limits(seconds=0.3) if way == "time" else None
            run = agent.start("go", limits=limits)
            await started.wait()
            if way == "time":
                with pytest.raises(LimitExceeded):
                    await run
                assert [child.finished for child in run.children] == [True]
            elif way == "cancel":
                run.cancel()
                with pytest.raises(RunCancelled):
                    await run
            else:
                await run
            return {one.parent_run is None: one.stop_reason for one in store.runs()}

    ends = asyncio.run(main())
    root = {"end": "finished", "cancel": "cancelled", "time": "limit"}[way]
    assert ends in ({True: root, False: "cancelled"}, {True: root, False: "limit"})


def test_a_run_without_a_store_is_cancelled_at_the_end_of_the_loop():
    async def main():
        model = Held()
        run = Agent(model).start("go")
        await model.is_asked.wait()
        return run

    run = asyncio.run(main())
    assert (run.status, run.stop_reason) == ("finished", "cancelled")


def test_a_task_that_never_began_leaves_a_kept_run(path):
    async def main():
        store = TicketStore(path)
        return store, chat(store=store).start("go")

    store, run = asyncio.run(main())
    with store:
        assert store.run(run.id).status == "running"
        assert chat(store=store).resume_sync(run.id).value == "answer 1"


# Kept runs.


@pytest.mark.parametrize("way", ["start", "stream"])
def test_the_next_turn_of_a_conversation(path, way):
    async def main():
        with TicketStore(path) as store:
            agent = chat(store=store)
            first = await agent.run("one")
            before = len(first.run.log)
            if way == "start":
                second = await agent.start(run=first.run.id, say="two")
            else:
                async with agent.stream(run=first.run.id, say="two") as stream:
                    items = [item async for item in stream]
                second = stream.result
                assert [item for item in items if isinstance(item, Event)] == second.run.log[
                    before:
                ]
                assert items[0].kind == "user_said"
                assert stream.run.id == first.run.id
            assert store.run(first.run.id).log == second.run.log
            return first, second

    first, second = asyncio.run(main())
    assert (first.value, second.value) == ("answer 1", "answer 2")
    assert "two" in str(second.messages)


@pytest.mark.parametrize("way", ["start", "stream"])
@pytest.mark.parametrize("say", [None, "and more"])
def test_an_unfinished_run_goes_on(path, way, say):
    async def left():
        store = TicketStore(path)
        model = Held()
        run = Agent(model, protocol="chatty", store=store).start("one")
        await model.is_asked.wait()
        return store, run.id

    async def later(store, run_id):
        model = ScriptedModel(["answer", "answer"])
        agent = Agent(model, protocol="chatty", store=store)
        if way == "start":
            result = await agent.start(run=run_id, say=say)
        else:
            async with agent.stream(run=run_id, say=say) as stream:
                async for _ in stream:
                    pass
            result = stream.result
        assert (say is None) or say in str(model.requests[-1].messages)
        assert result.value == "answer"
        return result.run

    store, run_id = asyncio.run(left())
    with store:
        run = asyncio.run(later(store, run_id))
        assert replay(run).export() == run.export()


@pytest.mark.parametrize("way", ["start", "stream"])
def test_a_failed_run_goes_on_with_a_message(path, way):
    replies = [ConnectionError("gone"), "answer"]

    def model(messages):
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def main():
        with TicketStore(path) as store:
            agent = Agent(model, protocol="chatty", store=store)
            with pytest.raises(ModelError) as caught:
                await agent.run("one")
            run_id = caught.value.run.id
            if way == "start":
                return await agent.start(run=run_id, say="again")
            async with agent.stream(run=run_id, say="again") as stream:
                async for _ in stream:
                    pass
            return stream.result

    assert asyncio.run(main()).value == "answer"


def test_a_message_to_a_run_in_progress_is_passed_on(path):
    async def main():
        with TicketStore(path) as store:
            model = Held("answer")
            agent = Agent(model, protocol="chatty", store=store)
            run = agent.start("one")
            await model.is_asked.wait()
            again = agent.start(run=run.id, say="two")
            assert again is run
            assert agent.start(run=run.id) is run
            model.may_answer.set()
            return await run

    result = asyncio.run(main())
    assert [event.text for event in result.run.log if event.kind == "user_said"] == ["two"]


def test_a_finished_run_is_not_run_again(path):
    async def main():
        with TicketStore(path) as store:
            agent = chat(store=store)
            first = await agent.run("one")
            started = await agent.start(run=first.run.id)
            async with agent.stream(run=first.run.id) as stream:
                items = [item async for item in stream]
            return first, started, stream.result, items

    first, started, streamed, items = asyncio.run(main())
    assert first.value == started.value == streamed.value
    assert items == []


def test_a_stream_of_a_run_that_another_one_works_on_passes_the_message_to_it(path):
    async def main():
        with TicketStore(path) as store:
            model = Held("answer")
            agent = Agent(model, protocol="chatty", store=store)
            run = agent.start("one")
            await model.is_asked.wait()
            async with agent.stream(run=run.id, say="two"):
                pass
            model.may_answer.set()
            result = await run
            return result, [event.text for event in run.log if event.kind == "user_said"]

    result, told = asyncio.run(main())
    assert (result.value, told) == ("answer", ["two"])


@pytest.mark.parametrize("way", ["start", "stream"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected a task, or run=… with the id of a run: got neither"),
        ({"task": "x", "run": "r"}, "expected a task or run=…: got both"),
        ({"task": "x", "say": "y"}, "expected say= with run=…: got a task"),
        ({"run": "r", "limits": Limits()}, "pass limits and messages to a task"),
        ({"run": "r", "messages": [{"role": "user", "content": "x"}]}, "pass limits and messages"),
        ({"run": "r", "say": " "}, "expected the message: got blank text"),
        ({"run": 7}, "expected the id of a run as text: got 7"),
        ({"run": "r", "say": 7}, "images and files: got int"),
        ({"task": 7}, "expected the task as text, or as a list of"),
        ({"task": 0}, "expected the task as text, or as a list of"),
    ],
)
def test_arguments_that_do_not_fit_together(path, way, arguments, message):
    async def main():
        with TicketStore(path) as store:
            getattr(chat(store=store), way)(**arguments)

    with pytest.raises(UsageError) as caught:
        asyncio.run(main())
    assert message in str(caught.value)


@pytest.mark.parametrize("way", ["start", "stream"])
def test_a_run_that_does_not_exist(path, way):
    async def main():
        with TicketStore(path) as store:
            if way == "start":
                chat(store=store).start(run="none", say="x")
            async with chat(store=store).stream(run="none", say="x"):
                pass

    with pytest.raises(StoreError, match="none"):
        asyncio.run(main())
    with pytest.raises(UsageError, match="this agent has no store"):
        asyncio.run(without_store(way))


async def without_store(way):
    if way == "start":
        chat().start(run="none", say="x")
    async with chat().stream(run="none", say="x"):
        pass


# Streams.


def test_a_stream_raises_what_ended_its_run_once(store):
    def model(messages):
        raise ConnectionError("gone")

    async def main():
        async with Agent(model, store=store).stream("go") as stream:
            with pytest.raises(ModelError, match="ConnectionError: gone") as caught:
                async for event in stream:
                    last = event
            assert last.kind == "run_finished"
            assert isinstance(caught.value.__cause__, ConnectionError)
            assert [event async for event in stream] == []

    asyncio.run(main())


def test_a_stream_of_synchronous_code():
    agent = Agent(
        FunctionModel(lambda messages: SCRIPT[turn_of(messages)], chunk_size=5), tools=[look]
    )
    stream = agent.stream_sync("go")
    items = list(stream)
    assert [item for item in items if isinstance(item, Event)] == stream.run.log
    assert "".join(item.text for item in items if isinstance(item, Delta.Answer)) == "seen it all"
    assert stream.result.value == "seen it all"
    assert list(stream) == []


SCRIPT = [act("look", at="it"), finish("seen it all")]


def test_a_conversation_is_streamed_to_synchronous_code(path):
    with TicketStore(path) as store:
        agent = chat(store=store)
        first = agent.stream_sync("one")
        assert [item.kind for item in first if isinstance(item, Event)][-1] == "run_finished"
        second = agent.stream_sync(run=first.run.id, say="two")
        assert next(second).kind == "user_said"
        assert [item.kind for item in second if isinstance(item, Event)][-1] == "run_finished"
        assert (first.result.value, second.result.value) == ("answer 1", "answer 2")
        assert second.run.log[-1].value == "answer 2"


def test_a_stream_of_synchronous_code_raises_what_ended_its_run():
    def model(messages):
        raise ConnectionError("gone")

    stream = Agent(model).stream_sync("go")
    with pytest.raises(ModelError, match="ConnectionError: gone"):
        for _ in stream:
            pass
    with pytest.raises(ModelError):
        _ = stream.result


@pytest.mark.parametrize("way", ["close", "with", "dropped"])
def test_a_stream_of_synchronous_code_that_is_left_is_cancelled(way):
    agent = Agent(
        lambda messages: act("look", at=str(turn_of(messages))),
        tools=[look],
        limits=Limits(turns=None, tickets=None),
    )
    stream = agent.stream_sync("go")
    run = stream.run
    if way == "with":
        with stream:
            next(stream)
    else:
        next(stream)
        if way == "close":
            stream.close()
        else:
            del stream
    assert run.stop_reason == "cancelled"


def test_approvals_in_a_stream_of_synchronous_code():
    @tool(needs_approval=True)
    def delete(path: str) -> str:
        """Delete."""
        return f"deleted {path}"

    agent = Agent(ScriptedModel([act("delete", path="a"), finish()]), tools=[delete])
    stream = agent.stream_sync("go")
    for event in stream:
        if getattr(event, "needs_approval", False):
            stream.run.approve(event.ticket_id)
    assert stream.result.tickets[0].result == "deleted a"


@pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")
def test_a_stream_of_synchronous_code_in_a_running_loop():
    async def main():
        with pytest.warns(RuntimeWarning, match="stops the running event loop"):
            return [event.kind for event in chat().stream_sync("go") if isinstance(event, Event)]

    assert asyncio.run(main())[-1] == "run_finished"


def test_a_stream_of_synchronous_code_is_not_for_tools():
    @tool
    def work() -> str:
        """Work."""
        return next(chat().stream_sync("go"))

    result = Agent(ScriptedModel([act("work"), finish()]), tools=[work]).run_sync("go")
    assert result.tickets[0].outcome == "error"


# Results.


def test_a_result_is_that_of_its_turn(store):
    agent = chat(store=store, tools=[look])
    first = agent.run_sync("one")
    kept = (first.usage, first.total_usage, list(first.messages), first.tickets)
    second = first.run.send_sync("two")
    third = second.run.send_sync("three")
    turns = [first, second, third]
    assert [one.usage.input_tokens for one in turns] == [20, 20, 20]
    assert [one.usage.output_tokens for one in turns] == [10, 10, 10]
    assert [one.usage.cost for one in turns] == [0.25, 0.25, 0.25]
    assert [one.total_usage.input_tokens for one in turns] == [20, 40, 60]
    assert [len(one.messages) for one in turns] == sorted({len(one.messages) for one in turns})
    assert (first.usage, first.total_usage, list(first.messages), first.tickets) == kept
    assert third.run.usage.input_tokens == 60
    if store is not None:
        assert agent.resume_sync(first.run.id).usage.input_tokens == 20


def test_the_usage_of_a_turn_holds_after_a_crash(path):
    with TicketStore(path) as store:
        agent = chat(store=store)
        run = agent.run_sync("one").run
        run.send_sync("two")
        lines = run.export().splitlines()
        store.delete(run.id)
        # The process ends right after the second message.
        said = next(at for at, line in enumerate(lines) if "user_said" in line)
        store.import_run(lines[: said + 1])
        result = agent.resume_sync(run.id)
        assert (result.usage.input_tokens, result.total_usage.input_tokens) == (20, 40)


def test_the_tickets_of_a_result_are_those_of_its_time():
    model = ScriptedModel([act("look", at="a"), finish(), act("look", at="b"), finish()])
    first = Agent(model, tools=[look]).run_sync("one")
    second = first.run.send_sync("two")
    assert [one.id for one in first.tickets] == ["T1"]
    assert [one.id for one in second.tickets] == ["T1", "T2"]
    assert [one.turn for one in second.tickets] == [1, 3]


def test_a_ticket_has_its_turn_and_its_seconds(path):
    @tool(needs_approval=True)
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(0.05)
        return "ok"

    async def main():
        with TicketStore(path) as store:
            agent = Agent(ScriptedModel([act("slow"), finish()]), tools=[slow], store=store)
            run = agent.start("go")
            while not run.awaiting_approval:
                await asyncio.sleep(0.001)
            assert run.tickets[0].seconds is None
            run.approve("T1")
            result = await run
            return result.tickets, store.tickets()

    for (ticket,) in asyncio.run(main()):
        assert ticket.turn == 1
        assert 0.05 <= ticket.seconds < 30
        assert ticket.seconds == ticket.completed_at - ticket.opened_at


def test_what_tests_keep_can_be_pickled(path):
    def model(messages):
        if task_of(messages) == "inner":
            return give("inner done")
        return [delegate("inner"), wait("T1"), give("outer done")][turn_of(messages)]

    with TicketStore(path) as store:
        result = Agent(model, protocol="ticket", store=store).run_sync("go")
        copy = pickle.loads(pickle.dumps(result))
        assert (copy.value, copy.usage, copy.tickets) == (
            result.value,
            result.usage,
            result.tickets,
        )
        assert copy.messages == result.messages
        assert copy.run.log == result.run.log
        assert [one.log for one in copy.run.children] == [one.log for one in result.run.children]
    assert copy.run.export() == result.run.export()
    for event in copy.run.log:
        assert pickle.loads(pickle.dumps(event)) == event


def test_the_errors_of_runs_can_be_pickled():
    def model(messages):
        raise ConnectionError("gone")

    with pytest.raises(ModelError) as caught:
        Agent(model).run_sync("go")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.run.log == caught.value.run.log
