"""The spans of all workers that have driven a run are in one trace."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callslip import Agent, otel
from callslip.fleet import Fleet
from fleets.here import LONG, call, finish, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def exporter():
    """As each process has one: a provider of its own for every call, and one list of spans."""
    exporter = InMemorySpanExporter()
    providers = []

    def new_process():
        providers.append(TracerProvider())
        providers[-1].add_span_processor(SimpleSpanProcessor(exporter))
        otel.instrument(tracer_provider=providers[-1])
        return providers[-1]

    exporter.new_process = new_process
    yield exporter
    otel.uninstrument()
    for provider in providers:
        provider.shutdown()


def boss():
    clerk = Agent(turns(call("pay", amount=7), finish("paid")), tools=[pay], name="clerk")
    return Agent(
        turns(call("clerk", task="Pay 7."), finish("all paid")),
        tools=[clerk.as_tool(description="Pays.")],
        name="boss",
    )


async def driven_by_two(web, database, exporter):
    """Have a run begun by one worker and ended by another one. Returns its id."""
    fleet = Fleet(web)
    exporter.new_process()
    async with working(database, boss()):
        run_id = await fleet.submit("boss", "Have 7 paid.")
        await until(lambda: web.tickets(run=f"{run_id}.T1", awaiting_approval=True), "it waits")
        await until(lambda: web.query("SELECT FROM callslip.run WHERE msg IS NULL"), "it rests")
    exporter.new_process()
    web.run(f"{run_id}.T1").approve("T1")
    async with working(database, boss()):
        await fleet.result(run_id, timeout=LONG)
        await until(lambda: len(invocations(exporter)) >= 4, "all spans have ended")
    return run_id


def invocations(exporter):
    spans = exporter.get_finished_spans()
    return [span for span in spans if span.name.startswith("invoke_agent")]


async def test_two_workers_make_one_trace_of_a_run(web, database, exporter):
    first = await driven_by_two(web, database, exporter)
    spans = exporter.get_finished_spans()
    assert [span.name for span in invocations(exporter)].count("invoke_agent boss") == 2
    (trace_id,) = {span.context.trace_id for span in spans}
    # Its second part tells where the first one began.
    *_, last = [span for span in spans if span.name == "invoke_agent boss"]
    assert [link.context.trace_id for link in last.links] == [trace_id]
    exporter.clear()
    second = await driven_by_two(web, database, exporter)
    (other,) = {span.context.trace_id for span in exporter.get_finished_spans()}
    assert first != second
    assert other != trace_id


async def test_a_run_below_a_span_stays_in_the_trace_of_that_span(web, exporter):
    provider = exporter.new_process()
    agent = Agent(turns(finish()), name="clerk", store=web)
    with provider.get_tracer("web").start_as_current_span("request") as request:
        await agent.run("?")
    await agent.run("?")
    below, alone = invocations(exporter)
    assert below.context.trace_id == request.get_span_context().trace_id
    assert below.parent.span_id == request.get_span_context().span_id
    assert alone.parent is None
