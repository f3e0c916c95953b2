"""Typed answers, and a check of answers by the program: all protocols, drivers and streams."""

import asyncio
import json
from dataclasses import dataclass
from typing import Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, model_validator

from callslip import (
    Agent,
    ChattyProtocol,
    Context,
    Delta,
    FunctionModel,
    LimitExceeded,
    Limits,
    ModelChunk,
    ProtocolError,
    ReactProtocol,
    Retry,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from scripted import act, asked, block, delegate, finish, give, task_of, turn_of, wait
from scripted import call as route

PROTOCOLS = ("react", "ticket", "chatty")


class City(BaseModel):
    name: str
    people: int


class Large(City):
    @model_validator(mode="after")
    def is_large(self):
        if self.people < 1000:
            raise ValueError("a large city has 1000 people or more")
        return self


@dataclass
class Point:
    x: float
    y: float = 0.0


class Pet(TypedDict):
    name: str


OSLO = {"name": "Oslo", "people": 700_000}


def answer(protocol, value):
    """A reply with an answer, as each protocol writes it."""
    match protocol:
        case "react":
            return finish(value)
        case "ticket":
            return give(value)
    return f"<answer>{json.dumps(value)}</answer>"


def streamed(reply):
    """A model that streams a reply in pieces of three characters."""

    def stream():
        for at in range(0, len(reply), 3):
            yield ModelChunk(reply[at : at + 3])

    return stream()


def drivers(agent, task):
    yield agent.run_sync(task)
    yield asyncio.run(agent.run(task))

    async def watch():
        async with agent.stream(task) as run:
            async for _ in run:
                pass
        return run.result

    yield asyncio.run(watch())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("returns", "value", "expected"),
    [
        (City, OSLO, City(**OSLO)),
        (Point, {"x": 1}, Point(1.0)),
        (Pet, {"name": "Rex"}, {"name": "Rex"}),
        (City | Literal["unknown"], "unknown", "unknown"),
        (City | None, None, None),
        (list[City], [OSLO], [City(**OSLO)]),
        (Literal["a", "b"], "b", "b"),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int, 5, 5),
        (float, 5, 5.0),
        (bool, False, False),
        (tuple[int, str], [1, "x"], (1, "x")),
    ],
)
def test_the_answer_is_a_value_of_the_type(protocol, returns, value, expected):
    agent = Agent(
        lambda _: answer(protocol, value), protocol=protocol, returns=returns, delegate=False
    )
    for result in drivers(agent, "x"):
        assert result.value == expected
        assert type(result.value) is type(expected)
        replay(result.run.export())
    agent = Agent(
        lambda _: streamed(answer(protocol, value)),
        protocol=protocol,
        returns=returns,
        delegate=False,
    )
    for result in drivers(agent, "x"):
        assert result.value == expected


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_misfit_is_told_whole_and_the_model_is_asked_again(protocol):
    model = ScriptedModel(
        [
            answer(protocol, {"people": "many", "mayor": "x"}),
            answer(protocol, "Oslo"),
            answer(protocol, {"name": "Oslo", "people": "700000"}),
        ]
    )
    result = Agent(model, protocol=protocol, returns=City).run_sync("x")
    assert result.value == City(**OSLO)
    assert result.run.violations == 2
    first, second = asked(result.messages)[2]["content"], asked(result.messages)[4]["content"]
    for part in (
        "lacks the required property 'name' (string)",
        'must be an integer: got the string "many"',
        "has no property 'mayor'",
        "is JSON of the type {name: str, people: int}",
    ):
        assert part in first, first
    assert "must be an object" in second
    codes = [e.violation["code"] for e in result.run.log if e.kind == "violated"]
    assert codes == ["invalid_answer", "invalid_answer"]
    (moved,) = [event.move for event in result.run.log if event.kind == "moved"]
    assert moved["finish"]["coerced"] == ["/people"]
    replay(result.run.export())


def test_react_takes_json_text_unless_the_text_itself_fits():
    def value(returns, written):
        return Agent(lambda _: finish(written), returns=returns).run_sync("x").value

    assert value(City, json.dumps(OSLO)) == City(**OSLO)
    assert value(int | str, "5") == "5"
    assert value(int, "5") == 5
    assert value(City | str, json.dumps(OSLO)) == json.dumps(OSLO)


