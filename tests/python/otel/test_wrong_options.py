"""Arguments of the instrumentation that have a wrong type."""

import pytest
from opentelemetry import metrics, trace

from callslip import Agent, ScriptedModel, UsageError, otel

FLAG = "^expected content=True or False: got "
TRACER = "^expected tracer_provider to be a provider of OpenTelemetry: got .*; pass an object with"
METER = "^expected meter_provider to be a provider of OpenTelemetry: got .* the method get_meter,"
WRONG = [
    ({"content": "yes"}, FLAG),
    ({"content": 1}, FLAG),
    ({"tracer_provider": 3}, TRACER),
    ({"tracer_provider": trace.get_tracer("x")}, TRACER),
    ({"meter_provider": "x"}, METER),
    ({"meter_provider": metrics.get_meter("x")}, METER),
]


def agent():
    return Agent(ScriptedModel(["ok"]), protocol="chatty")


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_of_the_instrumentation(options, words, recorded):
    recorded.instrument()
    with pytest.raises(UsageError, match=words):
        otel.instrument(**options)
    agent().run_sync("go")
    assert recorded.named("invoke_agent agent")


@pytest.mark.parametrize(("options", "words"), WRONG[:4])
def test_of_the_spans_of_a_run(options, words):
    run = agent().run_sync("go").run
    with pytest.raises(UsageError, match=words):
        otel.spans(run, **options)


def test_what_is_no_run():
    result = agent().run_sync("x" * 500)
    for value in (result, result.run.trace(), result.run.id, 3):
        with pytest.raises(UsageError, match=r"^expected a run: got .{0,220}; pass store\.run"):
            otel.spans(value)
