"""What is said to a run and not waited for is heard by whoever says something next."""

import asyncio

import pytest

from callslip import Agent, ModelError, ScriptedModel, TicketStore, replay

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "%s", "task_successful": true}'


@pytest.fixture(params=[False, True], ids=["alone", "kept"])
def agent(request):
    model = ScriptedModel([FINISH % answer for answer in "abcd"])
    return Agent(model, store=TicketStore() if request.param else None)


def said(run):
    return [event.data["text"] for event in run.log if event.kind == "user_said"]


def test_a_message_that_nobody_waits_for_is_heard_with_the_next(agent):
    async def main():
        run = (await agent.run("go")).run
        run.send("one")
        assert not run.finished
        result = await asyncio.wait_for(run.send("two"), 10)
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
        return [await asyncio.wait_for(replies[at], 10) for at in order], run

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

        return await asyncio.wait_for(asyncio.gather(*map(wait, replies)), 10), run

    values, run = asyncio.run(main())
    assert values == ["c", "c"]
    assert run.turns == 3


def test_a_run_that_fails_fails_for_all():
    async def main():
        agent = Agent(ScriptedModel([FINISH % "a", ConnectionError("no line")]))
        run = (await agent.run("go")).run
        for reply in [run.send("one"), run.send("two")]:
            with pytest.raises(ModelError):
                await asyncio.wait_for(reply, 10)

    asyncio.run(main())
