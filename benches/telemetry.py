"""What OpenTelemetry costs a run of 1,000 turns, beside the same run without it.

    python benches/telemetry.py [--rounds 5]

The SDK's own batch processor receives the spans and drops them. Printed is the CPU of the process
as microseconds a turn, without and with it, and the difference as a share of a turn whose model
takes 20 milliseconds of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from callslip import Agent, Limits, ScriptedModel, otel, tool

TURNS = 1_000
MODEL_SECONDS = 0.020


class Dropping(SpanExporter):
    """Drops what it receives."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def microseconds() -> float:
    """Return the CPU of one turn of a run."""
    calls = [
        json.dumps({"thought": "next", "action": "add", "args": {"a": n, "b": 1}})
        for n in range(TURNS - 1)
    ]
    end = {"thought": "x", "action": "FINISH", "final_answer": "ok", "task_successful": True}
    agent = Agent(
        ScriptedModel([*calls, json.dumps(end)]),
        protocol="react",
        tools=[add],
        limits=Limits(turns=TURNS, tickets=TURNS),
    )
    began = time.process_time()
    agent.run_sync("Count.")
    return (time.process_time() - began) / TURNS * 1e6


def main(rounds: int) -> None:
    """Measure both in turn, and print the medians."""
    bare, traced = [], []
    for _ in range(rounds + 1):
        bare.append(microseconds())
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Dropping()))
        otel.instrument(tracer_provider=provider)
        traced.append(microseconds())
        otel.uninstrument()
        provider.shutdown()
    without, with_it = statistics.median(bare[1:]), statistics.median(traced[1:])
    share = (with_it - without) / (MODEL_SECONDS * 1e6) * 100
    print("| without, us a turn | with spans | times | of a turn of 20 ms |\n|---|---|---|---|")
    print(f"| {without:.1f} | {with_it:.1f} | {with_it / without:.1f} | {share:.2f} % |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args().rounds)
