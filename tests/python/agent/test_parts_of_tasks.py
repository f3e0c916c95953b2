"""Images and files in the tasks of child runs: a line of the run above brings the part with it."""

import asyncio

import pytest

from callslip import Agent, Image, Limits, Role, ScriptedModel, TicketStore, tool
from pictures import png
from scripted import act, asked, block, call, delegate, finish, give, spawn, wait, wait_for

CAT, DOG = Image(png(32, 16), name="cat.png"), Image(png(8, 8))
ONE, TWO = "[image 32x16, 86 bytes, U1, cat.png]", "[image 8x8, 74 bytes, U2]"
TASK = ["Compare them.", CAT, DOG]


def sees(text):
    """A worker's model that takes images."""
    return ScriptedModel([text], parts=("image",))


def task_of_child(model):
    """The task that a worker's model was sent, and the images with it."""
    (request,) = model.requests
    message = asked(request.messages)[0]
    return message["content"], [(one.label, one.data) for one in message.get("parts", [])]


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_an_agent_as_a_tool_is_given_the_images_that_its_task_names(protocol, how):
    model = sees("it is a dog")
    worker = Agent(model, protocol="chatty", name="worker")
    task = f"What is {TWO}? See {TWO} again."
    replies = {
        "react": [act("worker", task=task), finish("a dog")],
        "chatty": [block(("c", "worker", {"task": task})), "a dog"],
        "ticket": [call("/worker", {"task": task}), wait("T1"), give("a dog")],
    }
    boss = Agent(ScriptedModel(replies[protocol]), protocol=protocol, tools=[worker.as_tool()])
    run = (boss.run_sync(TASK) if how == "sync" else asyncio.run(boss.run(TASK))).run
    own = "[image 8x8, 74 bytes, U1]"
    assert task_of_child(model) == (f"What is {own}? See {own} again.", [("U1", DOG.data)])
    (child,) = run.children
    assert child.task == f"What is {own}? See {own} again."
    assert {label: one.data for label, one in child.parts.items()} == {"U1": DOG.data}
    assert run.tickets[0].arguments == {"task": task}


@pytest.mark.parametrize(
    ("protocol", "replies", "seen"),
    [
        ("ticket", [delegate(f"Look: {ONE}"), wait("T1"), give("ok")], give("seen")),
        ("chatty", [block(spawn("a", f"Look: {ONE}"), wait_for("$a")), "ok"], "seen"),
        ("react", [act("delegate_task", task=f"Look: {ONE}"), finish("ok")], finish("seen")),
    ],
)
def test_a_delegated_task_has_its_images_too(protocol, replies, seen):
    own = iter(replies)
    firsts = []

    class Model:
        parts = ("image",)

        def __call__(self, messages):
            first = asked(messages)[0]
            if "Look:" not in first["content"]:
                return next(own)
            firsts.append(first)
            return seen

    roles = {"Worker": Role()} if protocol == "chatty" else {}
    agent = Agent(Model(), protocol=protocol, roles=roles, delegate=True)
    run = agent.run_sync(TASK).run
    (child,) = run.children
    assert child.task.endswith(f"Look: {ONE}")
    assert child.parts["U1"].data == CAT.data
    assert firsts[0]["parts"] == [CAT]


def test_only_the_whole_line_of_a_part_stands_for_it():
    model = sees("it is a cat")
    worker = Agent(model, protocol="chatty", name="worker").as_tool()
    task = "What is U1? [image 32x16, 86 bytes, U1] [image 8x8, 74 bytes, U3]"
    boss = Agent(
        ScriptedModel([act("worker", task=task), finish()]), protocol="react", tools=[worker]
    )
    run = boss.run_sync(TASK).run
    assert task_of_child(model) == (task, [])
    assert run.children[0].parts == {}


def test_a_run_that_a_tool_starts_by_hand_has_them_as_well():
    model = sees("a cat and a dog")
    worker = Agent(model, protocol="chatty")

    @tool
    async def ask(task: str) -> str:
        return (await worker.run([task, DOG])).value

    boss = Agent(
        ScriptedModel([act("ask", task=f"What is {ONE}?"), finish()]), protocol="react", tools=[ask]
    )
    assert boss.run_sync(TASK).run.tickets[0].result == "a cat and a dog"
    content, parts = task_of_child(model)
    assert content.splitlines() == [
        "What is [image 32x16, 86 bytes, U1, cat.png]?",
        "[image 8x8, 74 bytes, U2]",
    ]
    assert parts == [("U1", CAT.data), ("U2", DOG.data)]


def test_the_images_of_a_child_outlive_the_process(tmp_path):
    worker = Agent(sees("a dog"), protocol="chatty", name="worker")
    replies = [act("worker", task=f"What is {TWO}?"), finish()]
    with TicketStore(tmp_path / "runs.db") as store:
        boss = Agent(
            ScriptedModel(replies), protocol="react", tools=[worker.as_tool()], store=store
        )
        run_id = boss.run_sync(TASK).run.id
    with TicketStore(tmp_path / "runs.db") as store:
        (child,) = store.run(run_id).children
        assert child.parts["U1"].data == DOG.data


def test_a_run_without_parts_gives_its_task_as_it_is():
    model = sees("none")
    worker = Agent(model, protocol="chatty", name="worker").as_tool()
    replies = [act("worker", task=f"What is {ONE}?"), finish()]
    Agent(
        ScriptedModel(replies), protocol="react", tools=[worker], limits=Limits(depth=1)
    ).run_sync("t")
    assert task_of_child(model) == (f"What is {ONE}?", [])


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("kind", ["text", "json"])
def test_an_image_in_the_answer_of_a_child_is_one_of_the_run_above(tmp_path, how, kind):
    @tool
    def draw() -> Image:
        """Draw."""
        return Image(DOG.data, name='a "dog".png')

    own = '[image 8x8, 74 bytes, T1, a "dog".png]'
    answer = f"Here: {own}" if kind == "text" else {"picture": own}
    worker = Agent(
        ScriptedModel([act("draw"), finish(answer)]),
        tools=[draw],
        name="worker",
        returns=None if kind == "text" else dict[str, str],
    )
    model = ScriptedModel([act("worker", task="draw"), finish("ok")], parts=("image",))
    store = TicketStore(tmp_path / "runs.db")
    boss = Agent(model, tools=[worker.as_tool()], store=store)
    run = (boss.run_sync("go") if how == "sync" else asyncio.run(boss.run("go"))).run
    assert [(one.label, one.data) for one in asked(model.requests[-1].messages)[-1]["parts"]] == [
        ("T1", DOG.data)
    ]
    for again in (run, store.run(run.id)):
        assert again.parts["T1"].data == DOG.data
        result = again.tickets[0].result
        assert result == (f"Here: {own}" if kind == "text" else {"picture": DOG})


def test_the_name_of_a_path_is_text_in_one_line(tmp_path):
    odd = tmp_path / "a\nb\udce4\u202e.png"
    odd.write_bytes(DOG.data)
    assert Image(odd).name == "a_b__.png"