def test_a_run_that_failed_by_its_own_word_has_a_value_of_the_type():
    class Unknown(BaseModel):
        why: str

    agent = Agent(lambda _: finish({"why": "no data"}, success=False), returns=City | Unknown)
    result = agent.run_sync("x")
    assert (result.value, result.success) == (Unknown(why="no data"), False)
    agent = Agent(lambda _: finish("no data", success=False), returns=City)
    with pytest.raises(ProtocolError, match="must be an object"):
        agent.run_sync("x")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_validators_of_the_type_count_as_a_misfit(protocol):
    small = {"name": "Oslo", "people": 5}
    model = ScriptedModel([answer(protocol, small), answer(protocol, OSLO)])
    result = Agent(model, protocol=protocol, returns=Large).run_sync("x")
    assert result.value == Large(**OSLO)
    words = asked(result.messages)[2]["content"]
    assert "a large city has 1000 people or more: got" in words
    assert [e.kind for e in result.run.log].count("answer_offered") == 2
    replay(result.run.export())


def test_the_schema_is_in_the_prompt_where_it_says_more_than_the_short_form():
    class Grade(BaseModel):
        points: int = Field(ge=0, le=10, description="Out of ten.")

    for protocol in PROTOCOLS:
        prompt = Agent(lambda _: "", protocol=protocol, returns=Grade).system_prompt
        assert "{points: int}" in prompt
        assert '"maximum":10' in prompt.replace(" ", "")
        assert "Out of ten." in prompt
        assert "title" not in prompt
        assert (
            "JSON Schema" not in Agent(lambda _: "", protocol=protocol, returns=City).system_prompt
        )


def test_a_template_is_followed_by_the_type():
    agent = Agent(
        lambda _: finish(OSLO), protocol=ReactProtocol(template="Tools: {tools}"), returns=City
    )
    assert agent.system_prompt.startswith("Tools:")
    assert "`final_answer` is JSON of the type {name: str, people: int}" in agent.system_prompt


def test_prompts_without_a_type_are_as_they_were():
    for protocol in PROTOCOLS:
        plain = Agent(lambda _: "", protocol=protocol)
        assert (
            Agent(lambda _: "", protocol=protocol, returns=None).system_prompt
            == plain.system_prompt
        )
        assert "JSON of the type" not in plain.system_prompt


@pytest.mark.parametrize(
    ("protocol", "reply", "text"),
    [
        ("react", finish(OSLO), json.dumps(OSLO)),
        ("react", finish(json.dumps(OSLO)), json.dumps(OSLO)),
        ("ticket", give(OSLO), json.dumps(OSLO)),
        ("chatty", f"Here: <answer>{json.dumps(OSLO)}</answer>", json.dumps(OSLO)),
    ],
)
def test_the_answer_is_streamed_as_json(protocol, reply, text):
    agent = Agent(lambda _: streamed(reply), protocol=protocol, returns=City)

    async def watch():
        async with agent.stream("x") as run:
            return "".join([event.text async for event in run if isinstance(event, Delta.Answer)])

    assert asyncio.run(watch()) == text


def test_chatty_keeps_the_text_before_the_block():
    reply = f"Oslo it is.\n<answer>{json.dumps(OSLO)}</answer>"
    agent = Agent(lambda _: streamed(reply), protocol="chatty", returns=City)

    async def watch():
        async with agent.stream("x") as run:
            texts = [event.text async for event in run if isinstance(event, Delta.Text)]
        return "".join(texts), run.result

    text, result = asyncio.run(watch())
    assert text.strip() == "Oslo it is."
    assert result.value == City(**OSLO)
    assert result.messages[-1]["content"] == reply


