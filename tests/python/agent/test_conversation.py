"""More is said to a run: while it is under way, and after its end."""

import asyncio
import threading
import time

import pytest

from callslip import (
    Agent,
    Event,
    FunctionModel,
    KeepLast,
    LimitExceeded,
    Limits,
    ModelError,
    RunCancelled,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip._runtime.event_queue import EventQueue
from scripted import (
    act,
    block,
    call,
    delegate,
    finish,
    give,
    patient,
    spawn,
    task_of,
    turn_of,
    wait,
    wait_for,
    without_example,
)


@tool
def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


SCRIPTS = {
    "react": [act("look", at="a"), finish("first"), act("look", at="b"), finish("second")],
    "chatty": [
        block(("c", "look", {"at": "a"})),
        "first",
        block(("c", "look", {"at": "b"})),
        "second",
    ],
    "ticket": [
        call("/look", {"at": "a"}),
        give("first"),
        call("/look", {"at": "b"}),
        give("second"),
    ],
}


@pytest.mark.parametrize("driver", ["async", "sync"])
@pytest.mark.parametrize("protocol", SCRIPTS)
def test_a_run_that_is_over_goes_on(protocol, driver, store):
    model = ScriptedModel(SCRIPTS[protocol])
    agent = Agent(model, protocol=patient(protocol), tools=[look], store=store)
    if driver == "sync":
        first = agent.run_sync("one")
        second = first.run.send_sync("and two")
    else:

        async def main():
            first = await agent.run("one")
            return first, await first.run.send("and two")

        first, second = asyncio.run(main())
    assert (first.value, second.value) == ("first", "second")
    assert second.run is first.run
    assert [ticket.id for ticket in second.tickets] == ["T1", "T2"]
    said = without_example(second)[5]
    assert said["role"] == "user"
    assert said["content"].startswith("and two")
    assert store.runs()[0].status == "finished"
    assert store.run(second.run.id).export() == second.run.export()
    assert replay(second.run).export() == second.run.export()


def test_without_a_store_too():
    result = Agent(ScriptedModel(["first", "second", "third"]), protocol="chatty").run_sync("one")
    assert result.run.send_sync("two").value == "second"
    assert asyncio.run(_send(result.run, "three")).value == "third"


async def _send(run, message):
    return await run.send(message)


def test_a_run_under_way_is_told_with_its_next_message():
    async def main():
        model = ScriptedModel(SCRIPTS["react"][:2])
        async with Agent(model, tools=[look]).stream("one") as run:
            async for event in run:
                if isinstance(event, Event) and event.kind == "ticket_opened":
                    run.send("look well")
        return run.result, model

    result, model = asyncio.run(main())
    assert model.requests[1].messages[-1]["content"] == "Observation: saw a\n\nlook well"
    assert replay(result.run).export() == result.run.export()


def test_what_is_said_while_the_answer_arrives_is_answered_too():
    asked = asyncio.Event()

    async def model(messages):
        if turn_of(messages) == 0:
            asked.set()
            await asyncio.sleep(0.1)
            return finish("first")
        return finish(f"about {messages[-1]['content']}")

    async def main():
        async with Agent(model).stream("one") as run:
            await asked.wait()
            waiting = run.send("more")
            async for _ in run:
                pass
            return await waiting, run.result

    told, result = asyncio.run(main())
    assert told == result
    assert result.value == "about more"
    assert replay(result.run).export() == result.run.export()


def test_what_is_said_while_open_tickets_are_waited_for_goes_on():
    release = asyncio.Event()

    async def model(messages):
        if task_of(messages).startswith("Your role"):
            await release.wait()
            return "late"
        return [block(spawn("a", "x")), "first", "second"][turn_of(messages)]

    async def main():
        async with Agent(model, protocol="chatty", delegate=True).stream("one") as run:
            async for event in run:
                if (
                    isinstance(event, Event)
                    and event.kind == "moved"
                    and "finish" in event.move
                    and not release.is_set()
                ):
                    run.send("more")
                    release.set()
        return run.result

    assert asyncio.run(main()).value == "second"


def test_a_run_at_its_limit_of_turns_has_them_anew():
    model = ScriptedModel([act("look", at="a"), finish("cut"), act("look", at="b"), finish("ok")])
    agent = Agent(model, tools=[look], limits=Limits(turns=1))
    first = agent.run_sync("one")
    assert first.stop_reason == "limit"
    second = first.run.send_sync("go on")
    assert (second.value, second.stop_reason) == ("ok", "limit")


def test_a_run_that_ended_with_an_error_goes_on():
    def model(messages):
        if turn_of(messages) == 0 and len(messages) == 2:
            raise ConnectionError("no line")
        return finish("ok")

    agent = Agent(model)
    with pytest.raises(Exception, match="no line") as caught:
        agent.run_sync("one")
    assert caught.value.run.send_sync("try again").value == "ok"


@pytest.mark.parametrize("message", ["", "  ", 5, None, "\ud800"])
def test_a_message_is_text(message):
    result = Agent(ScriptedModel([finish()])).run_sync("one")
    with pytest.raises(UsageError):
        result.run.send_sync(message)
    assert len(result.messages) == 3


@pytest.mark.filterwarnings("ignore:.* stops the running event loop:RuntimeWarning")
def test_send_sync_waits_for_nothing_under_way():
    async def main():
        model = ScriptedModel(SCRIPTS["react"][:2])
        async with Agent(model, tools=[look]).stream("one") as run:
            async for event in run:
                if isinstance(event, Event) and event.kind == "ticket_opened":
                    with pytest.raises(UsageError, match="still in progress"):
                        run.run.send_sync("more")

    asyncio.run(main())


@pytest.mark.one_process
def test_a_kept_run_is_told_more_and_resumed(store):
    model = ScriptedModel([finish("first"), finish("second")])
    agent = Agent(model, store=store)
    run_id = agent.run_sync("one").run.id
    kept = store.run(run_id)
    waiting = kept.send("two")
    assert store.runs()[0].status == "running"
    with pytest.raises(UsageError, match="resume"):
        asyncio.run(_await(waiting))
    assert agent.resume_sync(run_id).value == "second"
    assert "two" in model.requests[1].messages[-1]["content"]


async def _await(waiting):
    return await waiting


def test_a_run_that_went_on_elsewhere_is_not_written_over(store):
    model = ScriptedModel([finish("first"), finish("second"), finish("third")])
    agent = Agent(model, store=store)
    first = agent.run_sync("one")
    store.run(first.run.id).send("two")
    agent.resume_sync(first.run.id)
    with pytest.raises(Exception, match="another driver has resumed run"):
        first.run.send_sync("three")


def test_a_conversation_of_many_turns_with_a_short_history():
    seen = []

    def reply(messages):
        seen.append(list(messages))
        return f"answer {turn_of(messages)}"

    agent = Agent(FunctionModel(reply), protocol="chatty", history=KeepLast(2))
    result = agent.run_sync("question 0")
    for turn in range(1, 10):
        result = result.run.send_sync(f"question {turn}")
    assert len(result.messages) == 21
    last = seen[-1]
    assert [message["role"] for message in last] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert last[-1]["content"] == "question 9"
    assert "question 0" in last[1]["content"]
    assert "left out" in last[1]["content"]


def test_loaded_results_go_first_and_can_be_loaded_again():
    @tool
    def big(n: int) -> str:
        """Give much."""
        return "x" * 2000

    from scripted import load

    model = ScriptedModel(
        [
            call("/big", {"n": 1}),
            load("T1"),
            call("/big", {"n": 2}),
            load("T2"),
            load("T1"),
            give("ok"),
        ]
    )
    agent = Agent(model, protocol="ticket", tools=[big], history=KeepLast(9, characters=3500))
    result = agent.run_sync("go")
    shown = model.requests[-1].messages
    text = "".join(message["content"] for message in shown)
    assert "LOAD_TICKET T1 shows it again" in text
    assert "x" * 2000 in shown[-1]["content"]
    assert "".join(m["content"] for m in result.messages).count("x" * 2000) == 3


def test_a_child_can_be_told_more_after_its_end():
    model = ScriptedModel([delegate("part"), give("in"), wait("T1"), give("out"), give("more")])
    result = Agent(model, protocol=TicketProtocol(grace=0.5)).run_sync("whole")
    (child,) = result.run.children
    assert child.send_sync("and?").value == "more"


def levels_of(run):
    return 1 + max(map(levels_of, run.children), default=0)


def goes_deeper(messages):
    """A model that gives its task on, each time it is told something."""
    if messages[-1]["content"].startswith("TOOL_EXECUTION_RESULT"):
        return "done"
    if "spawn_agent" not in messages[0]["content"]:
        return "the last"
    return block(spawn("a", f"{turn_of(messages)} below"), wait_for("$a"))


@pytest.mark.parametrize("how", ["send", "send_sync", "resume"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_child_that_is_told_more_goes_no_deeper_than_the_tree_may(depth, how, store):
    agent = Agent(
        goes_deeper, protocol="chatty", delegate=True, limits=Limits(depth=depth), store=store
    )
    root = agent.run_sync("go").run
    assert levels_of(root) == 1 + depth
    (child,) = root.children
    if how == "send":
        asyncio.run(_send(child, "once more"))
    elif how == "send_sync":
        child.send_sync("once more")
    else:
        store.run(child.id).send("once more")
        agent.resume_sync(child.id)
    assert levels_of(store.run(root.id)) == 1 + depth
    assert len(store.run(child.id).children) == 2 * (depth - 1)


def test_a_message_to_a_run_beyond_its_tokens_gets_one_turn():
    from callslip import ModelReply

    usage = {"input_tokens": 60, "output_tokens": 50}
    model = ScriptedModel([ModelReply(finish(str(n)), "stop", usage) for n in range(3)])
    agent = Agent(model, limits=Limits(tokens=100))
    first = agent.run_sync("one")
    second = first.run.send_sync("two")
    assert (second.value, second.stop_reason) == ("1", "limit")
    raising = Agent(
        ScriptedModel([ModelReply(finish("0"), "stop", usage)]),
        limits=Limits(tokens=100),
        on_limit="raise",
    )
    with pytest.raises(LimitExceeded, match="tokens"):
        raising.run_sync("one").run.send_sync("two")


# A run that is watched goes on in its stream.


def answers(messages):
    return f"answer {turn_of(messages)}"


def test_a_result_that_is_asked_for_after_the_end_is_there():
    async def main():
        agent = Agent(FunctionModel(answers), protocol="chatty")
        async with agent.stream("one") as stream:
            run, driver = stream.run, stream.run._driver
            assert driver.inject(lambda now: run._core.send("two", now))
            async for _ in stream:
                pass
        # As a thread that is slow between its message and its question for the result.
        return await asyncio.wait_for(driver.result(), 20)

    assert asyncio.run(main()).run.stop_reason == "finished"


def test_a_late_question_for_a_result_is_answered_while_the_run_continues(store):
    async def main():
        agent = Agent(FunctionModel(answers), protocol="chatty", store=store)
        async with agent.stream("one") as stream:
            run, driver = stream.run, stream.run._driver
            async for _ in stream:
                pass
        more = run.send("more")
        assert not run.finished
        first = await asyncio.wait_for(driver.result(), 20)
        return first.value, (await more).value

    assert asyncio.run(main()) == ("answer 0", "answer 1")


# Meanwhile the run may have continued to its next end.
@pytest.mark.parametrize("turns_of_loop", [0, 1, 1000])
@pytest.mark.parametrize("fails", [False, True])
def test_another_thread_continues_a_run_as_its_stream_ends(
    monkeypatch, store, fails, turns_of_loop
):
    sent = []
    is_sent = False

    async def next_item(queue, is_over, original=EventQueue.next):
        nonlocal is_sent
        item = await original(queue, is_over)
        if item is None and not is_sent:
            is_sent = True
            sent.append(await asyncio.to_thread(stream.send, "more"))
            for _ in range(turns_of_loop):
                await asyncio.sleep(0)
        return item

    def model(messages):
        if fails and not is_sent:
            raise OSError("down")
        return answers(messages)

    async def main():
        nonlocal stream
        agent = Agent(FunctionModel(model), protocol="chatty", store=store)
        async with agent.stream("one") as stream:
            events = [event async for event in stream if isinstance(event, Event)]
            return events, stream.run, await sent[0]

    stream = None
    monkeypatch.setattr(EventQueue, "next", next_item)
    events, run, answered = asyncio.run(main())
    assert events == run.log
    assert [event.kind for event in events].count("run_finished") == 2
    assert answered.value == run.messages[-1]["content"]


@pytest.mark.parametrize("thread", ["same", "other"])
def test_what_is_said_at_the_end_of_a_watched_run_is_answered(store, thread):
    async def main():
        agent = Agent(FunctionModel(answers), protocol="chatty", store=store)
        events, waiting = [], []

        def say(run):
            waiting.append(run.send(f"more {len(waiting)}"))

        async with agent.stream("one") as run:
            async for event in run:
                if not isinstance(event, Event):
                    continue
                events.append(event)
                if event.kind == "run_finished" and len(waiting) < 4:
                    for _ in range(2):
                        if thread == "same":
                            say(run)
                        else:
                            other = threading.Thread(target=say, args=[run])
                            other.start()
                            await asyncio.to_thread(other.join)
        return run, events, [await one for one in waiting]

    run, events, answered = asyncio.run(main())
    assert events == run.run.log
    assert [event.text for event in events if event.kind == "user_said"] == [
        f"more {n}" for n in range(4)
    ]
    assert run.result == answered[-1]
    assert run.run.messages[-1]["content"] == run.result.value
    assert replay(run.run).export() == run.run.export()
    assert not store.runs(status="running")


def test_a_watched_run_that_was_iterated_to_its_end_goes_on_too():
    async def main():
        async with Agent(FunctionModel(answers), protocol="chatty").stream("one") as run:
            first = [event async for event in run]
            run.send("more")
            with pytest.raises(UsageError, match="not over yet"):
                _ = run.result
            second = [event async for event in run]
        return run.result.value, first + second == run.run.log

    assert asyncio.run(main()) == ("answer 1", True)


def test_the_runs_below_one_that_goes_on_are_watched_too():
    def model(messages):
        if task_of(messages).startswith("Your role"):
            return "in"
        return ["first", block(spawn("a", "x")), "second"][turn_of(messages)]

    async def main():
        async with Agent(model, protocol="chatty", delegate=True).stream(
            "one", children=True
        ) as run:
            async for _ in run:
                pass
            run.send("more")
            seen = {event.run_id async for event in run if isinstance(event, Event)}
        return seen == {run.run.id, run.run.children[0].id}, run.result.value

    assert asyncio.run(main()) == (True, "second")


def test_a_run_that_goes_on_in_its_stream_is_cancelled_with_it():
    async def main():
        async with Agent(FunctionModel(answers), protocol="chatty").stream("one") as run:
            async for _ in run:
                pass
            cancelled = run.send("two")
            run.cancel()
            with pytest.raises(RunCancelled):
                async for _ in run:
                    pass
            with pytest.raises(RunCancelled):
                await cancelled
            again = run.send("three")
            run.cancel()
            again = run.send("four")
            assert (await again).value == "answer 1"
            left = run.send("five")
        with pytest.raises(RunCancelled):
            await left
        with pytest.raises(RunCancelled):
            _ = run.result
        assert (await run.send("six")).value == "answer 2"
        assert replay(run.run).export() == run.run.export()

    asyncio.run(main())


def test_who_waits_for_an_answer_need_not_read_it():
    def model(messages):
        yield from (f"{n} " for n in range(2000))

    async def main():
        async with Agent(model, protocol="chatty", delegate=True).stream("one") as run:
            async for _ in run:
                pass
            return await asyncio.wait_for(run.send("more"), 60)

    assert asyncio.run(main()).value.strip().endswith("1999")


def test_a_reply_that_was_broken_off_is_no_part_of_the_next_one():
    async def model(messages):
        if messages[-1]["content"] != "again":
            yield "The old half answer "
            raise ConnectionError("no line")
        yield "Oslo."

    async def main():
        with pytest.raises(ModelError) as caught:
            await Agent(model, protocol="chatty").run("one")
        return await caught.value.run.send("again")

    result = asyncio.run(main())
    assert result.value == "Oslo."
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("gap", [None, 0, 0.05])
def test_cancelled_and_told_more_at_once_it_answers_the_message(gap):
    async def model(messages):
        if messages[-1]["content"] != "more":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.2)
                raise
        return finish(f"about {messages[-1]['content']}")

    async def main():
        async with Agent(model).stream("one") as run:
            await asyncio.sleep(0.05)
            run.cancel()
            if gap is not None:
                await asyncio.sleep(gap)
            told = run.send("more")
            async for _ in run:
                pass
            return run.result, (await told).value

    result, told = asyncio.run(main())
    assert (result.value, told) == ("about more", "about more")
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("limits", [Limits(), Limits(seconds=20)])
def test_a_late_reply_is_not_taken_for_the_answer_to_another_question(store, limits):
    asked = threading.Event()

    def model(messages):
        if messages[-1]["content"] == "one":
            asked.set()
            time.sleep(0.3)
        return finish(f"about {messages[-1]['content']}")

    def more():
        asked.wait(60)
        run = store.run(store.runs()[0].run_id)
        run.cancel()
        run.send("more")

    thread = threading.Thread(target=more)
    thread.start()
    result = Agent(model, store=store, limits=limits).run_sync("one")
    thread.join()
    assert result.value == "about more"


def test_results_that_are_there_are_told_after_a_cancel():
    seen = []

    @tool
    async def slow(n: int) -> int:
        """Work."""
        await asyncio.sleep(60)
        return n

    def model(messages):
        seen.append(messages[-1]["content"])
        if turn_of(messages) == 0:
            return block(("a", "look", {"at": "it"}), ("b", "slow", {"n": 1}))
        return "done"

    async def main():
        agent = Agent(model, protocol="chatty", tools=[look, slow])
        async with agent.stream("one") as run:
            with pytest.raises(RunCancelled):
                async for event in run:
                    if isinstance(event, Event) and event.kind == "ticket_completed":
                        run.cancel()
        return await run.run.send("go on")

    asyncio.run(main())
    assert "saw it" in seen[1]
    assert "\n\ngo on" in seen[1]


def test_a_tool_may_cancel_its_own_run():
    runs = []

    @tool
    async def stop(n: int) -> int:
        """Stop."""
        runs[0].cancel()
        return n

    async def main():
        model = ScriptedModel([act("stop", n=1), finish("more")])
        async with Agent(model, tools=[stop]).stream("one") as run:
            runs.append(run.run)
            with pytest.raises(RunCancelled):
                async for _ in run:
                    pass
            with pytest.raises(RunCancelled):
                _ = run.result
        return await run.run.send("go on")

    assert asyncio.run(main()).value == "more"


def test_a_call_approved_in_a_run_that_goes_on_may_have_begun(path):
    began = asyncio.Event()

    @tool(needs_approval=True)
    async def pay(n: int) -> int:
        """Pay."""
        began.set()
        await asyncio.sleep(60)
        return n

    async def main():
        with TicketStore(path) as store:
            model = ScriptedModel([finish("first"), act("pay", n=1)])
            agent = Agent(model, tools=[pay], store=store)
            first = await agent.run("one")
            going = asyncio.ensure_future(first.run.send("pay"))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.01)
            store.run(first.run.id).approve("T1")
            await began.wait()
            first.run.cancel()
            with pytest.raises(RunCancelled):
                await going
            return first.run

    run = asyncio.run(main())
    assert run.tickets[0].error.startswith("cancelled under way")
    assert [(event.ticket_id, event.at_rest) for event in run.log if event.kind == "approved"] == [
        ("T1", False)
    ]


def test_a_log_that_ends_with_a_finishing_reply_is_resumed(store):
    agent = Agent(ScriptedModel(["Oslo"]), protocol="chatty", store=store)
    run = agent.run_sync("one").run
    lines = run.export().splitlines()
    store.delete(run.id)
    store.import_run("\n".join(lines[:3]))
    assert agent.resume_sync(run.id).value == "Oslo"
    assert store.runs()[0].status == "finished"
