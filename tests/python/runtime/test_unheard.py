"""What is said to a run is heard, also where nobody waits for that or the run is just ending."""

import asyncio
import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import (
    Agent,
    ModelError,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    replay,
    tool,
)
from scripted import task_of, turn_of

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "%s", "task_successful": true}'


@pytest.fixture(params=[False, True], ids=["alone", "kept"])
def agent(request):
    model = ScriptedModel([FINISH % answer for answer in "abcd"])
    return Agent(model, store=TicketStore() if request.param else None)


def test_a_failure_after_a_waiter_has_left_is_not_logged_as_nobodys():
    said = []

    async def model(messages):
        await goes_on.wait()
        raise ValueError("broken")

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: said.append(context["message"])
        )
        run = Agent(model).start("go")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run, 0.05)
        goes_on.set()
        while not run.finished:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        # The result is there for who asks again.
        with pytest.raises(ModelError, match="broken"):
            await run

    goes_on = asyncio.Event()
    asyncio.run(main())
    gc.collect()
    assert said == []


def said(run):
    return [event.text for event in run.log if event.kind == "user_said"]


def test_a_message_that_nobody_waits_for_is_heard_with_the_next(agent):
    async def main():
        run = (await agent.run("go")).run
        run.send("one")
        assert not run.finished
        result = await asyncio.wait_for(run.send("two"), 60)
        return result, run

    result, run = asyncio.run(main())
    # The model was to answer the one already when the other was said.
    assert (result.value, said(run)) == ("c", ["one", "two"])
    assert [message["content"] for message in result.messages[3::2]] == ["one", "two"]
    replay(run)


def test_it_is_heard_by_send_sync(agent):
    run = agent.run_sync("go").run
    run.send("one")
    assert run.send_sync("two").value == "c"
    replay(run)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_of_several_who_wait_is_told_the_same_end(agent, order):
    async def main():
        run = (await agent.run("go")).run
        replies = [run.send("one"), run.send("two")]
        return [await asyncio.wait_for(replies[at], 60) for at in order], run

    results, run = asyncio.run(main())
    assert [result.value for result in results] == ["c", "c"]
    assert run.turns == 3
    replay(run)


def test_so_are_those_who_wait_at_once(agent):
    async def main():
        run = (await agent.run("go")).run
        replies = [run.send("one"), run.send("two")]

        async def wait(reply):
            return (await reply).value

        return await asyncio.wait_for(asyncio.gather(*map(wait, replies)), 60), run

    values, run = asyncio.run(main())
    assert values == ["c", "c"]
    assert run.turns == 3


def test_a_run_that_fails_fails_for_all():
    async def main():
        agent = Agent(ScriptedModel([FINISH % "a", ConnectionError("no line")]))
        run = (await agent.run("go")).run
        for reply in [run.send("one"), run.send("two")]:
            with pytest.raises(ModelError):
                await asyncio.wait_for(reply, 60)

    asyncio.run(main())


def output(**move):
    return f"<thoughts>t</thoughts><output>{json.dumps(move)}</output>"


class Late:
    """A run that ends while a call of it, or a run below it, takes its time to end."""

    def __init__(self, first, store=None):
        self.first = first
        self.leaving = threading.Event()
        self.said = threading.Event()

        @tool
        async def tidy() -> None:
            """Clean up when it is cancelled."""
            await self.linger()

        self.agent = Agent(
            self,
            protocol=TicketProtocol(grace=0.0),
            tools=[tidy],
            on_open_tickets="cancel",
            store=store,
        )

    async def linger(self):
        try:
            await asyncio.sleep(60)
        finally:
            self.leaving.set()
            while not self.said.is_set():
                await asyncio.sleep(0.001)

    async def __call__(self, messages):
        turn = turn_of(messages)
        if task_of(messages).startswith("part"):
            await self.linger()
        # What is to be given up has begun.
        await asyncio.sleep(0.01)
        return [self.first, output(type="RETURN", value=1), output(type="RETURN", value=2)][turn]


CALL = output(type="CALL", route="/tidy", payload={}, description="d")
PART = output(type="DELEGATE", task="part")