def test_chatty_answers_in_text_are_refused_with_the_block_and_text_is_as_before():
    model = ScriptedModel(["Oslo.", f"<answer>{json.dumps(OSLO)}</answer>"])
    result = Agent(model, protocol="chatty", returns=City).run_sync("x")
    assert "<answer>{name: str, people: int}</answer>" in asked(result.messages)[2]["content"]
    for returns in (None, str):
        agent = Agent(lambda _: "<answer>5</answer>", protocol="chatty", returns=returns)
        assert agent.run_sync("x").value == "<answer>5</answer>"
    with pytest.raises(UsageError, match="tool_tag other than 'answer'"):
        Agent(lambda _: "", protocol=ChattyProtocol(tool_tag="answer"), returns=City)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_last_turn_needs_an_answer_of_the_type(protocol):
    @tool
    def look() -> int:
        """Look."""
        return 1

    call = {
        "react": act("look"),
        "ticket": route("look"),
        "chatty": block(("c", "look", {})),
    }[protocol]

    def run(last):
        model = ScriptedModel([call, last])
        limits = Limits(turns=1)
        return Agent(model, protocol=protocol, returns=City, tools=[look], limits=limits).run_sync(
            "x"
        )

    result = run(answer(protocol, OSLO))
    assert (result.value, result.stop_reason) == (City(**OSLO), "limit")
    assert "{name: str, people: int}" in result.messages[-2]["content"]
    with pytest.raises(LimitExceeded, match="broke the protocol"):
        run(answer(protocol, {"name": "Oslo"}))


def test_a_type_that_json_cannot_say_is_a_usage_error():
    with pytest.raises(UsageError, match=r"the type in returns \(.*\) can't be used"):
        Agent(lambda _: "", returns=type(lambda: None))
    with pytest.raises(UsageError, match="expected check_answer to be a function"):
        Agent(lambda _: "", check_answer="x")


def test_a_run_resumes_only_with_its_own_type():
    store = TicketStore()
    with pytest.raises(Exception, match="out"):
        Agent(ScriptedModel([RuntimeError("out")]), returns=City, store=store).run_sync("x")
    (row,) = store.runs()
    with pytest.raises(
        UsageError, match=r"the run returns \{name: str, people: int\}, this agent int"
    ):
        Agent(lambda _: finish(5), returns=int, store=store).resume_sync(row.run_id)
    with pytest.raises(UsageError, match="this agent no type"):
        Agent(lambda _: finish("x"), store=store).resume_sync(row.run_id)
    result = Agent(lambda _: finish(OSLO), returns=City, store=store).resume_sync(row.run_id)
    assert result.value == City(**OSLO)
    finished = store.run(row.run_id)
    assert finished.log[-1].value == OSLO


def test_delegated_tasks_and_agents_as_tools_have_answers_of_their_own():
    scripts = {
        "whole": [delegate("part"), wait("T1"), give(OSLO)],
        "part": [give("seven")],
    }
    model = FunctionModel(lambda messages: scripts[task_of(messages)][turn_of(messages)])
    result = Agent(model, protocol="ticket", returns=City).run_sync("whole")
    assert result.value == City(**OSLO)
    assert result.tickets[0].result == "seven"

    expert = Agent(lambda _: finish(OSLO), returns=City, name="expert")
    outer = Agent(
        ScriptedModel([act("expert", task="x"), lambda messages: finish(messages[-1]["content"])]),
        tools=[expert.as_tool()],
    )
    assert json.dumps(OSLO, separators=(",", ":")) in outer.run_sync("x").value
    assert asyncio.run(expert.as_tool()("x")) == City(**OSLO)


# ---- check_answer


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_program_may_refuse_an_answer(protocol, kind):
    seen = []

    def check(value, context):
        assert isinstance(context, Context)
        seen.append((value, context.run_id))
        if value.people < 1000:
            raise Retry(f"{value.name} has more people.")

    async def check_async(value, context):
        await asyncio.sleep(0)
        check(value, context)

    replies = [answer(protocol, {"name": "Oslo", "people": 5}), answer(protocol, OSLO)] * 3
    agent = Agent(
        ScriptedModel(replies),
        protocol=protocol,
        returns=City,
        check_answer=check if kind == "sync" else check_async,
    )
    for result in drivers(agent, "x"):
        assert result.value == City(**OSLO)
        assert result.run.violations == 1
        assert "not executed: Oslo has more people." in asked(result.messages)[2]["content"]
        assert [value.people for value, _ in seen[-2:]] == [5, 700_000]
        assert seen[-1][1] == result.run.id
        replay(result.run.export())


