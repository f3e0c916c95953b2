"""Spans and metrics of what is open as a run is resumed, and of requests that end late or badly."""

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from callslip import (
    Agent,
    ModelError,
    ModelReply,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    Usage,
    otel,
    tool,
)
from scripted import act, finish, give
from scripted import call as call_route

COUNTED = Usage(input_tokens=100, output_tokens=50, cached_tokens=0, cost=0.0)
CURRENT = []


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    CURRENT.append(trace.get_current_span().get_span_context())
    return "paid"


def agent(model, store):
    return Agent(model, tools=[pay], protocol="react", name="clerk", store=store)


def copy_of(run):
    """The run, as a process that did not begin it has it."""
    store = TicketStore()
    store.import_run(run.export())
    return store


async def left(model):
    """A copy of a run whose process ended before its model has replied, or its call was decided."""
    with TicketStore() as store:
        run = agent(model, store).start("Go.")
        async for event in run.watch():
            if getattr(event, "needs_approval", False) or event.kind == "model_asked":
                break
        while model is not hang and not run.awaiting_approval:
            await asyncio.sleep(0.01)
        kept = copy_of(run)
        run.cancel()
        with pytest.raises(RunCancelled):
            async for _ in run.watch():
                pass
    return kept, run.id


async def hang(messages):
    await asyncio.sleep(60)


def test_a_call_that_is_approved_while_its_run_rests_has_a_span(recorded):
    store, run_id = asyncio.run(left(ScriptedModel([act("pay", amount=5)])))
    recorded.instrument()
    store.run(run_id).approve("T1", by="ann")
    agent(ScriptedModel([finish("x")]), store).resume_sync(run_id)
    assert sorted(recorded.tree(), key=str) == [
        ("chat", "invoke_agent clerk"),
        ("execute_tool pay", "invoke_agent clerk"),
        ("invoke_agent clerk", None),
    ]
    call = recorded.named("execute_tool pay")
    assert CURRENT[-1] == call.context
    (event,) = call.events
    assert event.attributes["by"] == "ann"
    assert event.attributes["waited_s"] > 0
    assert recorded.points("gen_ai.execute_tool.duration")[0].count == 1
    assert recorded.points("callslip.approval.wait")[0].count == 1


def test_a_decision_for_a_run_that_nothing_works_on_begins_no_span(recorded):
    store, run_id = asyncio.run(left(ScriptedModel([act("pay", amount=5)])))
    recorded.instrument()
    store.run(run_id).deny("T1", "no")
    otel.uninstrument()
    agent(ScriptedModel([finish("x")]), store).resume_sync(run_id)
    assert recorded.spans == []


def test_a_request_that_a_resumed_run_repeats_has_a_span_and_tokens(recorded):
    store, run_id = asyncio.run(left(hang))
    recorded.instrument()

    async def slow(messages):
        await asyncio.sleep(0.2)
        return ModelReply(finish("x"), usage=COUNTED)

    asyncio.run(agent(slow, store).resume(run_id))
    asked = recorded.named("chat")
    assert asked.attributes["gen_ai.usage.input_tokens"] == 100
    assert 0.15 < (asked.end_time - asked.start_time) / 1e9 < 30
    assert recorded.points("gen_ai.client.inference.usage.input_tokens")[0].value == 100
    assert recorded.named("invoke_agent clerk").start_time == asked.start_time


def test_a_call_that_ends_while_the_model_is_asked_leaves_the_request_open(recorded):
    recorded.instrument()
    replies = [call_route("/wait_a_little"), give("x")]
    ended = asyncio.Event()

    async def wait_a_little() -> str:
        """Wait."""
        await asyncio.sleep(0.2)
        ended.set()
        return "x"

    async def model(messages):
        if len(replies) == 1:
            await ended.wait()
            await asyncio.sleep(0.1)
        return ModelReply(replies.pop(0), usage=COUNTED)

    one = Agent(model, tools=[wait_a_little], protocol="ticket", name="clerk")
    run = asyncio.run(one.run("Go.")).run
    kinds = [event.kind for event in run.log]
    assert kinds.index("ticket_completed") < len(kinds) - kinds[::-1].index("model_replied") - 1
    calls = [span for span in recorded.spans if span.name == "chat"]
    assert [span.attributes["gen_ai.usage.output_tokens"] for span in calls] == [50, 50]
    assert calls[1].end_time > recorded.named("execute_tool wait_a_little").end_time
    assert recorded.points("gen_ai.client.inference.usage.output_tokens")[0].value == 100


def test_a_request_that_fails_has_an_error_type(recorded):
    recorded.instrument()
    with pytest.raises(ModelError):
        agent(ScriptedModel([TimeoutError("no answer")]), TicketStore()).run_sync("Go.")
    asked = recorded.named("chat")
    assert asked.attributes["error.type"] == "model_error"
    assert asked.status.status_code is StatusCode.ERROR
    assert asked.status.description is None
    (point,) = recorded.points("gen_ai.client.inference.duration")
    assert point.attributes["error.type"] == "model_error"


def test_each_end_of_a_kept_run_has_its_span(recorded, caplog):
    with TicketStore() as store:
        recorded.instrument()
        with pytest.raises(ModelError) as failed:
            agent(ScriptedModel([TimeoutError("no answer")]), store).run_sync("Go.")
        run_id = failed.value.run.id
        again = agent(ScriptedModel([finish("x"), finish("y")]), store)
        again.resume_sync(run_id).run.send_sync("And now?")
        live = [(one.name, one.start_time, one.end_time) for one in recorded.spans]
        tree = recorded.tree()
        otel.uninstrument()
        recorded.exporter.clear()
        otel.spans(store.run(run_id), tracer_provider=recorded.tracers)
    kept = [(one.name, one.start_time, one.end_time) for one in recorded.spans]
    assert (kept, recorded.tree()) == (live, tree)
    assert [name for name, _, _ in kept].count("invoke_agent clerk") == 3
    assert [name for name, _, _ in kept].count("chat") == 3
    assert not [one for one in caplog.records if one.name.startswith("opentelemetry")]


def test_durations_have_bounds_in_seconds(recorded):
    recorded.instrument()
    agent(ScriptedModel([finish("x")]), TicketStore()).run_sync("Go.")
    (turn,) = recorded.points("gen_ai.client.inference.duration")
    assert (turn.explicit_bounds[0], round(turn.explicit_bounds[-1], 2)) == (0.01, 81.92)
    (run,) = recorded.points("gen_ai.invoke_agent.duration")
    assert 0 < run.explicit_bounds[0] < 1