@pytest.mark.parametrize("first", [CALL, PART], ids=["call", "task"])
@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
def test_what_is_said_while_a_run_is_ending_is_heard(first, here):
    late = Late(first)

    async def main():
        async with late.agent.stream("go") as stream:

            async def say():
                while not late.leaving.is_set():
                    await asyncio.sleep(0.001)
                assert stream.run.finished
                answer = stream.send("more") if here else await asyncio.to_thread(say_there)
                late.said.set()
                return await answer

            def say_there():
                return stream.send("more")

            saying = asyncio.create_task(say())
            async for _ in stream:
                pass
            assert (await saying).value == 2
        assert stream.result.value == 2
        return stream.run

    run = asyncio.run(asyncio.wait_for(main(), 20))
    assert said(run) == ["more"]
    replay(run)


def test_so_it_is_with_the_sync_driver():
    with TicketStore() as store, ThreadPoolExecutor(1) as pool:
        late = Late(PART, store)
        running = pool.submit(late.agent.run_sync, "go")
        assert late.leaving.wait(20)
        run = next(store.run(row.run_id) for row in store.runs() if row.parent_run is None)
        run.send("more")
        late.said.set()
        assert running.result(20).value == 2
        assert said(run) == ["more"]
        assert store.tickets(status="IN_PROGRESS") == []


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_what_is_said_while_the_task_of_a_run_is_cancelled_does_no_harm(word, caplog):
    @tool(needs_approval=True)
    async def sign() -> str:
        """Sign."""
        return "signed"

    async def main():
        late = Late(CALL)
        first = [CALL, output(type="CALL", route="/sign", payload={}, description="d")]
        replies = [*first, output(type="AWAIT", ticket_id="T2")]
        model = ScriptedModel(replies)
        tools = [*late.agent._tools, sign]
        protocol = TicketProtocol(grace=0.01)
        with TicketStore() as store:
            agent = Agent(model, protocol=protocol, tools=tools, store=store)
            running = asyncio.create_task(agent.run("go"))
            while not store.tickets(awaiting_approval=True):
                await asyncio.sleep(0.001)
            running.cancel()
            while not late.leaving.is_set():
                await asyncio.sleep(0.001)
            run = store.run(store.runs()[0].run_id)
            getattr(run, word)("T2")
            late.said.set()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert run.stop_reason == "cancelled"
            outcomes = [ticket.outcome for ticket in run.tickets]
            assert outcomes == ["cancelled", "denied" if word == "deny" else "cancelled"]
            replay(run)

    asyncio.run(asyncio.wait_for(main(), 20))
    assert caplog.records == []


class Busy:
    """A model that does one thing after another, some of them once a call of it is made."""

    def __init__(self):
        self.made = asyncio.Event()
        self.asked = asyncio.Event()

    async def sign(self) -> str:
        """Sign."""
        self.made.set()
        return "signed"

    async def quick(self) -> str:
        """Work."""
        return "worked"

    def stream(self):
        tools = [tool(needs_approval=True)(self.sign), tool(self.quick)]
        agent = Agent(self, protocol=TicketProtocol(grace=0.0), tools=tools)
        return agent.stream("go")

    def call(self, name):
        return output(type="CALL", route=f"/{name}", payload={}, description="d")


def test_a_call_that_is_approved_of_while_the_model_is_asked_is_made_meanwhile():
    class Model(Busy):
        async def __call__(self, messages):
            if turn_of(messages) == 0:
                return self.call("sign")
            self.asked.set()
            await self.made.wait()
            return output(type="RETURN", value="done")

    async def main():
        model = Model()
        async with model.stream() as run:
            await model.asked.wait()
            run.approve("T1")
            async for _ in run:
                pass
        assert run.result.tickets[0].outcome == "ok"

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_call_that_is_approved_of_is_made_however_the_run_goes_on():
    class Model(Busy):
        async def __call__(self, messages):
            turn = turn_of(messages)
            if task_of(messages).startswith("part"):
                return output(type="RETURN", value="part")
            if turn == 1:
                self.asked.set()
                await asyncio.sleep(0.05)
            task = output(type="DELEGATE", task="part")
            return [self.call("sign"), self.call("quick"), task, output(type="RETURN", value=1)][
                turn
            ]

    async def main():
        model = Model()
        async with model.stream() as run:
            await model.asked.wait()
            run.approve("T1")
            async for _ in run:
                pass
        assert [ticket.outcome for ticket in run.result.tickets] == ["ok", "ok", "ok"]

    asyncio.run(asyncio.wait_for(main(), 20))