def test_an_answer_without_a_type_is_checked_as_text():
    def check(value, context):
        if value != "yes":
            raise Retry("say yes")

    result = Agent(ScriptedModel([finish("no"), finish("yes")]), check_answer=check).run_sync("x")
    assert result.value == "yes"


def test_refusals_count_as_violations():
    def check(value, context):
        raise Retry("no")

    agent = Agent(lambda _: finish("x"), check_answer=check, limits=Limits(max_violations=2))
    for drive in (agent.run_sync, lambda task: asyncio.run(agent.run(task))):
        with pytest.raises(ProtocolError, match="3 times in a row") as caught:
            drive("x")
        assert caught.value.run.violations == 3


def test_any_other_exception_of_the_check_ends_the_run_and_is_raised():
    calls = []

    def check(value, context):
        calls.append(value)
        if len(calls) < 3:
            raise ZeroDivisionError("of the program")

    store = TicketStore()
    agent = Agent(lambda _: finish("x"), check_answer=check, store=store)
    with pytest.raises(ZeroDivisionError):
        agent.run_sync("x")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(agent.run("x"))
    first, second = (store.run(row.run_id) for row in reversed(store.runs()))
    assert (first.stop_reason, second.stop_reason) == ("cancelled", "cancelled")
    # The answer is checked again, and the model is not asked again.
    result = agent.resume_sync(first.id)
    assert (result.value, result.run.turns, len(calls)) == ("x", 1, 3)
    replay(result.run.export())


def test_a_check_that_returns_a_value_is_a_usage_error():
    agent = Agent(lambda _: finish("x"), check_answer=lambda value, context: False)
    with pytest.raises(UsageError, match="expected check_answer to return None: got False"):
        agent.run_sync("x")


@pytest.mark.parametrize("path", [None, "runs.sqlite"])
def test_a_log_that_ends_before_the_check_is_checked_again(path, tmp_path):
    calls = []
    store = TicketStore(tmp_path / path) if path else TicketStore()
    agent = Agent(
        lambda _: finish(OSLO),
        returns=City,
        check_answer=lambda value, context: calls.append(value),
        store=TicketStore(),
    )
    log = agent.run_sync("x").run.export().splitlines(keepends=True)
    kinds = [next(iter(json.loads(line)["event"])) for line in log]
    upto = kinds.index("answer_offered") + 1
    run_id = store.import_run("".join(log[:upto]))
    again = Agent(
        ScriptedModel([]),
        returns=City,
        check_answer=lambda value, context: calls.append(value),
        store=store,
    )
    result = again.resume_sync(run_id)
    assert result.value == City(**OSLO)
    assert calls == [City(**OSLO)] * 2
    replay(result.run.export())


def test_a_run_may_be_cancelled_while_its_answer_is_checked():
    async def main():
        started = asyncio.Event()

        async def check(value, context):
            started.set()
            await asyncio.Event().wait()

        agent = Agent(lambda _: finish("x"), check_answer=check)
        async with agent.stream("x") as run:
            waiting = asyncio.ensure_future(started.wait())
            with pytest.raises(RunCancelled):
                async for event in run:
                    if getattr(event, "kind", "") == "answer_offered":
                        await waiting
                        run.cancel()
        return run.run.stop_reason

    assert asyncio.run(main()) == "cancelled"


def test_the_time_limit_holds_while_an_answer_is_checked():
    async def check(value, context):
        await asyncio.Event().wait()

    limits = Limits(seconds=0.2)
    agent = Agent(lambda _: finish("x"), check_answer=check, limits=limits, on_limit="raise")
    for drive in (agent.run_sync, lambda task: asyncio.run(agent.run(task))):
        with pytest.raises(LimitExceeded):
            drive("x")


def test_what_the_user_says_meanwhile_is_read_before_the_end():
    async def main():
        replies = iter([finish("first"), finish("second")])

        async def check(value, context):
            if value == "first":
                run.send("one more thing")

        agent = Agent(lambda _: next(replies), check_answer=check)
        async with agent.stream("x") as run:
            async for _ in run:
                pass
        return run.result

    result = asyncio.run(main())
    assert result.value == "second"
    assert "one more thing" in [message["content"] for message in result.messages]
    replay(result.run.export())
